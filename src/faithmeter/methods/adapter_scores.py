"""Scores by explainers of other libraries, for `adapters`; the model's forward passes are counted."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..errors import InputError
from ..models.alignment import TextScores, align
from ..models.evaluator import Evaluator
from ..models.tokens import Batch

Explainer = Any
"""Class or object of another library."""


def is_class(explainer: Explainer) -> bool:
    """Return whether it is a class, which is made for a classifier, or an object with a model of its own."""
    return inspect.isclass(explainer)


@contextmanager
def counted(clf: Evaluator) -> Iterator[None]:
    """Count the texts in all forward passes of the model in this block as evaluations of `clf`."""
    rows: list[int] = []
    model = getattr(clf, "model", None)
    if model is None:
        yield
        return
    before = clf.evaluations
    handle = model.register_forward_hook(lambda module, inputs, output: rows.append(len(output.logits)))
    try:
        yield
    finally:
        handle.remove()
        clf.evaluations = before + sum(rows)


@contextmanager
def eager_attention(model: Any) -> Iterator[None]:
    """Make the model compute attention in a way that returns its weights."""
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    try:
        yield
    finally:
        model.set_attn_implementation(before)


def require_whole_texts(clf: Evaluator, batch: Batch) -> None:
    """Raise an InputError if the model reads a text in windows, of which another library knows nothing."""
    long = [row for row, windows in enumerate(clf.count_windows(batch)) if windows > 1]
    if long:
        raise InputError(
            f"text {int(batch.index[long[0]])} is read in windows, which this method cannot explain; "
            f"expected texts of at most {clf.max_length} tokens: leave out --overlap, or take a method of "
            "faithmeter"
        )


def _each_text(batch: Batch, labels: Tensor) -> Iterator[tuple[int, Batch, int]]:
    """Yield each text with its row and label, without padding."""
    for row, length in enumerate(batch.attention_mask.sum(dim=1).tolist()):
        yield row, batch[[row]].narrowed(length), int(labels[row])


def captum_scores(
    attribution: Explainer, options: dict[str, object], clf: Evaluator, batch: Batch, labels: Tensor
) -> Tensor:
    """Return the attributions of each text by captum, summed over the embedding."""
    require_whole_texts(clf, batch)
    result = torch.zeros(batch.input_ids.shape, dtype=torch.float64)
    for row, one, label in _each_text(batch, labels):
        scores = _captum_call(attribution, options, clf, one.to(clf.device), label).detach().cpu().double()
        scores = scores.sum(dim=-1) if scores.ndim == 3 else scores.masked_fill(~one.explained, 0)
        result[row, : scores.shape[1]] = scores[0]
    return result


def _captum_call(
    attribution: Explainer, options: dict[str, object], clf: Evaluator, one: Batch, label: int
) -> Tensor:
    """Return the attributions of one text: [1, T], or [1, T, E] of embeddings."""
    ids, rest = one.input_ids, tuple(one.inputs.values())[1:]
    if not is_class(attribution):
        return _tensor(attribution.attribute(ids, target=label, additional_forward_args=rest, **options))
    covered = one.covered

    def from_ids(ids: Tensor, *rest: Tensor) -> Tensor:
        logits: Tensor = clf.model(**dict(zip(one.inputs, (ids, *rest), strict=True))).logits
        return logits

    def from_masked(changed: Tensor, *rest: Tensor) -> Tensor:
        return from_ids(torch.where(covered, changed, ids), *rest)

    def from_embeddings(embeddings: Tensor) -> Tensor:
        logits: Tensor = clf.logits_at(embeddings, one[[0] * len(embeddings)])
        return logits

    parameters = inspect.signature(attribution.attribute).parameters
    masks = torch.full_like(ids, clf.mask_id)
    if "layer" in inspect.signature(attribution.__init__).parameters:
        explainer = attribution(from_ids, clf.model.get_input_embeddings())
        defaults = {"baselines": masks, "additional_forward_args": rest}
        inputs = ids
    elif any(base.__name__ == "GradientAttribution" for base in attribution.__mro__):
        explainer, inputs, defaults = attribution(from_embeddings), clf.embed(ids).detach(), {}
    else:
        explainer, inputs = attribution(from_masked), ids
        features = (one.explained.cumsum(dim=1) - 1).clamp(min=0)
        features = features if one.units is None else features.gather(1, one.units.clamp(min=0))
        features = features.masked_fill(~covered, int(one.explained.sum()))  # changes nothing
        defaults = {"baselines": masks, "additional_forward_args": rest, "feature_mask": features}
    known = {key: value for key, value in defaults.items() if key in parameters}
    return _tensor(explainer.attribute(inputs, target=label, **{**known, **options}))


def _tensor(attributions: object) -> Tensor:
    if not isinstance(attributions, Tensor):
        kind = type(attributions).__name__
        raise InputError(f"captum returned {kind}; expected one tensor of scores: leave out return_… options")
    return attributions


def shap_values(
    explainer: Explainer, options: dict[str, object], clf: Evaluator, batch: Batch, labels: Tensor
) -> Tensor:
    """Return the shap values of the unmasked tokens: players of a game whose value is the label's logit."""
    library = _library("shap")
    result = torch.zeros(batch.input_ids.shape, dtype=torch.float64)
    for row, label in enumerate(labels.tolist()):
        positions = (batch.explained[row] & (batch.input_ids[row] != clf.mask_id)).nonzero()[:, 0]
        if not len(positions):
            continue
        value = partial(_logits_without, clf, batch, row, label, positions)
        nothing, everything = np.zeros((1, len(positions))), np.ones((1, len(positions)))
        masker = library.maskers.Independent(nothing, max_samples=1)
        values = explainer(value, masker)(everything, **options).values
        result[row, positions] = torch.as_tensor(np.asarray(values, dtype=float)[0])
    return result


