"""Attention that tokens receive, in the last layer or rolled out through all layers."""

from __future__ import annotations

import torch
from torch import Tensor

from ..errors import InputError
from ..models.evaluator import Evaluator
from ..models.mask_token import reads_last_token
from ..models.tokens import Batch

ATTENTION_KINDS = ("rollout", "last")


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
