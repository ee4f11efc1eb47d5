"""Importance measures, which assign a score to each token of a text."""

from . import adapters
from .registry import METHODS, Method, absolute, default_methods, explain, method, parse

__all__ = ["METHODS", "Method", "absolute", "adapters", "default_methods", "explain", "method", "parse"]
