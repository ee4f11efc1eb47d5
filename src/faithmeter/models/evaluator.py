"""Masked variants of texts → logits: in micro-batches, each different input evaluated once and counted."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from hashlib import blake2b
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from ..errors import InputError
from .tokens import Batch

CPU_BUDGET, GPU_BUDGET = 1024, 32768
"""Tokens in a micro-batch. Small ones are as fast on a CPU core, and leave work for every stream."""
KEYS_AT_ONCE = 8192
"""Variants whose keys are made together, which bounds memory."""
ENTRY_BYTES = 250
"""Bytes that Python spends on one cached result besides its numbers."""
DEFAULT_MEMORY = 2**28
"""Bytes of cached results."""
VOCABULARY_BLOCK = 4096
"""Embeddings that are multiplied together, which bounds memory."""

Result = TypeVar("Result")


class Model(Protocol):
    """Part of a classifier that the evaluator uses; gradient methods use all of `Classifier`."""

    @property
    def mask_id(self) -> int: ...

    @property
    def device(self) -> torch.device: ...

    def logits(self, batch: Batch) -> Tensor: ...  # [B, C]


class Evaluator:
    """A classifier that caches its logits; it can replace a Classifier anywhere.

    Logits are float64 on the CPU, whatever type the model computes in. Attributes that are not defined here
    are those of the classifier. Make a new evaluator when the model's weights have changed.

    Args:
        clf: The classifier.
        budget: Tokens in a micro-batch; by default it fits the device.
        streams: Threads that work on micro-batches at the same time, each on one core; results do not
            depend on their number.
        memory: Limit of the cached results, in bytes.
        progress: Called with the number of evaluations just done.

    Example:
        >>> evaluator = fm.Evaluator(clf)
        >>> evaluator.logits(batch).shape == clf.logits(batch).shape
        True
    """

    def __init__(
        self,
        clf: Model,
        *,
        budget: int | None = None,
        streams: int | None = None,
        memory: int = DEFAULT_MEMORY,
        progress: Callable[[int], object] | None = None,
    ) -> None:
        on_cpu = clf.device.type == "cpu"
        self.clf = clf
        self.budget = budget or (CPU_BUDGET if on_cpu else GPU_BUDGET)
        self.streams = streams or (torch.get_num_threads() if on_cpu else 1)
        self.memory = Memory(memory)
        self.progress = progress
        self.evaluations = 0

    @classmethod
    def of(cls, clf: Model) -> Evaluator:
        """Return `clf` if it is an evaluator, otherwise a new one for it."""
        return clf if isinstance(clf, Evaluator) else cls(clf)

    def __getattr__(self, name: str) -> Any:
        if name == "clf":  # not set yet while a copy is being built
            raise AttributeError(name)
        return getattr(self.clf, name)

    @property
    def mask_id(self) -> int:
        """Id of the mask token."""
        return self.clf.mask_id

    @property
    def device(self) -> torch.device:
        """Device of the model."""
        return self.clf.device

    def logits(self, batch: Batch) -> Tensor:
        """Return the logits of the texts, Tensor [B, C]."""
        return self.variants(batch, torch.arange(len(batch)), torch.zeros_like(batch.explained))

    def variants(self, batch: Batch, rows: Tensor, where: Tensor) -> Tensor:
        """Return the logits of masked variants of texts.

        Args:
            batch: The texts.
            rows: For each variant the row of its text, Tensor [K].
            where: The tokens to mask in each variant, bool Tensor [K, T].

        Returns:
            Logits, float64 Tensor [K, C].
        """
        batch, rows, where = batch.to(torch.device("cpu")), rows.cpu(), where.cpu()
        keys = _keys(batch, rows, where, self.mask_id)
        known = [self.memory.get(key) for key in keys]
        new: dict[bytes, int] = {}  # key → the first of all variants with this input
        for variant, (key, value) in enumerate(zip(keys, known, strict=True)):
            if value is None:
                new.setdefault(key, variant)
        chosen = torch.tensor(list(new.values()), dtype=torch.long)

        def evaluate(micro: Batch, items: Tensor) -> Tensor:
            masked = micro.masked(where[chosen[items], : micro.input_ids.shape[1]], self.mask_id)
            with torch.inference_mode():
                return self.clf.logits(masked).double().cpu()

        fresh: dict[bytes, bytes] = {}
        for items, logits in self.map(evaluate, batch, rows[chosen]):
            require_finite(logits, batch.index[rows[chosen[items]]])
            for variant, row in zip(chosen[items].tolist(), logits.numpy(), strict=True):
                fresh[keys[variant]] = row.tobytes()
        self.memory.update(fresh)
        values = [fresh[key] if value is None else value for key, value in zip(keys, known, strict=True)]
        return torch.frombuffer(bytearray(b"".join(values)), dtype=torch.float64).reshape(len(keys), -1)

    def map(
        self, work: Callable[[Batch, Tensor], Result], batch: Batch, rows: Tensor, *, alone: bool = False
    ) -> Iterator[tuple[Tensor, Result]]:
        """Yield `(items, work(micro_batch, items))` until each of `rows` has been worked on once.

        `micro_batch` holds the texts `rows[items]` with little padding. Each item counts as an evaluation.
        With `alone`, each text has a micro-batch of its own on a CPU, so that no neighbor changes rounding.
        """
        budget = 1 if alone and self.device.type == "cpu" else self.budget
        lengths = batch.attention_mask.sum(dim=1)[rows].tolist()

        def one(items: Tensor) -> tuple[Tensor, Result]:
            return items, work(batch[rows[items]].narrowed(max(lengths[i] for i in items.tolist())), items)

        for items, result in _in_streams(one, plan(lengths, budget), self.streams):
            self.evaluations += len(items)
            if self.progress is not None:
                self.progress(len(items))
            yield items, result

    def forget(self) -> None:
        """Empty the cache."""
        self.memory.clear()

    @cached_property
    def gram(self) -> Tensor:
        """EᵀE of the word embeddings, float64 Tensor [E, E]; it makes norms over the vocabulary cheap."""
        blocks = self.embedding_matrix().detach().split(VOCABULARY_BLOCK)
        return torch.stack([block.double().T @ block.double() for block in blocks]).sum(dim=0)


class Memory:
    """Cache of results by key; beyond `limit` bytes it drops the least recently used."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self._values: OrderedDict[bytes, bytes] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def clear(self) -> None:
        self._values.clear()
        self.used = 0

    def get(self, key: bytes) -> bytes | None:
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def update(self, values: dict[bytes, bytes]) -> None:
        """Add results whose keys are new."""
        for key, value in values.items():
            self._values[key] = value
            self.used += len(value) + ENTRY_BYTES
            while self.used > self.limit:
                self.used -= len(self._values.popitem(last=False)[1]) + ENTRY_BYTES


