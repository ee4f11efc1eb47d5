"""Evaluation of masked variants of texts in micro-batches, with a cache and a count of evaluations."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property, reduce
from hashlib import blake2b
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from ..errors import InputError
from .devices import is_out_of_memory, release_memory, send, start_cost, token_budget, wide_type
from .tokens import Batch, whole_units
from .windows import Windows, average

KEYS_AT_ONCE = 8192
"""Number of variants whose keys are computed together, which limits the memory needed."""
ENTRY_BYTES = 250
"""Memory overhead of a cached result, in bytes."""
DEFAULT_MEMORY = 2**28
"""Default limit of the cache, in bytes."""
VOCABULARY_BLOCK = 4096
"""Number of embeddings that are multiplied together, which limits the memory needed."""

Result = TypeVar("Result")


class Model(Protocol):
    """Interface of a classifier that the evaluator needs; gradient methods need all of `Classifier`."""

    @property
    def mask_id(self) -> int: ...

    @property
    def device(self) -> torch.device: ...

    def logits(self, batch: Batch) -> Tensor: ...  # [B, C]


OPTIONAL: dict[str, Any] = {
    "precision": "fp32",
    "predicts_number": False,
    "classified_only": nullcontext,
    "windows": lambda batch: None,
}
"""Attributes of a `Classifier` that a model may lack, with what then holds."""


class Evaluator:
    """Classifier that caches its logits; it can replace a `Classifier` anywhere.

    Logits are float64 on the CPU, whatever the precision of the model. Attributes that are not defined here
    are those of the classifier. Create a new evaluator after the model's weights have changed.

    Args:
        clf: The classifier.
        budget: Maximum number of tokens in a micro-batch; the default depends on the device. It is reduced
            when memory runs out.
        streams: Number of threads that evaluate micro-batches in parallel, each on one core. It does not
            affect results.
        memory: Limit of the cache, in bytes.
        progress: Function that is called after each micro-batch with its number of evaluations.

    Example:
        >>> evaluator = Evaluator(clf)
        >>> evaluator.logits(batch).shape == clf.logits(batch).shape
        True
    """

    mask_id: int
    device: torch.device
    precision: str
    predicts_number: bool
    classified_only: Callable[[], AbstractContextManager[None]]
    windows: Callable[[Batch], Windows | None]

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
        self.budget = budget or token_budget(getattr(clf, "model", None), clf.device)
        self.start = start_cost(getattr(clf, "model", None), clf.device)
        self.streams = streams or (torch.get_num_threads() if on_cpu else 1)
        self.memory = Memory(memory)
        self.progress = progress
        self.evaluations = 0
        self.requested: dict[bytes, bool] | None = None
        """Inputs requested so far, and whether the cache answered the first request; None: not recorded."""

    @classmethod
    def of(cls, clf: Model) -> Evaluator:
        """Return `clf` itself if it is an evaluator, otherwise a new evaluator for it."""
        return clf if isinstance(clf, Evaluator) else cls(clf)

    def __getattr__(self, name: str) -> Any:
        if name == "clf":  # not set yet while a copy is being built
            raise AttributeError(name)
        return getattr(self.clf, name, OPTIONAL[name]) if name in OPTIONAL else getattr(self.clf, name)

    def count_windows(self, batch: Batch) -> list[int]:
        """Return the number of windows in which the model reads each text."""
        windows = self.windows(batch)
        return [1] * len(batch) if windows is None else windows.counts

    def logits(self, batch: Batch) -> Tensor:
        """Return the logits of the texts, float64 Tensor [B, C]."""
        return self.variants(batch, torch.arange(len(batch)), torch.zeros_like(batch.explained))

    def variants(self, batch: Batch, rows: Tensor, where: Tensor) -> Tensor:
        """Return the logits of masked variants of texts.

        Args:
            batch: The texts.
            rows: Row of each variant's text in the batch, Tensor [K].
            where: Tokens to mask in each variant, bool Tensor [K, T]; units are masked as a whole.

        Returns:
            Logits, float64 Tensor [K, C].

        Raises:
            InputError: A logit is not finite.
        """
        batch, rows, where = batch.to(torch.device("cpu")), rows.cpu(), where.cpu()
        where = where if batch.units is None else whole_units(where, batch.units[rows])
        windows = self.windows(batch)
        if windows is not None:
            parts, masks, counts = windows.of_variants(rows, where)
            return average(self._variants(windows.batch, parts, masks), counts)
        return self._variants(batch, rows, where)

    def _variants(self, batch: Batch, rows: Tensor, where: Tensor) -> Tensor:
        """Return the logits of masked variants of texts that the model can read whole."""
        keys = _keys(batch, rows, where, self.mask_id)
        known = [*map(self.memory.get, keys)]
        new: dict[bytes, int] = {}  # key → the first of all variants with this input
        for variant, (key, value) in enumerate(zip(keys, known, strict=True)):
            if self.requested is not None:
                self.requested.setdefault(key, value is not None)
            if value is None:
                new.setdefault(key, variant)
        chosen = torch.tensor(list(new.values()), dtype=torch.long)

        classified_only = self.classified_only  # hooks are set by one thread

        def evaluate(micro: Batch, items: Tensor) -> tuple[Tensor]:
            masked = micro.masked(where[chosen[items], : micro.input_ids.shape[1]], self.mask_id)
            with torch.inference_mode(), classified_only():
                return (self.clf.logits(masked),)

        fresh: dict[bytes, bytes] = {}
        if new:
            logits = self.gather(evaluate, batch, rows[chosen])[0].double()
            require_finite(logits, batch.index[rows[chosen]])
            fresh = {key: row.tobytes() for key, row in zip(new, logits.numpy(), strict=True)}
            self.memory.update(fresh)
        values = [fresh[key] if value is None else value for key, value in zip(keys, known, strict=True)]
        return torch.frombuffer(bytearray(b"".join(values)), dtype=torch.float64).reshape(len(keys), -1)

    def gather(
        self, work: Callable[[Batch, Tensor], tuple[Tensor, ...]], batch: Batch, rows: Tensor
    ) -> tuple[Tensor, ...]:
        """Return the results of `work` for all `rows`, in their order, on the CPU.

        The results stay on the device until all work is queued there, and are then copied together.
        """
        items, results = zip(*self.map(work, batch, rows), strict=True)
        order = torch.cat(items).argsort()
        return tuple(torch.cat(parts).cpu()[order] for parts in zip(*results, strict=True))

    def map(
        self, work: Callable[[Batch, Tensor], Result], batch: Batch, rows: Tensor
    ) -> Iterator[tuple[Tensor, Result]]:
        """Divide `rows` into micro-batches and yield `(items, work(micro_batch, items))` for each of them.

        `items` are positions in `rows`; `micro_batch` holds the texts `rows[items]` with little padding. Each
        window of an item counts as one evaluation. A micro-batch that does not fit into memory is split.
        """
        lengths = batch.attention_mask.sum(dim=1)[rows]  # [K]
        windows = torch.tensor(self.count_windows(batch))[rows]

        def one(items: Tensor) -> tuple[Tensor, Result | None]:
            micro = batch[rows[items]].narrowed(int(lengths[items].max()))
            if len(items) > 1 and micro.input_ids.numel() > self.budget:  # planned before memory ran out
                return items, None
            try:
                return items, work(micro, items)
            except RuntimeError as error:
                if not is_out_of_memory(error):
                    raise
            self._shrink(micro)
            return items, None

        pending = torch.arange(len(lengths))
        while len(pending):
            left = [pending[:0]]
            groups = plan(lengths[pending].tolist(), self.budget, self.start)
            for items, result in _in_streams(one, [*map(pending.__getitem__, groups)], self.streams):
                if result is None:
                    left.append(items)
                    continue
                evaluations = int(windows[items].sum())
                self.evaluations += evaluations
                if self.progress is not None:
                    self.progress(evaluations)
                yield items, result
            pending = torch.cat(left)

    def _shrink(self, micro: Batch) -> None:
        """Reduce the budget to half the size of a micro-batch that did not fit into memory.

        Raises:
            InputError: The micro-batch is a single text, which cannot be split.
        """
        texts, tokens = micro.input_ids.shape
        if texts == 1:
            raise InputError(
                f"a text of {tokens} tokens does not fit into the memory of {self.device}; expected more "
                "free memory: use a smaller model, --precision bf16 or --device cpu"
            )
        self.budget = min(self.budget, texts * tokens // 2)
        release_memory(self.device)

    def forget(self) -> None:
        """Delete all cached logits."""
        self.memory.clear()

    @cached_property
    def gram(self) -> Tensor:
        """Gram matrix EᵀE of the word embeddings, Tensor [E, E], for norms over the vocabulary.

        One thread multiplies a block, and blocks are added in order, so the bits do not depend on the number
        of threads.
        """
        blocks = self.embedding_matrix().detach().to(wide_type(self.device)).split(VOCABULARY_BLOCK)
        return reduce(torch.add, _in_streams(lambda block: block.T @ block, blocks, self.streams))


class Memory:
    """Cache of results by key, limited to `limit` bytes; it drops the least recently used results."""

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
        """Add results with new keys, and drop old results if the limit is exceeded."""
        for key, value in values.items():
            self._values[key] = value
            self.used += len(value) + ENTRY_BYTES
            while self.used > self.limit:
                self.used -= len(self._values.popitem(last=False)[1]) + ENTRY_BYTES


def plan(lengths: Sequence[int], budget: int, start: float = 0.0) -> list[Tensor]:
    """Group texts of similar length into micro-batches of at most `budget` tokens, the longest first.

    Each micro-batch is a tensor of positions in `lengths`. A text longer than `budget` has its own. Texts of
    one length join those of a greater one only where padding them costs less than another micro-batch, which
    costs as much as `start` tokens.
    """
    groups: list[list[int]] = []
    longest = 0
    counts = Counter(lengths)
    before = 0  # length of the text before
    for position in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        length = lengths[position]
        full = groups and (len(groups[-1]) + 1) * longest > budget
        padding = longest - length
        # decided for all texts of a length at once: the leave-one-out variants of a text are padded or not
        wasteful = length < before and counts[length] * padding > start
        if not groups or full or wasteful or padding > max(4, longest // 8):
            groups.append([])
            longest = length
        groups[-1].append(position)
        before = length
    return [*map(torch.tensor, groups)]


def pick(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the logit of each row's label, Tensor [B]; raise an InputError if a label is not a class."""
    wrong = labels[(labels < 0) | (labels >= logits.shape[1])]  # on the host, where labels come from
    if len(wrong):
        raise InputError(
            f"label {int(wrong[0])} is not one of the model's classes; expected 0 to {logits.shape[1] - 1}"
        )
    return logits.gather(1, send(labels, logits.device)[:, None])[:, 0]


