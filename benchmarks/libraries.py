"""Other libraries as contenders: captum, interpreto and shap do the work of a method."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import torch
from torch import Tensor

from faithmeter.models.classifier import Classifier
from faithmeter.models.tokens import Batch

from .plain import BATCH, scores_of

CAPTUM_BATCHES = (8, 32, 128)
"""Settings of captum's batch size among which its best is chosen."""
NOT_COMPARED = {"ferret-xai": "ferret"}
"""Packages that are named if they are missing; they explain by the libraries above."""


def missing(package: str) -> str:
    """Return why a package cannot take part; empty if it is installed."""
    try:
        version(package)
    except PackageNotFoundError:
        return "not installed"
    return ""


def captum_occlusion(clf: Classifier, batch: Batch, labels: Tensor, *, per_pass: int = 1) -> Tensor:
    """Return leave-one-out by captum's FeatureAblation; the tokens that are not explained are one feature."""
    from captum.attr import FeatureAblation

    ablation = FeatureAblation(_forward_ids(clf))

    def score(number: int, row: Batch, positions: Tensor) -> Tensor:
        inputs = row.inputs_on(clf.device)
        features = torch.zeros_like(inputs["input_ids"])
        features[0, positions] = 1 + torch.arange(len(positions), device=clf.device)
        with torch.inference_mode():
            scores: Tensor = ablation.attribute(
                inputs["input_ids"],
                baselines=clf.mask_id,
                target=int(labels[number]),
                feature_mask=features,
                perturbations_per_eval=per_pass,
                additional_forward_args=(inputs["attention_mask"],),
            )
        return scores[0, positions]

    return scores_of(batch, score)


def captum_integrated(
    clf: Classifier, batch: Batch, labels: Tensor, *, per_pass: int | None = None, steps: int = 20
) -> Tensor:
    """Return integrated gradients by captum, from the zero embedding."""
    from captum.attr import IntegratedGradients

    return _captum_gradient(
        clf,
        batch,
        labels,
        IntegratedGradients(_forward_embeddings(clf)),
        baselines=0,
        n_steps=steps,
        method="riemann_right",
        internal_batch_size=per_pass,
    )


def captum_gradient(clf: Classifier, batch: Batch, labels: Tensor) -> Tensor:
    """Return embedding × gradient by captum."""
    from captum.attr import InputXGradient

    return _captum_gradient(clf, batch, labels, InputXGradient(_forward_embeddings(clf)))


def _captum_gradient(clf: Classifier, batch: Batch, labels: Tensor, explainer: Any, **options: Any) -> Tensor:
    def score(number: int, row: Batch, positions: Tensor) -> Tensor:
        words = clf.embed(row.input_ids).detach().requires_grad_()
        mask = row.attention_mask.to(clf.device)
        scores: Tensor = explainer.attribute(
            words, target=int(labels[number]), additional_forward_args=(mask,), **options
        )
        return scores.detach().sum(dim=-1)[0, positions]

    return scores_of(batch, score)


def _forward_ids(clf: Classifier) -> Callable[[Tensor, Tensor], Tensor]:
    def forward(ids: Tensor, mask: Tensor) -> Tensor:
        logits: Tensor = clf.model(input_ids=ids, attention_mask=mask).logits
        return logits

    return forward


def _forward_embeddings(clf: Classifier) -> Callable[[Tensor, Tensor], Tensor]:
    def forward(words: Tensor, mask: Tensor) -> Tensor:
        logits: Tensor = clf.model(inputs_embeds=words, attention_mask=mask).logits
        return logits

    return forward


def best_per_pass(run: Callable[..., Tensor], clf: Classifier, batch: Batch, labels: Tensor) -> int:
    """Return the fastest of captum's batch sizes for the first text."""
    first, seconds = batch[torch.tensor([0])], {}
    for size in CAPTUM_BATCHES:
        run(clf, first, labels[:1], per_pass=size)
        start = time.perf_counter()
        run(clf, first, labels[:1], per_pass=size)
        seconds[size] = time.perf_counter() - start
    return min(seconds, key=seconds.__getitem__)


def interpreto_occlusion(clf: Classifier, texts: Sequence[str], labels: Tensor) -> Callable[[], object]:
    """Return leave-one-out by interpreto, in batches of `BATCH`."""
    return _interpreto("Occlusion", clf, texts, labels)


def interpreto_integrated(clf: Classifier, texts: Sequence[str], labels: Tensor) -> Callable[[], object]:
    """Return integrated gradients of 20 steps by interpreto, in batches of `BATCH`."""
    return _interpreto("IntegratedGradients", clf, texts, labels, n_perturbations=20, baseline=0.0)


def _interpreto(
    name: str, clf: Classifier, texts: Sequence[str], labels: Tensor, **options: Any
) -> Callable[[], object]:
    import interpreto

    # copies, because interpreto may add tokens to both
    model, tokenizer = copy.deepcopy(clf.model), copy.deepcopy(clf.tokenizer)
    granularity = interpreto.Granularity.TOKEN
    explainer = getattr(interpreto, name)(
        model, tokenizer, batch_size=BATCH, granularity=granularity, device=clf.device, **options
    )
    targets = labels[:, None]
    return lambda: explainer(list(texts), targets)


def shap_partition(clf: Classifier, texts: Sequence[str], labels: Tensor) -> Callable[[], object]:
    """Return shap's partition explainer with as many evaluations as leave-one-out of the longest text."""
    import shap

    tokenizer: Any = clf.tokenizer

    def predict(variants: Any) -> np.ndarray[Any, Any]:
        inputs = tokenizer([str(text) for text in variants], padding=True, return_tensors="pt")
        inputs = {name: value.to(clf.device) for name, value in inputs.items() if name != "token_type_ids"}
        with torch.inference_mode():
            logits: Tensor = clf.model(**inputs).logits
        return logits.float().cpu().numpy()

    masker = shap.maskers.Text(tokenizer, mask_token=tokenizer.mask_token, collapse_mask_token=False)
    explainer = shap.PartitionExplainer(predict, masker)
    evaluations = 1 + max(len(tokenizer(text)["input_ids"]) for text in texts)
    return lambda: explainer(list(texts), max_evals=evaluations, batch_size=BATCH, silent=True)
