"""Identity and source digest of a user's function, which show whether it was replaced or edited."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from types import CodeType


def find_place(function: Callable[..., object]) -> tuple[str, str]:
    """Return a function's module and qualified name, which do not change if a notebook redefines it."""
    name = getattr(function, "__qualname__", type(function).__name__)
    return str(getattr(function, "__module__", None)), name


def digest_source(function: Callable[..., object]) -> str:
    """Return a digest of a function's source, or of its bytecode if there is no source file.

    Return an empty string for functions of this package and functions without Python code.
    """
    function = inspect.unwrap(getattr(function, "func", function))  # unwrap functools.partial
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    if code is None or find_place(function)[0].partition(".")[0] == __name__.partition(".")[0]:
        return ""
    # Without a file, inspect may return the source of something else (Python 3.13).
    if Path(code.co_filename).is_file():
        source = inspect.getsource(code)
    else:
        defaults = getattr(function, "__defaults__", None), getattr(function, "__kwdefaults__", None)
        source = repr((_bytecode(code), defaults))
    return sha256(source.encode()).hexdigest()[:12]


def _bytecode(code: CodeType) -> tuple[object, ...]:
    """Return the instructions, names and constants of a code object and of those nested in it."""
    constants = [_bytecode(const) if isinstance(const, CodeType) else repr(const) for const in code.co_consts]
    return code.co_code, code.co_names, code.co_varnames, constants
