"""Importance measures: scores [B, T] of the tokens of texts, one algorithm in one module."""

from .registry import METHODS, Function, Method, absolute, explain, method, parse

__all__ = ["METHODS", "Function", "Method", "absolute", "explain", "method", "parse"]
