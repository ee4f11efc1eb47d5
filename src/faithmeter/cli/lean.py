"""Faster start of verbs that only evaluate a model: it is loaded without what only training needs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..models.classifier import Classifier

UNUSED = ("accelerate", "scipy", "torch_distributed", "torch_flex_attn")
"""Libraries that training, object detection and compiled models need, by transformers' names for them."""
COMPILER = "torch._dynamo"
"""Torch's compiler, whose import takes as long as that of torch and transformers together."""
INDEXING = "TransformGetItemToIndex"
HOME = f"{COMPILER}._trace_wrapped_higher_order_op"


def load_lean(checkpoint: str, **options: Any) -> Classifier:
    """Load a classifier as `faithmeter.load` does, but without importing torch's compiler.

    `import transformers` imports no model. Its first model imports the compiler, only to mark functions that
    it should leave alone: 2 s of CPU time beside 2 s for torch and transformers.
    """
    from ..models.loading import ADAPTER, load

    before = {*sys.modules}
    # adapters are merged by a library that needs accelerate, and what the hub has is not known yet
    plain = os.path.isfile(f"{checkpoint}/config.json") and not os.path.isfile(f"{checkpoint}/{ADAPTER}")
    if COMPILER in before or not plain:
        return load(checkpoint, **options)
    try:
        with _without_compiler():
            return load(checkpoint, **options)
    except Exception:  # an InputError, too, may come of a version that needs more: the full attempt tells
        for name in {*sys.modules} - before:
            if name.startswith("transformers."):
                del sys.modules[name]  # half imported
    return load(checkpoint, **options)


@contextmanager
def _without_compiler() -> Iterator[None]:
    """Let transformers find a stand-in for the compiler, and no unused library, inside the block."""
    from transformers import utils
    from transformers.utils import import_utils

    names = [f"is_{library}_available" for library in UNUSED]
    places = [vars(utils), vars(import_utils)]  # transformers asks both
    answers = [{name: place[name] for name in names if name in place} for place in places]
    try:
        for place, answer in zip(places, answers, strict=True):
            place.update(dict.fromkeys(answer, _no))
        sys.modules.update({name: _Compiler(name) for name in (COMPILER, HOME)})
        yield
    finally:
        for place, answer in zip(places, answers, strict=True):
            place.update(answer)
        for name in (COMPILER, HOME):  # whoever needs the compiler from now on imports the true one
            del sys.modules[name]


def _no(*_: str) -> bool:
    return False


class _Compiler(ModuleType):
    """Stand-in for torch's compiler: its decorators return the function, which nobody compiles."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _import_indexing if name == INDEXING else _decorate


def _decorate(function: Any = None, *_: Any, **__: Any) -> Any:
    return _decorate if function is None else function


def _import_indexing() -> Any:
    """Return the context in which some models make their masks, which comes from the true compiler."""
    from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex

    return TransformGetItemToIndex()