def plan(lengths: Sequence[int], budget: int) -> list[Tensor]:
    """Return micro-batches as positions in `lengths`: longest first, up to `budget` tokens each."""
    groups: list[list[int]] = []
    longest = 0
    for position in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        length = lengths[position]
        full = groups and (len(groups[-1]) + 1) * longest > budget
        if not groups or full or longest - length > max(4, longest // 8):
            groups.append([])
            longest = length
        groups[-1].append(position)
    return [torch.tensor(group) for group in groups]


def pick(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the logit of each row's label, Tensor [B]."""
    labels = labels.to(logits.device)
    wrong = labels[(labels < 0) | (labels >= logits.shape[1])]
    if len(wrong):
        raise InputError(
            f"label {int(wrong[0])} is not one of the model's classes; expected 0 to {logits.shape[1] - 1}"
        )
    return logits.gather(1, labels[:, None])[:, 0]


def require_finite(logits: Tensor, index: Tensor) -> None:
    """Raise an InputError that names the first text with NaN or infinite logits, by its row number."""
    broken = ~logits.isfinite().all(dim=1)
    if broken.any():
        raise InputError(
            f"the model's logits for text {int(index[broken][0])} are {logits[broken][0].tolist()}; expected "
            "finite numbers: the checkpoint is broken, or its precision too low (try float32)"
        )


def _in_streams(work: Callable[[Tensor], Result], parts: Sequence[Tensor], streams: int) -> Iterator[Result]:
    """Yield `work(part)` for all parts, in order, computed by threads on one core each.

    A single stream uses a thread as well, so that results do not depend on the number of streams.
    """
    if not parts:
        return
    # each thread has its own number of cores, but setting it also sets that of new threads
    threads = torch.get_num_threads()
    executor = ThreadPoolExecutor(streams, initializer=torch.set_num_threads, initargs=(1,))
    try:
        yield from executor.map(work, parts)
    finally:
        executor.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)


def _keys(batch: Batch, rows: Tensor, where: Tensor, mask_id: int) -> list[bytes]:
    """Return digests of the variants' inputs: equal keys mean equal inputs."""
    lengths = batch.attention_mask.sum(dim=1).tolist()
    types = batch.token_type_ids
    salts = [b"" if types is None else types[i, :n].numpy().tobytes() for i, n in enumerate(lengths)]
    keys = []
    for part, masks in zip(torch.split(rows, KEYS_AT_ONCE), torch.split(where, KEYS_AT_ONCE), strict=True):
        ids: np.ndarray[Any, np.dtype[np.int64]] = batch.input_ids[part].masked_fill(masks, mask_id).numpy()
        for row, tokens in zip(part.tolist(), ids, strict=True):
            keys.append(blake2b(tokens[: lengths[row]].tobytes() + salts[row], digest_size=16).digest())
    return keys
