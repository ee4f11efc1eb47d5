"""Importance measures, which assign a score to each token of a text."""

from .registry import METHODS, Method, absolute, default_methods, explain, method, parse

__all__ = ["METHODS", "Method", "absolute", "default_methods", "explain", "method", "parse"]