def require_finite(logits: Tensor, index: Tensor) -> None:
    """Raise an InputError if a text has NaN or infinite logits; `index` holds the texts' row numbers."""
    broken = ~logits.isfinite().all(dim=1)
    if broken.any():
        raise InputError(
            f"the model's logits for text {int(index[broken][0])} are {logits[broken][0].tolist()}; expected "
            "finite numbers: the checkpoint is broken, or its precision too low (try float32)"
        )


def _in_streams(work: Callable[[Tensor], Result], parts: Sequence[Tensor], streams: int) -> Iterator[Result]:
    """Yield `work(part)` for all parts, in order, computed by `streams` threads on one core each.

    A single stream also uses a separate thread, so that results do not depend on the number of streams.
    """
    if not parts:
        return
    # set_num_threads in a worker thread also changes the default of new threads, so it is restored
    threads = torch.get_num_threads()
    executor = ThreadPoolExecutor(streams, initializer=torch.set_num_threads, initargs=(1,))
    try:
        yield from executor.map(work, parts)
    finally:
        executor.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)


def _keys(batch: Batch, rows: Tensor, where: Tensor, mask_id: int) -> list[bytes]:
    """Return a digest of each variant's input, under which its logits are cached."""
    lengths = batch.attention_mask.sum(dim=1).tolist()
    types = batch.token_type_ids
    salts = [b"" if types is None else types[i, :n].numpy().tobytes() for i, n in enumerate(lengths)]
    keys = []
    for part, masks in zip(torch.split(rows, KEYS_AT_ONCE), torch.split(where, KEYS_AT_ONCE), strict=True):
        ids: np.ndarray[Any, np.dtype[np.int64]] = batch.input_ids[part].masked_fill(masks, mask_id).numpy()
        for row, tokens in zip(part.tolist(), ids, strict=True):
            keys.append(blake2b(tokens[: lengths[row]].tobytes() + salts[row], digest_size=16).digest())
    return keys
