"""Search for erasure orders that change predictions early, within a budget of evaluations.

Each text has an `OrderSearch`, which asks for margins and scores. The questions of all texts are answered
together, to fill micro-batches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor

from ..errors import InputError
from ..models.evaluator import Evaluator
from ..models.masks import PERCENTS
from ..models.tokens import Batch
from .integrated import masking_effects
from .options import NotNegative, Positive
from .order_search import Bools, Floats, Ints, OrderSearch, Question, Questions
from .target import target_values

STEPS = PERCENTS[1:-1]
"""Erased percentages that the objective counts; at 0 and 100 % all orders are equal."""


def evaluations_allowed(tokens: int, budget: int, gradients: int, most: int = 0) -> int:
    """Return the maximum number of evaluations for a text.

    It is `budget` per token and `most` in all, or more if one order needs more to be proposed and evaluated.
    """
    allowed = min(budget * tokens, most) if most else budget * tokens
    return max(allowed, (gradients or tokens) + len(STEPS))


def search(
    clf: Evaluator,
    batch: Batch,
    labels: Tensor,
    *,
    budget: Positive = 5,
    gradients: NotNegative = 4,
    exchanges: NotNegative = 8,
    most: NotNegative = 0,
) -> Tensor:
    """Return the rank of each token in an erasure order that is optimized for a high ACU.

    The search minimizes the number of steps (10, 20, … 90 % erased) at which the label is predicted.

    Args:
        clf: The evaluator.
        batch: B texts.
        labels: Class number for which each text is explained, Tensor [B].
        budget: Maximum number of evaluations per token; a gradient counts as one. One order is always
            evaluated, which costs up to `gradients` + 9 evaluations, or tokens + 9 if `gradients` is 0.
        gradients: Number of gradients for each proposed order; if 0, orders come from leave-one-out.
        exchanges: Number of token pairs to try to exchange in each round; 0 tries none.
        most: Maximum number of evaluations for a text of any length; 0: only the budget limits it.

    Returns:
        Ranks, Tensor [B, T]: n for the first of n tokens to erase, 1 for the last, 0 for tokens not erased.

    Raises:
        InputError: The model has a single class.
    """
    open_tokens = (batch.explained & (batch.input_ids != clf.mask_id)).numpy()  # [B, T]
    sizes = batch.explained.sum(dim=1).numpy()
    searches = {}
    for row, n in enumerate(open_tokens.sum(axis=1)):
        searches[row] = OrderSearch(
            int(n),
            step_sizes(int(sizes[row]), int(n)),
            budget=evaluations_allowed(int(n), budget, gradients, most),
            gradients=gradients,
            exchanges=exchanges,
        )
    places = [np.flatnonzero(row) for row in open_tokens]
    _advance(
        {row: state.run() for row, state in searches.items()},
        lambda questions: _answer(clf, batch, labels, places, questions, gradients),
    )
    ranks = torch.zeros(batch.input_ids.shape, dtype=torch.float64)
    for row, state in searches.items():
        ranks[row, places[row][state.order]] = torch.arange(state.n, 0, -1).double()
    return ranks


def step_sizes(tokens: int, n: int) -> list[int]:
    """Return how many of n unmasked tokens, of `tokens` in all, each step masks; leave out steps of none."""
    sizes = (tokens * percent // 100 - (tokens - n) for percent in STEPS)
    return [size for size in sizes if size > 0]


def request_margins(clf: Evaluator, batch: Batch, labels: Tensor, rows: Tensor, where: Bools) -> Floats:
    """Return the margins [K] of masked variants of texts, `rows` [K] with the tokens `where` [K, T] masked.

    Raises:
        InputError: The model has a single class.
    """
    logits = clf.variants(batch, rows, torch.from_numpy(where))
    if logits.shape[1] == 1:
        raise InputError("the model has one class; expected two or more: search changes predictions")
    margins: Floats = target_values(logits, labels[rows], "margin").numpy()
    return margins


Answer = Callable[[Mapping[int, Question]], Mapping[int, Floats]]


def _advance(runs: Mapping[int, Questions[None]], answer: Answer) -> None:
    """Answer the questions of all runs together until every run has ended."""
    replies: Mapping[int, Floats | None] = dict.fromkeys(runs)
    while replies:
        questions = {}
        for row, reply in replies.items():
            try:
                questions[row] = next(runs[row]) if reply is None else runs[row].send(reply)
            except StopIteration:
                continue
        replies = answer(questions)


def _answer(
    clf: Evaluator,
    batch: Batch,
    labels: Tensor,
    places: list[Ints],
    questions: Mapping[int, Question],
    gradients: int,
) -> dict[int, Floats]:
    """Return the answer to each text's question by row: margins [K] or scores [1, n]."""
    answers: dict[int, Floats] = {}
    for scores in (False, True):
        asking = [row for row, question in questions.items() if question.scores == scores]
        if not asking:
            continue
        counts = [len(questions[row].masks) for row in asking]
        rows = torch.tensor(asking).repeat_interleave(torch.tensor(counts))
        where = np.zeros((len(rows), batch.input_ids.shape[1]), bool)
        for row, part in zip(asking, np.split(where, np.cumsum(counts)[:-1]), strict=True):
            part[:, places[row]] = questions[row].masks
        if scores:
            masked = batch[rows].masked(torch.from_numpy(where), clf.mask_id)
            values = masking_effects(clf, masked, labels[rows], steps=gradients).numpy()
            answers |= {row: values[[i]][:, places[row]] for i, row in enumerate(asking)}
        else:
            margins = request_margins(clf, batch, labels, rows, where)
            parts = np.split(margins, np.cumsum(counts)[:-1])
            answers |= dict(zip(asking, parts, strict=True))
    return answers
