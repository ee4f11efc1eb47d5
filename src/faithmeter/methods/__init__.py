"""Importance measures, which assign a score to each token of a text."""

from . import adapters
from .registry import METHODS, PAPER, Method, absolute, default_methods, explain, method, parse

__all__ = [
    "METHODS",
    "PAPER",
    "Method",
    "absolute",
    "adapters",
    "default_methods",
    "explain",
    "method",
    "parse",
]
