"""A fake accelerator in pure Python, and evaluations on it: run in a process of its own.

Tensors on the device `fake` keep their numbers in a CPU tensor that only the device's operations reach.
Operations that mix devices and float64 are errors; what makes the host wait for a device is counted.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections import Counter
from typing import Any

import torch
from torch import Tensor
from torch.utils import backend_registration
from torch.utils._pytree import tree_leaves, tree_map

import faithmeter as fm
from faithmeter.measuring.erase import states
from faithmeter.models.classifier import Classifier
from faithmeter.models.devices import find_device
from faithmeter.models.evaluator import Evaluator
from toy import MASK, rows_batch, tiny

NAME = "fake"
METHODS = ("loo-sign", "grad-l1", "grad-l2", "int-grad-sign(steps=3)", "beam(width=2)")
COPIES = ("aten::copy_", "aten::_to_copy")
WAITING = (
    "aten::_local_scalar_dense",
    "aten::nonzero",
    "aten::masked_select",
    "aten::equal",
    "aten::_unique2",
)
"""Operations whose result, or its shape, the host must know before it can go on."""
ROOM = 2**24
"""Memory of the device in bytes, as far as it tells."""

waits: Counter[str] = Counter()


class Module(backend_registration._DummyBackendModule):
    """The part of torch.cuda that an accelerator must have."""

    def mem_get_info(self, _: object = None) -> tuple[int, int]:
        return ROOM, ROOM

    def empty_cache(self) -> None:
        waits["empty_cache"] += 1


class DeviceTensor(Tensor):
    """Tensor whose numbers are in `host`."""

    host: Tensor

    @staticmethod
    def __new__(cls, host: Tensor) -> DeviceTensor:
        if host.dtype == torch.float64:
            raise TypeError("the fake accelerator has no float64")
        with torch.inference_mode(False):  # as views of tensors that were made outside must be
            wrapper = Tensor._make_wrapper_subclass(
                cls, host.size(), strides=host.stride(), dtype=host.dtype, device=torch.device(NAME, 0)
            )
        wrapper.host = host
        return wrapper  # type: ignore[no-any-return]

    @classmethod
    def __torch_dispatch__(
        cls, function: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        name = function._schema.name
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        outside = [tensor for tensor in tensors if not isinstance(tensor, DeviceTensor) and tensor.ndim]
        if outside and name not in COPIES:
            raise RuntimeError(f"{name} mixes devices")
        to_host = (
            not isinstance(args[0], DeviceTensor)
            if name == "aten::copy_"
            else name == "aten::_to_copy" and torch.device(kwargs.get("device") or NAME).type == "cpu"
        )
        indices = tree_leaves(args[1:2]) if name.startswith("aten::index") else []
        by_mask = any(isinstance(index, Tensor) and index.dtype == torch.bool for index in indices)
        if to_host or by_mask or name in WAITING:
            waits[_cause("copy to the host" if to_host else name)] += 1
        if torch.device(kwargs.get("device") or "cpu").type == NAME:
            kwargs = {**kwargs, "device": torch.device("cpu")}
        result = function(*tree_map(_unwrap, args), **tree_map(_unwrap, kwargs))
        known = {id(tensor.host): tensor for tensor in tensors if isinstance(tensor, DeviceTensor)}
        return result if to_host else tree_map(lambda leaf: known.get(id(leaf), _wrap(leaf)), result)


def _cause(name: str) -> str:
    """Return the name, or `transformers` if its code asks for the value."""
    files = (frame.f_code.co_filename for frame, _ in traceback.walk_stack(None))
    own = next(file for file in files if "/torch/" not in file and file != __file__)
    return "transformers" if "/transformers/" in own else name


def _unwrap(leaf: object) -> object:
    return leaf.host if isinstance(leaf, DeviceTensor) else leaf


def _wrap(leaf: object) -> object:
    return DeviceTensor(leaf) if isinstance(leaf, Tensor) and not isinstance(leaf, DeviceTensor) else leaf


def register() -> None:
    """Make `fake` the accelerator of this process."""
    backend_registration._setup_privateuseone_for_python_backend(NAME, backend_module=Module())
    library = torch.library.Library("aten", "IMPL", "PrivateUse1")

    def empty(size: Any, dtype: Any = None, **_: Any) -> DeviceTensor:
        return DeviceTensor(torch.empty(size, dtype=dtype))

    def strided(size: Any, stride: Any, dtype: Any = None, **_: Any) -> DeviceTensor:
        return DeviceTensor(torch.empty_strided(size, stride, dtype=dtype))

    library.impl("empty.memory_format", empty)
    library.impl("empty_strided", strided)
    register.library = library  # type: ignore[attr-defined]


def main(folder: str) -> None:
    """Explain texts on the accelerator and print what it saw; `folder` holds a saved model."""
    here, there = (tiny(dtype=torch.float32, attn_implementation="eager") for _ in range(2))
    register()
    assert find_device() == torch.device(NAME)
    batch = rows_batch([5, 6, 7, 8, 9], [10, 11, 12], [13, 14, 15, 16, 17, 18, 19])
    labels = [0, 1, 2]
    there = Classifier(there.model.to(NAME), mask_id=MASK)
    _ = there.classified_only  # looks once whether the last layer can be shortened
    report: dict[str, Any] = {"budget": Evaluator(there).budget, "methods": {}}
    for name in METHODS:
        evaluator = Evaluator(there, budget=16)  # several micro-batches
        waits.clear()
        scores = fm.explain(evaluator, batch, labels, name)
        expected = fm.explain(Evaluator(here), batch, labels, name)
        error = float((scores - expected).abs().max() / expected.abs().max())
        report["methods"][name] = {
            "device": str(scores.device),
            "error": error,
            "waits": dict(waits),
            "evaluations": evaluator.evaluations,
        }
    waits.clear()
    logits, features = states(Evaluator(there, budget=16), batch)
    expected_states = states(Evaluator(here), batch)
    errors = [float((a - b).abs().max()) for a, b in zip((logits, features), expected_states, strict=True)]
    report["states"] = {"error": max(errors), "waits": dict(waits)}
    report["loaded"] = measure_saved(folder)
    print(json.dumps(report))


def measure_saved(folder: str) -> dict[str, Any]:
    """Measure a text with the saved model, on the device that it is loaded to by default and on the CPU."""
    results = [
        fm.explain_text(fm.load(folder, **options), "the film was not good", method=["grad-l2"], orders=19)
        for options in ({}, {"device": "cpu"}, {"precision": "fp16"})
    ]
    areas = [result.methods["grad-l2"].acu for result in results]
    return {
        "areas": areas,
        "names": [[result.device, result.precision] for result in results],
    }


if __name__ == "__main__":
    main(sys.argv[1])
