"""What models answer as words are erased in given orders, in four ways, kept as small files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from faithmeter.config import BASELINE
from faithmeter.files import atomic
from faithmeter.methods.registry import explain
from faithmeter.models.classifier import Classifier
from faithmeter.models.evaluator import Evaluator
from faithmeter.models.masks import PERCENTS
from faithmeter.models.tokens import Batch

from ..controls.cache import ROOT, Control, make_parts
from ..naopc.rankings import kendall
from . import orders
from .orders import LEVELS, METHODS, REVERSED, TRUTH, Ints, Orders
from .soft import soft_scores

FOLDER = ROOT / "results" / "validation" / "ruler"
STEPS = np.array(PERCENTS)
ROWS_AT_ONCE = 512
"""Inputs that a model reads together."""
FEWER = 40
"""Texts that are erased in other ways than by masks, and whose embeddings are dropped at random."""
DRAWS = 2
"""Random drops of embeddings for each text."""
TRUTHS = tuple(f"{TRUTH} {level}" for level in range(LEVELS + 1))
BESTS = tuple(f"best {level}" for level in range(LEVELS + 1))
"""Names of degraded orders: of the truth, and of the method that measures best."""
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Answers:
    """What a model did as K explanations erased N texts in S steps, in one way.

    Attributes:
        names: Explanations.
        erased: Label's probability with the first words erased, [K, N, S].
        kept: Label's probability with only these words left, [K, N, S]; None if it was not kept.
        right: Whether the prediction with erased words is the label, [K, N, S].
        others: By metric, values that need more than erased words, [K, N]; NaN where undefined.
    """

    names: tuple[str, ...]
    erased: Floats
    kept: Floats | None
    right: NDArray[np.bool_]
    others: dict[str, Floats]


def mask(clf: Classifier, batch: Batch, where: Tensor) -> Tensor:
    """Replace tokens by the mask token."""
    return clf.logits(batch.masked(where, clf.mask_id))


def pad(clf: Classifier, batch: Batch, where: Tensor) -> Tensor:
    """Replace tokens by the padding token, which the model still attends to."""
    return clf.logits(batch.masked(where, int(clf.tokenizer.pad_token_id)))


def remove(clf: Classifier, batch: Batch, where: Tensor) -> Tensor:
    """Remove tokens, so that those behind them move forward."""
    gone = where | (batch.attention_mask == 0)
    order = gone.int().argsort(dim=1, stable=True)
    inputs = {name: values.gather(1, order) for name, values in batch.inputs.items()}
    inputs["attention_mask"] = (~gone).gather(1, order).long()
    return clf.model(**inputs).logits


def blank(clf: Classifier, batch: Batch, where: Tensor) -> Tensor:
    """Replace the word embeddings of tokens by zeros, and keep their places."""
    return clf.logits_at(clf.embed(batch.input_ids).masked_fill(where.unsqueeze(2), 0), batch)


ERASERS: dict[str, Callable[[Classifier, Batch, Tensor], Tensor]] = {
    "mask": mask, "pad": pad, "removal": remove, "blank": blank,
}  # fmt: skip
"""Ways to erase, each a function that returns the logits with tokens erased."""


EVERY_WAY = ("word", "first")
"""Tasks whose texts are erased in all ways; the others' only by masks."""


def ways(control: Control) -> tuple[str, ...]:
    """Return the ways in which a model's texts are erased."""
    everything = control.task in EVERY_WAY and control.encoder == "embedded" and not control.seed
    return tuple(ERASERS) if everything else ("mask",)


def file_of(control: Control) -> Path:
    return FOLDER / f"{control.name}.npz"


def collect(control: Control, clf: Classifier, *, degraded: bool = True) -> None:
    """Erase the test texts of a model in all orders and ways, degraded ones or not, and write its file."""
    part = make_parts(control)["test"]
    batch = clf.encode(list(part.planted.texts), part.pairs and list(part.pairs))[: control.explained]
    labels = torch.tensor(part.planted.labels[: control.explained])
    known = _methods(clf, batch, labels)
    rng = np.random.default_rng(control.seed)
    planted = any(part.planted.truth)
    if planted:
        truth = orders.order_truth(batch, part.planted.truth[: len(batch)], rng)
        known |= _ladder(TRUTHS, truth, rng) if degraded else {TRUTHS[0]: truth}
    mild = list(known)  # explanations that are erased in other ways, too
    if planted and degraded:
        known |= _ladder(BESTS, known[_best(clf, batch, labels, known)], rng)
    arrays = {"names": np.array(list(known)), "mild": np.array(mild), "labels": labels.numpy()}
    few = slice(FEWER)
    for name in ways(control):
        chosen, rows = (list(known), slice(None)) if name == "mask" else (mild, few)
        ranks = orders.ranks(batch[rows], [known[each][rows] for each in chosen])
        for kind, values in erase_all(clf, batch[rows], labels[rows], ranks, name).items():
            arrays[f"{name} {kind}"] = values
    ranks = orders.ranks(batch, [known[each] for each in mild])
    arrays["agreement"] = _agree(clf, batch, labels, ranks)
    soft = soft_scores(clf, batch[few], labels[few], ranks[:, few], DRAWS, rng)
    arrays |= {f"soft {name}": values for name, values in soft.items()}
    file_of(control).parent.mkdir(exist_ok=True)
    with atomic(file_of(control)) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **{name: _small(values) for name, values in arrays.items()})


