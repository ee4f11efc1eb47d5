"""Digest of a user's function: of its source and of all that its behavior depends on besides it.

The digest is the same in every process: it covers neither addresses nor the order of sets.
"""

from __future__ import annotations

import dis
import functools
import inspect
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from copyreg import _slotnames  # type: ignore[attr-defined]
from enum import Enum
from hashlib import sha256
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path, PurePath
from types import (
    BuiltinFunctionType,
    CodeType,
    EllipsisType,
    FunctionType,
    MethodType,
    ModuleType,
    NoneType,
)
from typing import Any

import numpy as np

from .errors import InputError

PLAIN = (
    *(NoneType, EllipsisType, bool, int, float, complex, str, bytes, bytearray, range, slice, PurePath),
    *(np.generic, np.dtype, np.ufunc),
)
"""Types of values that `repr` shows completely."""
LIBRARIES = Path(os.__file__).parent, Path(__file__).parent
"""Folders of Python and of this package; their code is digested by its name only."""
INSTALLED = {"site-packages", "dist-packages"}
"""Names of folders of installed packages, of which the same is true."""


def find_place(function: object) -> tuple[str, str]:
    """Return a function's module and qualified name, which do not change if a notebook redefines it."""
    name = getattr(function, "__qualname__", type(function).__name__)
    return str(getattr(function, "__module__", None)), name


def digest_source(function: object, *settings: object, name: str, version: str = "") -> str:
    """Return a digest of a function or class, of settings, and of all that the function depends on.

    It covers wrapped and partial functions with their arguments, defaults, closures, the state and classes
    of objects, and the helpers, modules and constants of the user that the body names. Libraries are covered
    by name only. With a `version`, the user answers for what cannot be digested.

    Args:
        function: The user's function, callable object or class.
        settings: Plain values.
        name: What the function is, for the error: "method 'mine'".
        version: The user's word for the state of what cannot be digested.

    Raises:
        InputError: Something that the function depends on cannot be digested, and there is no version.
    """
    content = _Content(name, version)
    content.add((version, *settings))
    if isinstance(function, FunctionType):  # also if it is that of an installed plugin
        content.add(function.__code__)
    package = sys.modules.get(find_place(function)[0].partition(".")[0])
    # a plugin's functions are covered by name only, so its version stands for its source
    if package is not None and _is_installed(package):
        content.add(str(getattr(package, "__version__", "")))
    content.add(function)
    return content.hash.hexdigest()[:12]