def _logits_without(
    clf: Evaluator, batch: Batch, row: int, label: int, positions: Tensor, present: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    """Return the label's logit with only the tokens unmasked that are present, [K] for [K, n]."""
    where = torch.zeros(len(present), batch.input_ids.shape[1], dtype=torch.bool)
    where[:, positions] = torch.from_numpy(np.asarray(present) == 0)
    logits = clf.variants(batch, torch.full((len(present),), row), where)
    return logits[:, label].numpy()


def shap_text_values(
    explainer: Explainer, options: dict[str, object], clf: Evaluator, batch: Batch, labels: Tensor
) -> Tensor:
    """Return the shap values that an explainer of texts gives to segments of each text."""
    rows: list[TextScores] = []
    explanation = explainer(batch.texts, **options)
    for text, label, values, parts in zip(
        batch.texts, labels.tolist(), explanation.values, explanation.data, strict=True
    ):
        of_label = values if np.ndim(values) == 1 else values[:, label]
        rows.append(locate(text, [str(part) for part in parts], [float(value) for value in of_label]))
    return align(batch, rows)


def interpreto_scores(
    explainer: Explainer, options: dict[str, object], clf: Evaluator, batch: Batch, labels: Tensor
) -> Tensor:
    """Return the attributions of an explainer class of interpreto, made for this model."""
    require_whole_texts(clf, batch)
    from transformers import BatchEncoding

    library = _library("interpreto")
    made = explainer(clf.model, clf.tokenizer, granularity=library.Granularity.TOKEN, **options)
    special = torch.tensor(clf.tokenizer.all_special_ids)
    result = torch.zeros(batch.input_ids.shape, dtype=torch.float64)
    for row, one, label in _each_text(batch, labels):
        places = (~torch.isin(one.input_ids[0], special)).nonzero()[:, 0]
        if not len(places):
            continue
        scores = made(BatchEncoding(one.inputs), torch.tensor([label]))[0].attributions.reshape(-1)
        if len(scores) != len(places):
            raise InputError(
                f"interpreto gave {len(scores)} scores for {len(places)} tokens; expected one for each token"
            )
        result[row, places] = scores.detach().cpu().double()
    return result


def interpreto_text_scores(
    explainer: Explainer, options: dict[str, object], clf: Evaluator, batch: Batch, labels: Tensor
) -> Tensor:
    """Return the attributions that an explainer object of interpreto gives to parts of each text."""
    rows = [
        locate(text, [str(element) for element in one.elements], one.attributions.reshape(-1).tolist())
        for text, one in zip(batch.texts, explainer(batch.texts, labels, **options), strict=True)
    ]
    return align(batch, rows)


def locate(text: str, parts: Sequence[str], scores: Sequence[float]) -> list[tuple[int, int, float]]:
    """Return the spans of parts of a text, which are searched one after the other, with their scores.

    Parts of blanks, and special tokens that are not in the text, are left out.
    """
    spans, at = [], 0
    for part, score in zip(parts, scores, strict=True):
        word = part.strip()
        start = text.find(word, at)
        if word and start >= 0:
            at = start + len(word)
            spans.append((start, at, score))
    return spans


def _library(name: str) -> ModuleType:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as error:
        raise InputError(
            f"{name} is not installed; install it: pip install 'faithmeter[adapters]'"
        ) from error
