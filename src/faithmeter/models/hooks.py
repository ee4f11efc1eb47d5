"""Forward hooks that act only inside `with` blocks: on embeddings, the last layer, normalizations."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

SELF_OUTPUT = "SelfOutput"
"""End of the name of the class that follows the attention in a layer of BERT's family and of DeBERTa."""
AFTER_ATTENTION = (
    *(".attn.o", ".attention.LayerNorm"),
    *(".attention.out_lin", ".sa_layer_norm"),
    *(".attn.Wo", ".mlp_norm"),
)
"""Ends of the names of what follows the attention in a layer of MPNet, DistilBERT and ModernBERT.

They are the projection of its output and the normalization behind the residual connection.
"""


class Switch(threading.local):
    """Value that a hook reads: None, except inside a `with` block and in the thread of that block."""

    value: Any = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Switch:
        return self  # the hooks of a copied model are the same functions, which read the same switch

    @contextmanager
    def set_to(self, value: Any) -> Iterator[None]:
        """Set the value inside the `with` block."""
        self.value = value
        try:
            yield
        finally:
            self.value = None


def hook_embeddings(lookup: torch.nn.Module) -> Switch:
    """Return the switch whose value, Tensor [B, T, E], replaces the word embeddings that a model looks up.

    Unlike with `inputs_embeds`, the model still reads the token ids, which ESM needs for its token dropout.
    """
    replaced = Switch()
    lookup.register_forward_hook(lambda *_: replaced.value)  # None leaves the output as it is
    return replaced


def hook_normalizations(model: torch.nn.Module) -> Switch:
    """Return the switch whose value, a function, is given input and output of each normalization layer."""
    observer = Switch()

    def show(module: torch.nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        if observer.value is not None:
            observer.value(inputs[0], output)

    for module in model.modules():
        if "norm" in type(module).__name__.lower():
            module.register_forward_hook(show)
    return observer


def hook_last_layer(model: torch.nn.Module, probe: Callable[[], Tensor]) -> Switch:
    """Return the switch that, set to True, skips what the head does not read: all positions but the first.

    After its attention a layer works on each position apart, so that the logits stay the same. The hooks
    know `SELF_OUTPUT` and `AFTER_ATTENTION`. A residual connection around such a module adds its output to
    all positions, of which only the first one is then right. A model with other layers, or with a head that
    reads more than the first position, is left as it is.
    """
    skipping = Switch()
    last: dict[str, torch.nn.Module] = {}  # by name, in the last layer that has it
    for name, module in model.named_modules():
        if type(module).__name__.endswith(SELF_OUTPUT):
            last[SELF_OUTPUT] = module
        for end in AFTER_ATTENTION:
            if name.endswith(end):
                last[end] = module
    if SELF_OUTPUT in last:  # ESM has both, and there MPNet's name is that of a layer before the attention
        last = {SELF_OUTPUT: last[SELF_OUTPUT]}

    def keep_first(module: torch.nn.Module, states: tuple[Tensor, ...]) -> tuple[Tensor, ...] | None:
        return tuple(state[:, :1] for state in states) if skipping.value else None

    for module in last.values():
        handle = module.register_forward_pre_hook(keep_first)
        if not _is_exact(probe, skipping):  # asked of each model: no list of architectures is complete
            handle.remove()
    return skipping


def _is_exact(probe: Callable[[], Tensor], skipping: Switch) -> bool:
    """Return whether the logits of `probe` stay as they are, except for rounding."""
    with torch.inference_mode():
        whole = probe().float()
        try:
            with skipping.set_to(True):
                return torch.allclose(probe().float(), whole, rtol=1e-4, atol=1e-4)
        except (RuntimeError, IndexError):  # a head that needs all positions
            return False


def largest_attended(state: Tensor, attended: Tensor) -> Tensor:
    """Return the maximum [B, H] of a state [B, T, H] over the attended tokens, bool Tensor [B, T, 1]."""
    return state.masked_fill(~attended, -torch.inf).amax(dim=1)  # padding is no feature of a text