class _Content:
    """Hash of values; each is followed by all that it depends on."""

    def __init__(self, name: str, version: str) -> None:
        self.name, self.version = name, version
        self.hash = sha256()
        self.seen: dict[int, tuple[int, object]] = {}  # holds the objects, so that no id is used twice
        self.modules: set[int] = set()  # that are just being followed
        self.variable = ""  # the last one that was followed, for the error

    def put(self, *texts: str | bytes) -> None:
        for text in texts:
            data = text.encode(errors="surrogatepass") if isinstance(text, str) else text
            self.hash.update(b"%d:" % len(data) + data)

    def add_all(self, *values: object) -> None:
        for value in values:
            self.add(value)

    def add(self, value: object) -> None:
        kind: type = type(value)
        if isinstance(value, PLAIN) and not _is_users(kind):
            self.put(kind.__qualname__, repr(value))
            return
        if id(value) in self.seen:
            self.put("seen", str(self.seen[id(value)][0]))
            return
        # before its parts, which may refer back to it
        self.seen[id(value)] = len(self.seen), value
        self.put(kind.__qualname__)
        if _is_importable(value):
            self.put(*find_place(value))
        elif not self._add_known(value):
            self._add_object(value)
        elif _is_users(kind):  # such as a dict with methods of its own
            self.add_all(kind, None if isinstance(value, type) else getattr(value, "__dict__", None))

    def _add_known(self, value: Any) -> bool:
        """Add a value of a known type; return whether it was one."""
        match value:
            case FunctionType():
                self._add_function(value)
            case type():
                self._add_class(value)
            case ModuleType():
                self.put(value.__name__)
            case CodeType():
                self._add_code(value)
            case functools.partial():
                self.add_all(value.func, value.args, value.keywords)
            case MethodType():
                self.add_all(value.__func__, value.__self__)
            case BuiltinFunctionType():
                self.put(value.__qualname__)
                self.add(value.__self__)
            case staticmethod() | classmethod():
                self.add(value.__func__)
            case Enum():
                self.put(value.name)
            case property():
                self.add_all(value.fget, value.fset)
            case functools.cached_property():
                self.add(value.func)
            case _ if isinstance(value, type(functools.cache(len))):
                self.add(value.__wrapped__)
            case Mapping():
                # dicts that are equal may differ in order
                for key in sorted(value, key=_order):
                    self.add_all(key, value[key])
            case set() | frozenset():
                self.add_all(*sorted(value, key=_order))
            case list() | tuple():
                self.put(str(len(value)))
                self.add_all(*value)
            case re.Pattern():
                self.add_all(value.pattern, value.flags)
            case _:
                # torch may not be loaded: then nothing can be one of its values
                return self._add_array(value)
        return True

    def _add_array(self, value: Any) -> bool:
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(value, torch.dtype | torch.device):
            self.put(repr(value))
            return True
        if torch is not None and isinstance(value, torch.Tensor):
            self.put(str(value.dtype), str(tuple(value.shape)))
            value = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
        if not isinstance(value, np.ndarray):
            return False
        self.put(str(value.dtype), str(value.shape))
        if value.dtype.hasobject:  # its bytes are addresses
            self.add(value.tolist())
        else:
            self.put(value.tobytes())
        return True

    def _add_object(self, value: Any) -> None:
        """Add an object's class and state; refuse it if it has a state that Python does not see."""
        kind = type(value)
        slots = _slotnames(kind)
        has_state = hasattr(value, "__dict__") or slots or kind is object
        # what a class of Python itself needs; more means fields of C that nobody sees
        room = object.__basicsize__ + np.dtype(np.intp).itemsize * (2 + len(slots))  # dict, weak references
        if not has_state or kind.__basicsize__ > room or kind.__itemsize__:
            if self.version:
                return
            what = f"{self.variable!r}, a value" if self.variable else "a value"
            raise InputError(
                f"{self.name} depends on {what} of type {'.'.join(find_place(kind))}, whose changes cannot "
                'be noticed; give version="1" beside the name, and another version whenever it changes'
            )
        self.add(kind)
        state = {name: getattr(value, name) for name in slots if hasattr(value, name)}
        for name, part in sorted((state | getattr(value, "__dict__", {})).items()):
            self.variable = name
            self.add_all(name, part)

    def _add_class(self, kind: type) -> None:
        self.put(kind.__qualname__)
        # inherited methods are part of what an object does
        self.add_all(*kind.__bases__)
        for name, member in sorted(vars(kind).items()):
            is_code = isinstance(member, FunctionType | staticmethod | classmethod | property)
            is_slot = hasattr(type(member), "__get__") and not hasattr(member, "__dict__")
            if is_code or not (is_slot or name.startswith("__") or name == "_abc_impl"):
                self.variable = name
                self.add_all(name, member)

    def _add_function(self, function: FunctionType) -> None:
        code, installed = function.__code__, _is_library(function.__code__.co_filename)
        if installed:
            self.put(function.__globals__["__name__"], code.co_qualname)
        else:
            self.add(code)
            self.add_all(function.__defaults__, function.__kwdefaults__)
        self.add(vars(function))  # a wrapped function is among its attributes
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            self.variable = name
            self.add_all(name, *_content_of(cell))
        if not installed:
            self._add_globals(function)

    def _add_globals(self, function: FunctionType) -> None:
        """Add the values of the global names that a function's code loads and does not set itself."""
        steps = [step for code in _nested(function.__code__) for step in dis.get_instructions(code)]
        by_step: dict[str, set[str]] = {}
        for step in steps:
            by_step.setdefault(step.opname, set()).add(str(step.argval))
        # more than are taken from each module: covering too much only measures again
        attributes = {name for code in _nested(function.__code__) for name in code.co_names}
        names = by_step.get("LOAD_GLOBAL", set()) | by_step.get("LOAD_NAME", set())
        # what the function sets itself is its result and not its source
        for name in sorted(names - by_step.get("STORE_GLOBAL", set())):
            if name in function.__globals__:
                self.put(name)
                self._add_named(name, function.__globals__[name], attributes)
        for name in sorted(by_step.get("IMPORT_NAME", set())):
            self._add_import(name, function.__globals__.get("__package__"))

    def _add_named(self, name: str, value: object, attributes: set[str]) -> None:
        """Add the value of a name; of a user's module only what the code may take from it."""
        self.variable = name
        if isinstance(value, ModuleType) and not _is_installed(value) and id(value) not in self.modules:
            self.modules.add(id(value))
            for attribute in sorted(attributes & vars(value).keys()):
                self.put(attribute)
                self._add_named(f"{name}.{attribute}", vars(value)[attribute], attributes)
            self.modules.remove(id(value))  # another function may take other names from it
        else:
            self.add(value)

    def _add_import(self, name: str, package: str | None) -> None:
        """Add the source of a user's module that a body imports; whether it is loaded must not matter."""
        for candidate in (name, f".{name}"):
            try:
                spec = find_spec(candidate, package or None)
            except (ImportError, ValueError):
                continue
            if spec is not None and spec.origin and Path(spec.origin).is_file():
                if not _is_library(spec.origin):
                    self.put(name, Path(spec.origin).read_bytes())
                return

    def _add_code(self, code: CodeType) -> None:
        # Without a file, inspect may return the source of something else (Python 3.13). Lambdas may share
        # a line, which would be the source of each.
        if Path(code.co_filename).is_file() and code.co_name != "<lambda>":
            with suppress(OSError):
                self.put(inspect.getsource(code))
                return
        # without a source, the bytecode is what runs
        self.put(code.co_code, *code.co_names, *code.co_varnames)
        self.add(code.co_consts)


