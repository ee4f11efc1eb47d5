"""Forward hooks that replace a model's word embeddings and record its normalized hidden states."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor


class EmbeddingHook:
    """Forward hook that replaces the word embeddings that a model looks up.

    Unlike with `inputs_embeds`, the model still reads the token ids, which ESM needs for its token dropout.
    Threads that use the model do not affect each other.
    """

    def __init__(self, lookup: torch.nn.Module) -> None:
        self._thread = threading.local()
        lookup.register_forward_hook(lambda *_: getattr(self._thread, "embeddings", None))

    @contextmanager
    def replaced_by(self, embeddings: Tensor) -> Iterator[None]:
        """Use these embeddings, Tensor [B, T, E], in forward passes inside the `with` block."""
        self._thread.embeddings = embeddings
        try:
            yield
        finally:
            self._thread.embeddings = None


class NormalizationHooks:
    """Forward hooks that record the inputs and outputs of all normalization layers, for each thread."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._thread = threading.local()
        for module in model.modules():
            if "norm" in type(module).__name__.lower():
                module.register_forward_hook(self._record)

    @contextmanager
    def recorded(self) -> Iterator[Normalizations]:
        """Yield a record of the normalizations in a forward pass inside the `with` block."""
        self._thread.normalizations = Normalizations()
        try:
            yield self._thread.normalizations
        finally:
            self._thread.normalizations = None

    def _record(self, module: torch.nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        normalizations = getattr(self._thread, "normalizations", None)
        if normalizations is not None:
            normalizations.add(inputs[0], output)


class Normalizations:
    """Inputs and outputs of normalization layers in one forward pass, by memory address.

    The tensors are kept alive, so that no address is used twice.
    """

    def __init__(self) -> None:
        self._by_input: dict[int, tuple[Tensor, Tensor]] = {}
        self._by_output: dict[int, Tensor] = {}

    def add(self, before: Tensor, after: Tensor) -> None:
        self._by_input.setdefault(before.data_ptr(), (before, after))
        self._by_output[after.data_ptr()] = after

    def normalized(self, state: Tensor) -> Tensor:
        """Return the output of the normalization layer that reads `state`.

        Return `state` itself if it is the output of such a layer, or if none reads it.
        """
        if state.data_ptr() in self._by_output:
            return state
        return self._by_input.get(state.data_ptr(), (state, state))[1]
