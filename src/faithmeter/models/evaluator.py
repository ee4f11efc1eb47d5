"""Any number of masked variants of any number of texts → logits, each evaluation made once, and counted."""

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
"""Tokens in a micro-batch. A CPU core is as fast with few; few leave work for every stream."""
KEYS_AT_ONCE = 8192
ENTRY_BYTES = 250
"""What Python spends on one remembered result besides its numbers."""
VOCABULARY_BLOCK = 4096

Result = TypeVar("Result")


class Model(Protocol):
    """What the evaluator needs of a classifier; gradient methods need all that `model.Classifier` has."""

    @property
    def mask_id(self) -> int: ...

    @property
    def device(self) -> torch.device: ...

    def logits(self, batch: Batch) -> Tensor: ...  # [B, C]


class Evaluator:
    """A classifier that remembers: it goes wherever a Classifier goes, and all who have it share results.

    Logits are float64 on the CPU, whatever the model computes in. All that is not defined here is the
    classifier's. Make a new one when the model's weights have changed.

    `budget` is the number of tokens in a micro-batch; `streams` the number of threads that work on
    micro-batches at the same time, each on one core, which changes no digit; `memory` bounds the remembered
    results, in bytes; `progress` is called with the number of evaluations just made.
    """

    def __init__(
        self,
        clf: Model,
        *,
        budget: int | None = None,
        streams: int | None = None,
        memory: int = 2**28,
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
        """The evaluator itself, or a new one for a classifier that is none yet."""
        return clf if isinstance(clf, Evaluator) else cls(clf)

    def __getattr__(self, name: str) -> Any:
        if name == "clf":  # not set yet, as in a copy being made
            raise AttributeError(name)
        return getattr(self.clf, name)

    @property
    def mask_id(self) -> int:
        return self.clf.mask_id

    @property
    def device(self) -> torch.device:
        return self.clf.device

    def logits(self, batch: Batch) -> Tensor:
        """[B, C] of the texts as they are."""
        return self.variants(batch, torch.arange(len(batch)), torch.zeros_like(batch.explained))

    def variants(self, batch: Batch, rows: Tensor, where: Tensor) -> Tensor:
        """[K, C]: logits of text `rows[k]` with the mask token wherever `where[k]`, of [K, T], is true."""
        batch, rows, where = batch.to(torch.device("cpu")), rows.cpu(), where.cpu()
        keys = _keys(batch, rows, where, self.mask_id)
        known = [self.memory.get(key) for key in keys]
        new: dict[bytes, int] = {}  # the first variant with this input stands for all of them
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
        """(items, `work(micro_batch, items)`) until every one of `rows` was worked on once.

        `micro_batch` holds the texts `rows[items]`, hardly padded. Each item counts as an evaluation. Texts
        `alone` on a CPU are not put together: their neighbors cannot change how sums are rounded.
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
        """Begin anew, as if nothing had been evaluated."""
        self.memory.clear()

    @cached_property
    def gram(self) -> Tensor:
        """[E, E] float64: EᵀE of the word embeddings, which makes norms over the vocabulary cheap."""
        blocks = self.embedding_matrix().detach().split(VOCABULARY_BLOCK)
        return torch.stack([block.double().T @ block.double() for block in blocks]).sum(dim=0)


class Memory:
    """Results by key; beyond `limit` bytes, those that were not asked for the longest are forgotten."""

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
    """Micro-batches as positions in `lengths`: longest first, at most `budget` tokens, hardly any padding."""
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
    """[B]: the logit of each row's label."""
    labels = labels.to(logits.device)
    wrong = labels[(labels < 0) | (labels >= logits.shape[1])]
    if len(wrong):
        raise InputError(
            f"label {int(wrong[0])} is not one of the model's classes; expected 0 to {logits.shape[1] - 1}"
        )
    return logits.gather(1, labels[:, None])[:, 0]


def require_finite(logits: Tensor, index: Tensor) -> None:
    """Logits that are no numbers have no rank: say which text's they are, by `index`, the row numbers."""
    broken = ~logits.isfinite().all(dim=1)
    if broken.any():
        raise InputError(
            f"the model's logits for text {int(index[broken][0])} are {logits[broken][0].tolist()}; expected "
            "finite numbers: the checkpoint is broken, or its precision too low (try float32)"
        )


def _in_streams(work: Callable[[Tensor], Result], parts: Sequence[Tensor], streams: int) -> Iterator[Result]:
    """`work` of all parts, in order, by threads that compute on one core each.

    One stream works the same way, so that the number of streams cannot change a digit.
    """
    if not parts:
        return
    # each thread has a number of its own, but who sets it sets that of new threads as well
    threads = torch.get_num_threads()
    executor = ThreadPoolExecutor(streams, initializer=torch.set_num_threads, initargs=(1,))
    try:
        yield from executor.map(work, parts)
    finally:
        executor.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)


def _keys(batch: Batch, rows: Tensor, where: Tensor, mask_id: int) -> list[bytes]:
    """What the model would read, as digests: equal keys, equal inputs."""
    lengths = batch.attention_mask.sum(dim=1).tolist()
    types = batch.token_type_ids
    salts = [b"" if types is None else types[i, :n].numpy().tobytes() for i, n in enumerate(lengths)]
    keys = []
    for part, masks in zip(torch.split(rows, KEYS_AT_ONCE), torch.split(where, KEYS_AT_ONCE), strict=True):
        ids: np.ndarray[Any, np.dtype[np.int64]] = batch.input_ids[part].masked_fill(masks, mask_id).numpy()
        for row, tokens in zip(part.tolist(), ids, strict=True):
            keys.append(blake2b(tokens[: lengths[row]].tobytes() + salts[row], digest_size=16).digest())
    return keys