def _nested(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and those of the functions and comprehensions in it."""
    yield code
    # inner functions are constants of the outer one's code
    for value in code.co_consts:
        if isinstance(value, CodeType):
            yield from _nested(value)


def _content_of(cell: Any) -> tuple[object, ...]:
    try:
        return (cell.cell_contents,)
    except ValueError:  # not assigned yet
        return ()


def _order(value: object) -> str:
    """Return a sort key that is the same in every process."""
    if isinstance(value, tuple | frozenset):
        parts = [_order(part) for part in value]
        return repr(parts if isinstance(value, tuple) else sorted(parts))
    return repr(value) if isinstance(value, PLAIN) else repr((find_place(type(value)), find_place(value)))


@functools.cache
def _is_library(file: str) -> bool:
    path = Path(file)
    inside = any(path.is_relative_to(folder) for folder in LIBRARIES)
    return inside or file.startswith("<frozen") or bool(INSTALLED & {*path.parts})


def _is_installed(module: ModuleType) -> bool:
    """Return whether a module belongs to Python or to an installed package, not to the user."""
    if module.__name__ == "__main__":
        return False
    # a namespace package has a path and no file; a module that is built in has neither
    files = [getattr(module, "__file__", None), *getattr(module, "__path__", ())]
    file = next((file for file in files if file), None)
    return file is None or _is_library(file)


def _is_users(kind: type) -> bool:
    module = sys.modules.get(kind.__module__)
    return module is None or not _is_installed(module)


def _is_importable(value: object) -> bool:
    """Return whether a value is found by its name in a library."""
    name = getattr(value, "__qualname__", getattr(value, "__name__", None))
    module = sys.modules.get(getattr(value, "__module__", None) or "")
    if not isinstance(name, str) or module is None or not _is_installed(module):
        return False
    try:
        return attrgetter(name)(module) is value
    except AttributeError:
        return False
