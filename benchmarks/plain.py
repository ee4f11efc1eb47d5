"""Plain loops for leave-one-out, integrated gradients, gradients and beam search, one text after another."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from faithmeter.models.classifier import Classifier
from faithmeter.models.tokens import Batch

BATCH = 32
"""Variants that a plain loop evaluates together."""


def rows_of(batch: Batch) -> list[tuple[Batch, Tensor]]:
    """Return each text as a batch without padding, with the positions of its explained tokens."""
    rows = []
    for number in range(len(batch)):
        row = batch[torch.tensor([number])]
        row = row.narrowed(int(row.attention_mask.sum()))
        rows.append((row, row.explained[0].nonzero()[:, 0]))
    return rows


def scores_of(batch: Batch, score: Callable[[int, Batch, Tensor], Tensor]) -> Tensor:
    """Return `score(number, text, positions)` of each text's tokens as Tensor [B, T]."""
    scores = torch.zeros(batch.input_ids.shape, dtype=torch.float64)
    for number, (row, positions) in enumerate(rows_of(batch)):
        scores[number, positions] = score(number, row, positions).double().cpu()
    return scores


def evaluate(clf: Classifier, row: Batch, masks: Tensor, label: int) -> Tensor:
    """Return the label's logit of masked variants of one text, Tensor [K]; masks are [K, T]."""
    ids = row.input_ids.masked_fill(masks, clf.mask_id)
    logits = []
    with torch.inference_mode():
        for part in torch.split(ids, BATCH):
            inputs = {name: value.expand(len(part), -1) for name, value in row.inputs.items()}
            inputs = {name: value.to(clf.device) for name, value in (inputs | {"input_ids": part}).items()}
            logits.append(clf.model(**inputs).logits[:, label])
    return torch.cat(logits).double().cpu()


def leave_one_out(clf: Classifier, batch: Batch, labels: Tensor) -> Tensor:
    """Return the fall of the label's logit when each token is masked."""

    def score(number: int, row: Batch, positions: Tensor) -> Tensor:
        masks = torch.zeros(1 + len(positions), row.input_ids.shape[1], dtype=torch.bool)
        masks[1 + torch.arange(len(positions)), positions] = True
        values = evaluate(clf, row, masks, int(labels[number]))
        return values[0] - values[1:]

    return scores_of(batch, score)


def integrated_gradient(clf: Classifier, batch: Batch, labels: Tensor, *, steps: int = 20) -> Tensor:
    """Return integrated gradients from the zero embedding, all steps of a text in one pass."""

    def score(number: int, row: Batch, positions: Tensor) -> Tensor:
        words = clf.embed(row.input_ids).detach()
        parts = (torch.arange(1, steps + 1, device=words.device) / steps).to(words)[:, None, None]
        points = (parts * words).requires_grad_()
        mask = row.attention_mask.expand(steps, -1).to(words.device)
        value = clf.model(inputs_embeds=points, attention_mask=mask).logits[:, labels[number]].sum()
        [gradient] = torch.autograd.grad(value, points)
        return (gradient.mean(dim=0) * words[0]).sum(dim=-1)[positions]

    return scores_of(batch, score)


def input_x_gradient(clf: Classifier, batch: Batch, labels: Tensor) -> Tensor:
    """Return embedding × gradient, one text in a pass."""

    def score(number: int, row: Batch, positions: Tensor) -> Tensor:
        words = clf.embed(row.input_ids).detach().requires_grad_()
        mask = row.attention_mask.to(words.device)
        value = clf.model(inputs_embeds=words, attention_mask=mask).logits[0, labels[number]]
        [gradient] = torch.autograd.grad(value, words)
        return (gradient * words.detach()).sum(dim=-1)[0, positions]

    return scores_of(batch, score)


def beam_search(clf: Classifier, batch: Batch, labels: Tensor, *, width: int = 10) -> Tensor:
    """Return ranks by a beam search that evaluates every state it visits."""

    def score(number: int, row: Batch, positions: Tensor) -> Tensor:
        beam: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
        for _ in positions:
            states = {
                frozenset((*order, int(token))): (area, (*order, int(token)))
                for area, order in sorted(beam)
                for token in positions
                if int(token) not in order
            }
            masks = torch.zeros(len(states), row.input_ids.shape[1], dtype=torch.bool)
            for place, state in enumerate(states):
                masks[place, list(state)] = True
            values = evaluate(clf, row, masks, int(labels[number])).tolist()
            areas = [
                (area - value, order) for (area, order), value in zip(states.values(), values, strict=True)
            ]
            beam = sorted(areas, key=lambda state: -state[0])[:width]
        ranks = {token: len(positions) - place for place, token in enumerate(beam[0][1])}
        return torch.tensor([ranks[int(token)] for token in positions])

    return scores_of(batch, score)
