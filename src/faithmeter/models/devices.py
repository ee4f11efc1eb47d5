"""Devices: those available on this machine, the precisions that they support, and their memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ..config import PRECISIONS, Precision
from ..errors import InputError, unknown

if TYPE_CHECKING:
    from transformers import PreTrainedModel

AUTO = "auto"
DEVICES = (AUTO, "cpu", "cuda", "mps", "xpu")
"""Names of devices; `cuda:1` is the second GPU."""
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
PRECISION_OF = dict(zip(DTYPES.values(), DTYPES, strict=True))
BF16_FLAGS = frozenset({"avx512_bf16", "amx_bf16", "bf16"})
"""Features of CPUs with bfloat16 multiplication; the last one is the name on ARM."""
PINNING = ("cuda", "xpu")
"""Types of devices that can copy from pinned memory in the background."""
CPU_BUDGET = 1024
"""Tokens in a micro-batch on a CPU. Small micro-batches are as fast, and keep all streams busy."""
START_WIDTH = 1024
"""Width of a model on a CPU for which starting a forward pass costs as much as one token."""
START_ON_ACCELERATOR = 512.0
"""Tokens that an accelerator could compute while a forward pass is started, roughly."""
BUDGETS = 1024, 32768
"""Minimum and maximum number of tokens in the first micro-batch on an accelerator."""
SAVED_VALUES = 24
"""Estimated number of values that a layer stores for the gradient, per token and hidden unit."""


def find_device(device: str | torch.device = AUTO) -> torch.device:
    """Return the device of this name; `auto` is the machine's accelerator, or the CPU if it has none.

    Raises:
        InputError: The name is unknown, or the machine has no such device.
    """
    accelerator, count = find_accelerator()
    here = torch.device("cpu") if accelerator is None else accelerator
    if device == AUTO:
        return here
    try:
        chosen = torch.device(device)
    except RuntimeError:
        raise InputError(
            f"unknown device {str(device)!r}; expected one of {', '.join(DEVICES)}; cuda:1 is the second GPU"
        ) from None
    if chosen.type == "cpu":
        return torch.device("cpu")  # cpu:0 is the same device, and would not compare equal
    if chosen.type != here.type or (chosen.index or 0) >= count:
        others = [f"{here.type}:{number}" for number in range(count)]
        raise InputError(
            f"device {str(device)!r} is not available here; expected {', '.join([AUTO, 'cpu', *others])}: "
            f"choose one of these, or install torch for that device (this is torch {torch.__version__})"
        )
    return chosen


def find_accelerator() -> tuple[torch.device | None, int]:
    """Return the machine's accelerator and how many of its kind there are; None and 0 without one."""
    if hasattr(torch, "accelerator"):
        if not torch.accelerator.is_available():
            return None, 0
        return torch.accelerator.current_accelerator(), torch.accelerator.device_count()
    for name in DEVICES[2:]:  # torch before 2.6
        count = torch.get_device_module(name).device_count()
        if count:
            return torch.device(name), count
    return None, 0


def require_precision(precision: Precision, device: torch.device) -> Precision:
    """Return the precision to evaluate in, with `auto` replaced by `fp32`.

    Raises:
        InputError: The precision is unknown, or the device does not support it.
    """
    if precision not in PRECISIONS:
        raise unknown("precision", str(precision), PRECISIONS)
    if precision == AUTO:
        return "fp32"
    if not supports(precision, device):
        others = [name for name in DTYPES if supports(name, device)]
        raise InputError(
            f"precision is {precision}, which this {device.type.upper()} does not compute in; expected "
            f"{' or '.join(['auto', *others])}"
        )
    return precision


def supports(precision: str, device: torch.device) -> bool:
    """Return whether the hardware of a device supports a precision; emulation does not count."""
    if precision == "fp32":
        return True
    if device.type == "cpu":  # without these instructions bf16 is slower than fp32, by emulation
        return precision == "bf16" and bool(BF16_FLAGS & cpu_features())
    if precision == "fp16":
        return True
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type == "mps":
        return bool(torch.backends.mps.is_macos_or_newer(14, 0))
    return bool(getattr(torch.get_device_module(device), "is_bf16_supported", lambda: False)())


def cpu_features() -> set[str]:
    """Return the names of the CPU's features, as reported by torch and the operating system."""
    known = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    features = {name for name in known if known[name] is True}
    file = Path("/proc/cpuinfo")
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines() if file.is_file() else []
    for line in lines:
        name, _, values = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return features | {*values.split()}
    return features


def place(model: PreTrainedModel, device: torch.device, precision: Precision) -> None:
    """Move a model to a device, and convert its parameters, but not its buffers, to a precision.

    Buffers hold the angles of rotary position embeddings, which low precision would distort in long texts.
    """
    model.to(device)
    for parameter in model.parameters():
        parameter.data = parameter.data.to(DTYPES[precision])


def wide_type(device: torch.device) -> torch.dtype:
    """Return the data type for sums: float64 on a CPU, otherwise float32, as float64 is slow or missing."""
    return torch.float64 if device.type == "cpu" else torch.float32


def send(tensor: Tensor, device: torch.device) -> Tensor:
    """Copy a tensor to a device, without waiting for the copy to finish if the device allows it."""
    if tensor.device.type == "cpu" and device.type in PINNING:  # a copy from other memory blocks the host
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)


def token_budget(model: torch.nn.Module | None, device: torch.device) -> int:
    """Return the maximum number of tokens in the first micro-batch, given the device's free memory."""
    if device.type == "cpu":
        return CPU_BUDGET
    smallest, largest = BUDGETS
    config = getattr(model, "config", None)
    free = free_bytes(device)
    if config is None or free is None:
        return smallest
    layers = getattr(config, "num_hidden_layers", 12)
    width = getattr(config, "hidden_size", 768)
    size = next(iter(model.parameters())).element_size() if model is not None else 4
    # half of what is free; an estimate that is too high costs one retry, see `Evaluator.map`
    return max(smallest, min(largest, free // 2 // (layers * width * size * SAVED_VALUES)))


def start_cost(model: PreTrainedModel | None, device: torch.device) -> float:
    """Return how many tokens a model could compute in the time that a forward pass costs for any input."""
    if device.type != "cpu":
        return START_ON_ACCELERATOR
    width = START_WIDTH if model is None else model.get_input_embeddings().weight.shape[1]
    return float((START_WIDTH / width) ** 2)  # a layer of width H takes 24 H² operations for a token


def free_bytes(device: torch.device) -> int | None:
    """Return the free memory of an accelerator in bytes; None if it cannot be queried."""
    module = torch.get_device_module(device)
    if hasattr(module, "mem_get_info"):
        return int(module.mem_get_info(device)[0])
    if hasattr(module, "recommended_max_memory"):
        return int(module.recommended_max_memory() - module.driver_allocated_memory())
    return None


def is_out_of_memory(error: RuntimeError) -> bool:
    """Return whether an error means that a device is out of memory; some raise a plain RuntimeError."""
    return isinstance(error, torch.cuda.OutOfMemoryError) or "out of memory" in str(error).lower()


def release_memory(device: torch.device) -> None:
    """Free the blocks of an accelerator's memory that torch has cached."""
    if device.type != "cpu":
        torch.get_device_module(device).empty_cache()
