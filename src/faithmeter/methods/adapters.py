"""Explainers of other libraries as methods: captum, shap, interpreto, attention, and your own function.

Each adapter returns a `Method`, which `explain`, `erase` and `measure` take like a built-in one. The forward
passes of the model are counted whoever makes them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from ..errors import InputError, unknown
from ..models.alignment import TextScores, align
from ..models.classifier import reads_last_token
from ..models.evaluator import Evaluator
from ..models.tokens import Batch
from .gradients import collect
from .options import Bools, Floats, Function, TokenSets
from .registry import Method, first_line, require_name

ATTENTION_KINDS = {
    "rollout": "through all layers (attention rollout)",
    "last": "in the last layer",
}
"""Kinds of attention and where it is received."""


__all__ = ["attention", "captum", "interpreto", "shap", "texts"]

Explainer = Any
"""Class or object of another library."""
TextFunction = Callable[..., Sequence[TextScores]]
"""`(texts) -> scores`, or `(texts, labels) -> scores`."""


def captum(
    attribution: Explainer,
    *,
    name: str = "",
    recursive: bool = True,
    signed: bool = True,
    version: str = "",
    **options: object,
) -> Method:
    """Return a method that calls an attribution of captum for each text.

    A class is given a forward function of the classifier. Layer attributions explain the word embeddings,
    with the mask token as their baseline; gradient attributions take the embeddings as inputs; perturbations
    replace tokens by the mask token, only those of the explained text, and whole units at once.

    Args:
        attribution: Class such as `captum.attr.LayerIntegratedGradients`, or an object whose forward function
            takes the model's inputs (ids, attention mask, token types if it has them) and returns logits.
        name: Name of the method; by default `captum-` and the name of the class.
        recursive: False to explain each text once instead of again at every step.
        signed: False if scores only rank importance.
        version: As for `faithmeter.method`: to be changed with what cannot be compared.
        **options: Passed on to `attribute`, such as `n_steps=20`.

    Returns:
        A method for `explain`, `erase` and `measure`.

    Raises:
        InputError: `recursive` does not fit the explainer; when used, its scores do not fit the tokens.

    Example:
        >>> from captum.attr import FeatureAblation
        >>> adapters.captum(FeatureAblation).name
        'captum-FeatureAblation'
    """
    flags = {"name": name, "recursive": recursive, "signed": signed, "version": version}
    return _adapt("captum", attribution, captum_scores, options, flags)


def shap(
    explainer: Explainer,
    *,
    name: str = "",
    recursive: bool | None = None,
    version: str = "",
    **options: object,
) -> Method:
    """Return a method that calls an explainer of shap.

    A class explains the label's logit as a function of which tokens (or units) of the text are masked, in any
    text and at every step. An object explains whole texts by its own model and masker, once; it must split
    a text into segments that join to the text, as `shap.maskers.Text` does.

    Args:
        explainer: Class such as `shap.explainers.Permutation` or `shap.explainers.Exact`, or an object such
            as `shap.Explainer(pipeline)`.
        name: Name of the method; by default `shap-` and the name of the class.
        recursive: Whether texts are explained again at every step; by default if it is a class.
        version: As for `faithmeter.method`: to be changed with what cannot be compared.
        **options: Passed on to the call of the explainer, such as `max_evals=500`.

    Returns:
        A method for `explain`, `erase` and `measure`.

    Raises:
        InputError: `recursive` does not fit the explainer; when used, its scores do not fit the tokens.

    Example:
        >>> class Explainer: pass  # such as shap.explainers.Permutation
        >>> adapters.shap(Explainer, name="shap-permutation", max_evals=500).recursive
        True
    """
    flags = {"name": name, "recursive": recursive, "version": version}
    return _adapt("shap", explainer, shap_values, options, flags, of_texts=shap_text_values)


def interpreto(
    explainer: Explainer,
    *,
    name: str = "",
    recursive: bool | None = None,
    signed: bool = True,
    version: str = "",
    **options: object,
) -> Method:
    """Return a method that calls an attribution explainer of interpreto for each text.

    A class is made for the classifier's model and tokenizer, and scores the tokens of texts at every step;
    special tokens, which interpreto skips, score 0: masks and unknown words. An object explains whole texts,
    once, at its own granularity.

    Args:
        explainer: Class such as `interpreto.Occlusion`, or an object of it.
        name: Name of the method; by default `interpreto-` and the name of the class.
        recursive: Whether texts are explained again at every step; by default if it is a class.
        signed: False if scores only rank importance.
        version: As for `faithmeter.method`: to be changed with what cannot be compared.
        **options: Passed on to the class, such as `n_perturbations=100`.

    Returns:
        A method for `explain`, `erase` and `measure`.

    Raises:
        InputError: `recursive` does not fit the explainer; when used, its scores do not fit the tokens.

    Example:
        >>> class Explainer: pass  # such as interpreto.Occlusion
        >>> adapters.interpreto(Explainer, name="interpreto-occlusion").recursive
        True
    """
    flags = {"name": name, "recursive": recursive, "signed": signed, "version": version}
    return _adapt("interpreto", explainer, interpreto_scores, options, flags, of_texts=interpreto_text_scores)


def attention(kind: Literal["rollout", "last"] = "rollout", *, name: str = "") -> Method:
    """Return a method that scores tokens by the attention they receive.

    Args:
        kind: `last`: the mean over heads in the last layer, from the position that the classifier reads;
            `rollout`: multiplied through all layers, each with its residual connection.
        name: Name of the method; by default `attention-` and the kind.

    Returns:
        A method for `explain`, `erase` and `measure`.

    Raises:
        InputError: The kind is unknown; when used, the model does not return attention.

    Example:
        >>> fm.explain(clf, batch, labels, adapters.attention("last")).min().item() >= 0
        True
    """
    if kind not in ATTENTION_KINDS:
        raise unknown("kind of attention", kind, ATTENTION_KINDS)

    def function(clf: Evaluator, batch: Batch, labels: Tensor) -> Tensor:
        require_whole_texts(clf, batch)
        with eager_attention(clf.model):
            return collect(clf, partial(attention_scores, clf, kind), batch, torch.arange(len(batch)))

    about = f"how much attention a word receives {ATTENTION_KINDS[kind]}"
    return Method(name or f"attention-{kind}", function, signed=False, about=about, by_default=False)


def texts(function: TextFunction, *, name: str, signed: bool = True, version: str = "") -> Method:
    """Return a method from a function of texts: `(texts) -> scores`, or `(texts, labels) -> scores`.

    Args:
        function: Is called with a list of texts, and with their class numbers if it has a parameter `labels`;
            returns scores of tokens, words or spans for each text, as `align` takes them. The texts are
            whole: each is explained once.
        name: Name of the method.
        signed: False if scores only rank importance.
        version: As for `faithmeter.method`: to be changed with what cannot be compared.

    Returns:
        A method for `explain`, `erase` and `measure`.

    Raises:
        InputError: The name is not valid; when used, the scores do not fit the texts.

    Example:
        >>> def lengths(texts):
        ...     return [[len(word) for word in text.split()] for text in texts]
        >>> length = adapters.texts(lengths, name="length")
        >>> fm.explain(clf, clf.encode([text], [pair]), labels, length).max().item()
        9.0
    """
    takes_labels = "labels" in inspect.signature(function).parameters

    def scores(clf: Evaluator, batch: Batch, labels: Tensor) -> Tensor:
        further = {"labels": labels.tolist()} if takes_labels else {}
        with counted(clf):
            return align(batch, function(batch.texts, **further))

    require_name(name)
    # whole texts only: a function of texts cannot be asked about masked ones
    flags: dict[str, Any] = {"recursive": False, "signed": signed, "by_default": False}
    return Method(name, scores, about=first_line(function), source=function, version=version, **flags)


def _adapt(
    library: str,
    explainer: Explainer,
    function: Function,
    options: dict[str, object],
    flags: dict[str, Any],
    *,
    of_texts: Function | None = None,
) -> Method:
    """Return the method of an explainer; `flags` are fields of `Method`.

    An object is called by `of_texts`, if that is given: it explains whole texts by a model of its own.
    """
    made = inspect.isclass(explainer)
    if of_texts is not None and not made:
        if flags["recursive"]:
            raise InputError(
                f"recursive=True, but an object of {library} explains whole texts only; give its class"
            )
        function = of_texts
    kind = explainer if made else type(explainer)
    name, recursive = flags["name"] or f"{library}-{kind.__name__}", flags["recursive"]
    require_name(name)

    def scores(clf: Evaluator, batch: Batch, labels: Tensor) -> Tensor:
        with counted(clf):
            result: Tensor = function(explainer, options, clf, batch, labels)
        return result

    flags = {**flags, "recursive": made if recursive is None else recursive, "by_default": False}
    # the explainer is part of the source: an object with other settings is another method to the store
    flags |= {"name": name, "about": f"{kind.__name__} of {library}", "source": (explainer, options)}
    return Method(function=scores, **flags)


@contextmanager
def counted(clf: Evaluator) -> Iterator[None]:
    """Count the texts in all forward passes of the model in this block as evaluations of `clf`."""
    rows: list[int] = []
    model = getattr(clf, "model", None)
    if model is None:
        yield
        return
    # `clf` counts what it evaluates itself, too: the hook sees those passes, so its own count is replaced
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
    model.set_attn_implementation("eager")  # fused kernels never form the matrix of weights
    try:
        yield
    finally:
        model.set_attn_implementation(before)


def require_whole_texts(clf: Evaluator, batch: Batch) -> None:
    """Raise an InputError if the model reads a text in windows, of which another library knows nothing."""
    windows = torch.tensor(clf.count_windows(batch))
    if windows.amax() > 1:
        raise InputError(
            f"text {int(batch.index[windows.argmax()])} is read in windows, which this method cannot "
            f"explain; expected texts of at most {clf.max_length} tokens: leave out --overlap, or take a "
            "method of faithmeter"
        )


def _each_text(batch: Batch, labels: Tensor) -> Iterator[tuple[int, Batch, int]]:
    """Yield each text with its row and label, without padding."""
    for row, length in enumerate(batch.attention_mask.sum(dim=1).tolist()):
        yield row, batch[[row]].narrowed(length), int(labels[row])


def attention_scores(clf: Evaluator, kind: str, batch: Batch, items: Tensor) -> Tensor:
    """Return the attention from the position that the classifier reads to each token, [B, T].

    `rollout` multiplies (A + I) / 2 of all layers, with A the mean over heads (Abnar and Zuidema, 2020).
    """
    batch = batch.to(clf.device)
    with torch.inference_mode():
        layers = clf.model(**batch.inputs, output_attentions=True).attentions
    if not layers or layers[0] is None:
        raise InputError(f"{type(clf.model).__name__} returns no attention; expected a model with attention")
    means = [layer.double().mean(dim=1) for layer in layers]  # [B, T, T] each
    flow: Tensor = means[-1]
    if kind == "rollout":
        identity = torch.eye(flow.shape[1], dtype=flow.dtype, device=flow.device)
        flow = identity.expand_as(flow)
        for mean in means:
            flow = (mean + identity) / 2 @ flow
    if reads_last_token(clf.model):
        return flow[torch.arange(len(flow)), batch.attention_mask.sum(dim=1) - 1]
    pooling = getattr(clf.model, "pooling", None) or getattr(clf.model.config, "classifier_pooling", "cls")
    if pooling == "cls":
        return flow[:, 0]
    attended = batch.attention_mask.to(flow)
    return (flow * attended[:, :, None]).sum(dim=1) / attended.sum(dim=1, keepdim=True)


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
    made: bool = inspect.isclass(attribution)
    if not made:
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
        # one feature for all that is not explained; `from_masked` undoes its mask, so that it changes nothing
        features = features.masked_fill(~covered, int(one.explained.sum()))
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
    sets = TokenSets(clf, batch, labels)
    for row, places in enumerate(sets.places):
        if not len(places):
            continue

        def value(present: Bools, row: int = row) -> Floats:
            return sets.values({row: np.asarray(present) == 0}, "logit")[row]

        # the background of the game is the text with all tokens masked, not a sample of texts
        nothing, everything = np.zeros((1, len(places))), np.ones((1, len(places)))
        masker = library.maskers.Independent(nothing, max_samples=1)
        values = explainer(value, masker)(everything, **options).values
        result[row, places] = torch.as_tensor(np.asarray(values, dtype=float)[0])
    return result


def shap_text_values(
    explainer: Explainer, options: dict[str, object], clf: Evaluator, batch: Batch, labels: Tensor
) -> Tensor:
    """Return the shap values that an explainer of texts gives to segments of each text."""
    rows: list[TextScores] = []
    explanation = explainer(batch.texts, **options)
    given = zip(batch.texts, explanation.data, explanation.values, labels.tolist(), strict=True)
    for text, parts, values, label in given:
        rows.append(locate(text, parts, values if np.ndim(values) == 1 else values[:, label]))
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
    rows: list[TextScores] = []
    for text, one in zip(batch.texts, explainer(batch.texts, labels, **options), strict=True):
        rows.append(locate(text, one.elements, one.attributions.reshape(-1).tolist()))
    return align(batch, rows)


def locate(text: str, parts: Iterable[object], scores: Iterable[float]) -> list[tuple[int, int, float]]:
    """Return the spans of parts of a text, which are searched one after the other, with their scores.

    Parts of blanks, and special tokens that are not in the text, are left out.
    """
    spans, at = [], 0
    for part, score in zip(parts, scores, strict=True):
        word = str(part).strip()
        start = text.find(word, at)
        if word and start >= 0:
            at = start + len(word)
            spans.append((start, at, float(score)))
    return spans


def _library(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError as error:
        raise InputError(f"{name} is not installed: pip install 'faithmeter[adapters]'") from error