def read(control: Control, way: str = "mask") -> Answers:
    """Read the answers of a model to texts erased in one way."""
    with np.load(file_of(control)) as file:
        names = file["names" if way == "mask" else "mild"].tolist()
        erased, kept, right = (
            np.swapaxes(file[f"{way} {kind}"], 0, 1) for kind in ("erased", "kept", "right")
        )
        others = {}
        if way == "mask":
            for kind in ("agreement", "soft NC", "soft NS"):
                values = np.full((len(names), erased.shape[1]), np.nan)
                values[: len(file["mild"]), : file[kind].shape[1]] = file[kind]
                others[kind] = values
    return Answers(tuple(names), erased.astype(float), kept.astype(float), right.astype(bool), others)


def erase_all(clf: Classifier, batch: Batch, labels: Tensor, ranks: Ints, way: str) -> dict[str, Floats]:
    """Return what the model answers to all steps of K orders, arrays [N, K, S]; equal inputs are read once.

    The texts come first because neighboring orders of one text share inputs, which compresses well.
    """
    explained = batch.explained.numpy()
    counts = explained.sum(axis=1)[:, None] * STEPS // 100  # [N, S]
    shape = (len(batch), len(ranks), len(STEPS))
    early = np.swapaxes(ranks, 0, 1)[:, :, None, :] < counts[:, None, :, None]  # [N, K, S, T]
    variants = np.stack([early, ~early]) & explained[:, None, None, :]
    rows = np.broadcast_to(np.arange(len(batch))[:, None, None], (2, *shape)).reshape(-1)
    flat = variants.reshape(len(rows), -1)
    keys = np.column_stack([rows, np.packbits(flat, axis=1)])
    _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    own = torch.from_numpy(rows[first])
    logits = _evaluate(clf, batch, own, torch.from_numpy(flat[first]), way)
    label = labels[own]
    values = logits.softmax(dim=1).gather(1, label[:, None])[:, 0].numpy()[inverse].reshape(2, *shape)
    right = (logits.argmax(dim=1) == label).numpy()[inverse].reshape(2, *shape)
    return {"erased": values[0], "kept": values[1], "right": right[0]}


def _evaluate(clf: Classifier, batch: Batch, rows: Tensor, where: Tensor, way: str) -> Tensor:
    """Return the logits [M, C] of texts with some tokens erased; texts of like length are read together."""
    lengths = batch.attention_mask.sum(dim=1)[rows]
    parts = lengths.argsort(stable=True).split(ROWS_AT_ONCE)
    logits = []
    with torch.inference_mode():
        for part in parts:
            width = int(lengths[part].max())
            texts = batch[rows[part]].narrowed(width)
            logits.append(ERASERS[way](clf, texts, where[part, :width]).double())
    return torch.cat(logits)[torch.cat(parts).argsort()]


def _methods(clf: Classifier, batch: Batch, labels: Tensor) -> dict[str, Orders]:
    evaluator = Evaluator(clf)
    known = {name: orders.order_method(evaluator, batch, labels, name) for name in METHODS}
    return known | {REVERSED: [order[::-1] for order in known[METHODS[0]]]}


def _ladder(names: tuple[str, ...], start: Orders, rng: np.random.Generator) -> dict[str, Orders]:
    degraded = [orders.degrade(order, rng) for order in start]
    return {name: [levels[level] for levels in degraded] for level, name in enumerate(names)}


def _best(clf: Classifier, batch: Batch, labels: Tensor, known: dict[str, Orders]) -> str:
    """Return the method whose erasure leaves the label the least probability, not below full erasure."""
    names = [name for name in METHODS if name != BASELINE]
    ranks = orders.ranks(batch, [known[name] for name in names])
    curves = erase_all(clf, batch, labels, ranks, "mask")["erased"].mean(axis=0)  # [K, S]
    return names[int(np.maximum(curves, curves[:, -1:]).mean(axis=1).argmin())]


def _agree(clf: Classifier, batch: Batch, labels: Tensor, ranks: Ints) -> Floats:
    """Return Kendall's τ [K, N] between each order and the fall of the label's logit without each word."""
    scores = explain(Evaluator(clf), batch, labels, "loo-sign").numpy()
    result = np.full(ranks.shape[:2], np.nan)
    for row, explained in enumerate(batch.explained.numpy()):
        result[:, row] = kendall(-ranks[:, row, explained].astype(float), scores[row, explained])
    return result


def _small(values: NDArray[np.generic]) -> NDArray[np.generic]:
    return values.astype(np.float16) if values.dtype.kind == "f" else values
