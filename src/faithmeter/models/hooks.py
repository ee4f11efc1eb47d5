"""Hooks in a model's forward pass: given word embeddings go in, normalized hidden states come out."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor


class EmbeddingHook:
    """Replaces the word embeddings that a model looks up by given ones.

    The model still reads the ids, which some need for more (ESM's token dropout); `inputs_embeds` would hide
    them. Threads that use the model do not affect each other.
    """

    def __init__(self, lookup: torch.nn.Module) -> None:
        self._thread = threading.local()
        lookup.register_forward_hook(lambda *_: getattr(self._thread, "embeddings", None))

    @contextmanager
    def replaced_by(self, embeddings: Tensor) -> Iterator[None]:
        """Make forward passes in the block use these embeddings, Tensor [B, T, E]."""
        self._thread.embeddings = embeddings
        try:
            yield
        finally:
            self._thread.embeddings = None


class NormalizationHooks:
    """Records inputs and outputs of all normalization layers of a model, for each thread apart."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._thread = threading.local()
        for module in model.modules():
            if "norm" in type(module).__name__.lower():
                module.register_forward_hook(self._record)

    @contextmanager
    def recorded(self) -> Iterator[Normalizations]:
        """Record the normalizations of a forward pass inside the `with` block; yield the record."""
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
    """Inputs and outputs of normalization layers in one forward pass, by address.

    Keeping the tensors alive keeps an address from being used twice.
    """

    def __init__(self) -> None:
        self._by_input: dict[int, tuple[Tensor, Tensor]] = {}
        self._by_output: dict[int, Tensor] = {}

    def add(self, before: Tensor, after: Tensor) -> None:
        self._by_input.setdefault(before.data_ptr(), (before, after))
        self._by_output[after.data_ptr()] = after

    def normalized(self, state: Tensor) -> Tensor:
        """Return the output of the normalization that reads `state`, or `state` if it is one itself."""
        if state.data_ptr() in self._by_output:
            return state
        return self._by_input.get(state.data_ptr(), (state, state))[1]
