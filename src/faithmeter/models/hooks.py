"""Forward hooks that replace a model's word embeddings and record its normalized hidden states."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

SELF_OUTPUT = "SelfOutput"
"""End of the name of the class that follows the attention in a layer of BERT's family and of DeBERTa."""
AFTER_ATTENTION = (".sa_layer_norm", ".attention.LayerNorm", ".mlp_norm")
"""Ends of the names of what follows the attention in a layer of DistilBERT, MPNet and ModernBERT."""


class ThreadState(threading.local):
    """Values of each thread; a copy, made with the model that a hook belongs to, starts without any."""

    def __deepcopy__(self, memo: dict[int, Any]) -> ThreadState:
        return ThreadState()


class EmbeddingHook:
    """Forward hook that replaces the word embeddings that a model looks up.

    Unlike with `inputs_embeds`, the model still reads the token ids, which ESM needs for its token dropout.
    Threads that use the model do not affect each other.
    """

    def __init__(self, lookup: torch.nn.Module) -> None:
        self._thread = ThreadState()
        # a hook that returns None leaves the output as it is
        lookup.register_forward_hook(lambda *_: getattr(self._thread, "embeddings", None))

    @contextmanager
    def replaced_by(self, embeddings: Tensor) -> Iterator[None]:
        """Use these embeddings, Tensor [B, T, E], in forward passes inside the `with` block."""
        self._thread.embeddings = embeddings
        try:
            yield
        finally:
            self._thread.embeddings = None


class LastLayerHook:
    """Skips the part of a last layer that the classifier head does not read: all positions but the first.

    After its attention a layer works on each position apart, so that the logits stay the same. The hook
    knows `SELF_OUTPUT` and `AFTER_ATTENTION`. Where a residual connection goes around such a module, as in
    ModernBERT, its output is added to all positions, of which only the first one is then right. A model with
    other layers, or with a head that reads more than the first position, is left as it is.
    """

    def __init__(self, model: torch.nn.Module, probe: Callable[[], Tensor]) -> None:
        self._thread = ThreadState()
        outputs = [module for module in model.modules() if type(module).__name__.endswith(SELF_OUTPUT)]
        # ESM has both, and there the layer of MPNet's name comes before the attention
        named = [module for name, module in model.named_modules() if name.endswith(AFTER_ATTENTION)]
        candidates = outputs or named
        if candidates:
            handle = candidates[-1].register_forward_pre_hook(self._first)
            if not self._is_exact(probe):  # asked of each model: no list of architectures is complete
                handle.remove()

    @contextmanager
    def skipping(self) -> Iterator[None]:
        """Skip what the head does not read in forward passes of this thread inside the `with` block."""
        self._thread.on = True
        try:
            yield
        finally:
            self._thread.on = False

    def _first(self, module: torch.nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...] | None:
        return tuple(state[:, :1] for state in inputs) if getattr(self._thread, "on", False) else None

    def _is_exact(self, probe: Callable[[], Tensor]) -> bool:
        """Return whether the logits of `probe` stay as they are, except for rounding."""
        with torch.inference_mode():
            whole = probe().float()
            try:
                with self.skipping():
                    return torch.allclose(probe().float(), whole, rtol=1e-4, atol=1e-4)
            except (RuntimeError, IndexError):  # a head that needs all positions
                return False


class NormalizationHooks:
    """Forward hooks that show every call of a normalization layer to a recorder, for each thread."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._thread = ThreadState()
        for module in model.modules():
            if "norm" in type(module).__name__.lower():
                module.register_forward_hook(self._record)

    @contextmanager
    def shown_to(self, recorder: Normalizations | Maxima) -> Iterator[None]:
        """Show the calls of forward passes inside the `with` block to a recorder."""
        self._thread.recorder = recorder
        try:
            yield
        finally:
            self._thread.recorder = None

    def _record(self, module: torch.nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        recorder = getattr(self._thread, "recorder", None)
        if recorder is not None:
            recorder.add(inputs[0], output)


class Normalizations:
    """Inputs and outputs of the calls of normalization layers in one forward pass.

    The tensors are kept alive, so that no address is used twice.
    """

    def __init__(self) -> None:
        self.outputs: list[Tensor] = []
        self._by_input: dict[int, int] = {}
        self._by_output: dict[int, int] = {}
        self._inputs: list[Tensor] = []

    def add(self, before: Tensor, after: Tensor) -> None:
        call = len(self.outputs)
        # several norms may read a state: the first of them is that of the next layer
        self._by_input.setdefault(before.data_ptr(), call)
        self._by_output[after.data_ptr()] = call
        self._inputs.append(before)
        self.outputs.append(after)

    def call_of(self, state: Tensor) -> int | None:
        """Return the number of the call that gives `state`, or else reads it; None if there is none."""
        address = state.data_ptr()
        return self._by_output.get(address, self._by_input.get(address))


class Maxima:
    """Maxima over the tokens of the outputs of some calls of normalization layers, as they are computed.

    No states are kept, which in a forward pass take as much memory as all else.
    """

    def __init__(self, calls: Iterable[int], attended: Tensor) -> None:
        self.wanted = {*calls}
        self.values: dict[int, Tensor] = {}
        """Maxima [B, H] by the number of the call."""
        self._attended = attended
        self._calls = 0

    def add(self, before: Tensor, after: Tensor) -> None:
        if self._calls in self.wanted:
            self.values[self._calls] = largest_attended(after, self._attended)
        self._calls += 1


def largest_attended(state: Tensor, attended: Tensor) -> Tensor:
    """Return the maximum [B, H] of a state [B, T, H] over the attended tokens, bool Tensor [B, T, 1]."""
    return state.masked_fill(~attended, -torch.inf).amax(dim=1)  # padding is no feature of a text
