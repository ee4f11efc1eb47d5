"""Explainers of other libraries as methods: captum, shap, interpreto, attention, and your own function.

Each adapter returns a `Method`, which `explain`, `erase` and `measure` take like a built-in one. The forward
passes of the model are counted whoever makes them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor

from ..errors import InputError, unknown
from ..models.alignment import TextScores, align
from ..models.evaluator import Evaluator
from ..models.tokens import Batch
from .adapter_scores import (
    Explainer,
    captum_scores,
    counted,
    eager_attention,
    interpreto_scores,
    interpreto_text_scores,
    is_class,
    require_whole_texts,
    shap_text_values,
    shap_values,
)
from .attention import ATTENTION_KINDS, attention_scores
from .gradients import collect
from .options import Function
from .registry import Method, require_name

__all__ = ["attention", "captum", "interpreto", "shap", "texts"]

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
        >>> fm.adapters.captum(FeatureAblation).name
        'captum-FeatureAblation'
    """
    function = partial(captum_scores, attribution, options)
    flags = {"recursive": recursive, "signed": signed}
    return _adapt("captum", attribution, function, name, options, version=version, **flags)


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
        >>> fm.adapters.shap(Explainer, name="shap-permutation", max_evals=500).recursive
        True
    """
    function = partial(shap_values if is_class(explainer) else shap_text_values, explainer, options)
    recursive = _decide_recursive("shap", explainer, recursive)
    return _adapt("shap", explainer, function, name, options, recursive=recursive, version=version)


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
        >>> fm.adapters.interpreto(Explainer, name="interpreto-occlusion").recursive
        True
    """
    function = partial(
        interpreto_scores if is_class(explainer) else interpreto_text_scores, explainer, options
    )
    recursive = _decide_recursive("interpreto", explainer, recursive)
    flags = {"recursive": recursive, "signed": signed}
    return _adapt("interpreto", explainer, function, name, options, version=version, **flags)


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
        >>> fm.explain(clf, batch, labels, fm.adapters.attention("last")).min().item() >= 0
        True
    """
    if kind not in ATTENTION_KINDS:
        raise unknown("kind of attention", kind, ATTENTION_KINDS)

    def function(clf: Evaluator, batch: Batch, labels: Tensor) -> Tensor:
        require_whole_texts(clf, batch)
        with eager_attention(clf.model):
            return collect(clf, partial(attention_scores, clf, kind), batch, torch.arange(len(batch)))

    about = {
        "last": "how much attention a word receives in the last layer",
        "rollout": "how much attention a word receives through all layers (attention rollout)",
    }
    return Method(name or f"attention-{kind}", function, signed=False, about=about[kind], by_default=False)


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
        >>> length = fm.adapters.texts(lengths, name="length")
        >>> fm.explain(clf, clf.encode([text], [pair]), labels, length).max().item()
        9.0
    """
    takes_labels = "labels" in inspect.signature(function).parameters

    def scores(clf: Evaluator, batch: Batch, labels: Tensor) -> Tensor:
        further = {"labels": labels.tolist()} if takes_labels else {}
        with counted(clf):
            return align(batch, function(batch.texts, **further))

    require_name(name)
    about = (inspect.getdoc(function) or "").partition("\n")[0]
    return Method(
        name,
        scores,
        recursive=False,
        signed=signed,
        about=about,
        source=function,
        version=version,
        by_default=False,
    )


def _adapt(
    library: str,
    explainer: Explainer,
    function: Function,
    name: str,
    options: dict[str, object],
    **flags: Any,
) -> Method:
    kind = explainer if is_class(explainer) else type(explainer)
    name = name or f"{library}-{kind.__name__}"
    require_name(name)

    def scores(clf: Evaluator, batch: Batch, labels: Tensor) -> Tensor:
        with counted(clf):
            result: Tensor = function(clf, batch, labels)
        return result

    return Method(
        name,
        scores,
        about=f"{kind.__name__} of {library}",
        source=(explainer, options),
        by_default=False,
        **flags,
    )


def _decide_recursive(library: str, explainer: Explainer, recursive: bool | None) -> bool:
    if recursive and not is_class(explainer):
        raise InputError(
            f"recursive=True, but an object of {library} explains whole texts only; give its class instead"
        )
    return is_class(explainer) if recursive is None else recursive
