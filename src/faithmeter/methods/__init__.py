"""Importance measures: a score for each token of a text, one algorithm in one module."""

from .registry import METHODS, Method, absolute, default_methods, explain, method, parse

__all__ = ["METHODS", "Method", "absolute", "default_methods", "explain", "method", "parse"]
