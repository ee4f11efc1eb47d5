"""Search for erasure orders that change predictions early, within a budget of evaluations.

Each text has an `OrderSearch`, which asks for margins and scores. The questions of all texts are answered
together, to fill micro-batches.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from typing import Annotated, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from ..models.evaluator import Evaluator
from ..models.masks import PERCENTS
from ..models.tokens import Batch
from .beam import beam_search
from .gradients import masking_effects
from .options import Bools, Floats, Ints, NotNegative, Positive, Range, TokenSets

STEPS = PERCENTS[1:-1]
"""Erased percentages that the objective counts; at 0 and 100 % all orders are equal."""
CANDIDATES = 0.3
"""Fraction of the unmasked tokens, taken from the start of the order, that are occluded one by one."""
PREDICTED = 100.0
"""Cost of a step at which the label is predicted; no sum of tanh(margin) over the steps outweighs it."""
CHANGED_AT_EVERY_STEP = PREDICTED / 2
"""Objectives below this belong to orders that change the prediction at every step."""
MAX_TOKENS = 16
"""Largest value of `longest`: each further token doubles the evaluations, 65,536 for 16 tokens."""


def step_costs(margins: Floats, repeats: Ints) -> Floats:
    """Return the cost of masks with these margins, where `repeats` is how many steps have a mask's size.

    The objective of an order is the sum of the costs of its steps: first the number of steps at which the
    label is predicted counts and, among equal numbers, the sum of tanh(margin).
    """
    return repeats * (PREDICTED * (margins >= 0) + np.tanh(margins))


class Question(NamedTuple):
    """Request for the margins of one text under several masks, or for its scores under one mask."""

    masks: Bools  # [K, n]
    scores: bool  # True for scores by gradients, False for margins


Result = TypeVar("Result")
Questions = Generator[Question, Floats, Result]
"""Generator that yields questions, is sent their answers, and returns a result."""


class BudgetSpent(Exception):
    """Raised when the next question would cost more evaluations than are left."""


class OrderSearch:
    """Search for the erasure order of one text; `order` is the best one so far.

    The margin is the label's logit minus the highest other logit; the label is predicted if it is at least 0.
    The search minimizes the number of steps at which the label is predicted and, among equal orders, the sum
    of tanh(margin) over the steps.
    """

    def __init__(self, n: int, sizes: Ints, *, budget: int, gradients: int = 4, exchanges: int = 8) -> None:
        """Set up the search; `run` performs it.

        Args:
            n: Number of tokens.
            sizes: Number of masked tokens at each step.
            budget: Maximum number of evaluations; a gradient counts as one.
            gradients: Number of gradients for each proposed order; if 0, orders come from leave-one-out.
            exchanges: Number of token pairs to try to exchange in each round; 0 tries none.
        """
        self.n = n
        self.sizes, self.repeats = np.unique(sizes, return_counts=True)
        self.gradients = gradients
        self.exchanges = exchanges
        self.evaluations_left = budget
        self.order: Ints = np.arange(n)
        self.objective = math.inf
        self.margins: dict[bytes, float] = {}  # by mask
        self.scores: dict[bytes, Floats] = {}  # by mask, from gradients

    def run(self) -> Questions[None]:
        """Propose an order, improve it step by step, then exchange tokens until the budget is spent."""
        if not len(self.sizes):
            return
        try:
            self.order = order = yield from self._propose(self.order[:0], self.order, 0)
            yield from self._walk(order)
            while self.exchanges and self.objective > CHANGED_AT_EVERY_STEP and (yield from self._improve()):
                pass
        except BudgetSpent:
            return

    def _walk(self, order: Ints) -> Questions[None]:
        """Reorder the unmasked tokens at each step at which the label is still predicted.

        They are reordered by gradients and then, if the label is still predicted, by occlusion.
        """
        margins = yield from self._consider(order)
        for step, size in enumerate(self.sizes):
            start = self.sizes[step - 1] if step else 0
            head, rest, margin = order[:start], order[start:], margins[step]
            for propose in (self._propose, self._occlude):
                if margin < 0:
                    break
                rest = yield from propose(head, rest, 2 * (size - start))
                trial = np.concatenate([head, rest])
                trial_margin = (yield from self._request_margins(self._prefix(trial, size)[None]))[0]
                if trial_margin < margin:
                    order, margin = trial, trial_margin
            margins = yield from self._consider(order)

    def _improve(self) -> Questions[bool]:
        """Try to improve the best order at one step after another, until the objective decreases.

        Only steps at which the label is still predicted are tried. Return whether the objective decreased.
        """
        before, order = self.objective, self.order
        margins = yield from self._request_margins(self._prefixes(order))
        for step in np.flatnonzero(margins >= 0).tolist():
            changed = np.flatnonzero(margins[:step] < 0)
            fixed = self._prefix(order, self.sizes[changed[-1]] if len(changed) else 0)
            masked, margin = self._prefix(order, self.sizes[step]), margins[step]
            if step + 1 < len(margins) and margins[step + 1] < 0:
                trial = yield from self._shrink(self._prefix(order, self.sizes[step + 1]), fixed, step)
                trial_margin = (yield from self._request_margins(trial[None]))[0]
                if trial_margin < margin:
                    masked, margin = trial, trial_margin
            if margin >= 0:
                masked = yield from self._exchange_tokens(masked, margin, fixed)
            first = np.where(fixed, 0, np.where(masked, 1, 2))
            yield from self._consider(order[np.argsort(first[order], kind="stable")])
            if self.objective < before:
                return True
        return False

    def _shrink(self, masked: Bools, fixed: Bools, step: int) -> Questions[Bools]:
        """Cut a mask to the size of a step by unmasking the tokens that raise the margin least.

        Tokens in `fixed` stay masked.
        """
        tokens = np.flatnonzero(masked & ~fixed)
        margins = yield from self._request_margins(_toggle(masked, tokens))
        surplus = masked.sum() - self.sizes[step]
        uncovered = tokens[np.argsort(margins, kind="stable")[:surplus]]
        return masked & ~np.isin(np.arange(self.n), uncovered)

    def _exchange_tokens(self, masked: Bools, margin: float, fixed: Bools) -> Questions[Bools]:
        """Exchange masked and unmasked tokens while the label is predicted, and return the new mask.

        The pairs tried are those with the lowest sum of the margins after changing each token alone.
        """
        while margin >= 0:
            inside, outside = np.flatnonzero(masked & ~fixed), np.flatnonzero(~masked)
            toggled = yield from self._request_margins(_toggle(masked, np.concatenate([inside, outside])))
            sums = toggled[: len(inside), None] + toggled[len(inside) :]
            pairs = np.argsort(sums, axis=None, kind="stable")[: self.exchanges]
            trials = np.repeat(masked[None], len(pairs), axis=0)
            trials[np.arange(len(pairs)), inside[pairs // len(outside)]] = False
            trials[np.arange(len(pairs)), outside[pairs % len(outside)]] = True
            margins = yield from self._request_margins(trials)
            if margins.min() >= margin:
                break
            masked, margin = trials[margins.argmin()], float(margins.min())
        return masked

    def _propose(self, head: Ints, rest: Ints, min_tokens: int) -> Questions[Ints]:
        """Return `rest` in the order of its scores while `head` is masked.

        The scores come from gradients or, if the search uses none, from occlusion.
        """
        if not self.gradients:
            return (yield from self._occlude(head, rest, len(rest)))
        mask = self._prefix(head, len(head))
        key = mask.tobytes()
        if key not in self.scores:
            self._spend(self.gradients)
            self.scores[key] = (yield Question(mask[None], scores=True))[0]
        return rest[np.argsort(-self.scores[key][rest], kind="stable")]

    def _occlude(self, head: Ints, rest: Ints, min_tokens: int) -> Questions[Ints]:
        """Return `rest` with its first tokens, at least `min_tokens`, reordered by leave-one-out."""
        count = max(min_tokens, math.ceil(CANDIDATES * len(rest)))
        masks = _toggle(self._prefix(head, len(head)), rest[:count])
        margins = yield from self._request_margins(masks)
        return np.concatenate([rest[:count][np.argsort(margins, kind="stable")], rest[count:]])

    def _consider(self, order: Ints) -> Questions[Floats]:
        """Return the margins at all steps of an order; store the order if it is the best so far."""
        margins = yield from self._request_margins(self._prefixes(order))
        objective = float(step_costs(margins, self.repeats).sum())
        if objective < self.objective:
            self.order, self.objective = order, objective
        return margins

    def _request_margins(self, masks: Bools) -> Questions[Floats]:
        """Return the margins [K] under masks [K, n]; each mask is evaluated once."""
        keys = [mask.tobytes() for mask in masks]
        new = {key: mask for key, mask in zip(keys, masks, strict=True) if key not in self.margins}
        if new:
            self._spend(len(new))
            margins = yield Question(np.array(list(new.values())), scores=False)
            self.margins.update(zip(new, margins.tolist(), strict=True))
        return np.array([*map(self.margins.__getitem__, keys)])

    def _spend(self, evaluations: int) -> None:
        if evaluations > self.evaluations_left:
            raise BudgetSpent
        self.evaluations_left -= evaluations

    def _prefixes(self, order: Ints) -> Bools:
        places: Ints = np.argsort(order)  # the inverse permutation: the place of each token
        return places < self.sizes[:, None]

    def _prefix(self, order: Ints, size: int) -> Bools:
        mask = np.zeros(self.n, bool)
        mask[order[:size]] = True
        return mask


def _toggle(mask: Bools, tokens: Ints) -> Bools:
    """Return a copy of the mask for each token, with that token inverted; bool [len(tokens), n]."""
    masks = np.repeat(mask[None], len(tokens), axis=0)
    masks[np.arange(len(tokens)), tokens] ^= True
    return masks


def evaluations_allowed(tokens: int, budget: int, gradients: int, most: int = 0, **_: object) -> int:
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
    sets = TokenSets(clf, batch, labels)
    searches: dict[int, OrderSearch] = {}
    for row, places in enumerate(sets.places):
        n = len(places)
        steps = step_sizes(int(batch.explained[row].sum()), n)
        allowed = evaluations_allowed(n, budget, gradients, most)
        searches[row] = OrderSearch(n, steps, budget=allowed, gradients=gradients, exchanges=exchanges)
    _answer_all({row: state.run() for row, state in searches.items()}, sets, gradients)
    return sets.ranks({row: state.order for row, state in searches.items()})


def step_sizes(tokens: int, n: int) -> Ints:
    """Return how many of n unmasked tokens, of `tokens` in all, each step masks; leave out steps of none."""
    sizes = tokens * np.array(STEPS) // 100 - (tokens - n)
    return sizes[sizes > 0]


def _answer_all(runs: Mapping[int, Questions[None]], sets: TokenSets, gradients: int) -> None:
    """Answer the questions of all runs together until every run has ended."""
    replies: dict[int, Floats | None] = dict.fromkeys(runs)  # the first call starts a run: it sends None
    while replies:
        margins: dict[int, Bools] = {}
        scores: dict[int, Bools] = {}
        for row, reply in replies.items():
            try:
                question = next(runs[row]) if reply is None else runs[row].send(reply)
            except StopIteration:
                continue
            (scores if question.scores else margins)[row] = question.masks
        replies = {**sets.values(margins, "margin"), **_masking_scores(sets, scores, gradients)}


def _masking_scores(sets: TokenSets, masks: Mapping[int, Bools], gradients: int) -> dict[int, Floats]:
    """Return the scores [1, n] of the open tokens of each text under one mask [1, n]."""
    if not masks:
        return {}
    rows, where = sets.masked(masks)
    masked = sets.batch[rows].masked(where, sets.clf.mask_id)
    effects = masking_effects(sets.clf, masked, sets.labels[rows], steps=gradients).numpy()  # [K, T]
    return {row: effects[[i]][:, sets.places[row]] for i, row in enumerate(masks)}


def count_evaluations(tokens: int, longest: int, worst: bool) -> int:
    """Return the maximum number of evaluations for a text."""
    if tokens <= longest:
        return int(2**tokens)
    return 10 * tokens * (tokens + 1) // 2 if worst else evaluations_allowed(tokens, budget=5, gradients=4)


def exhaustive(
    clf: Evaluator,
    batch: Batch,
    labels: Tensor,
    *,
    longest: Annotated[int, Range(0, MAX_TOKENS)] = 12,
    worst: bool = False,
) -> Tensor:
    """Return the rank of each token in the best of all erasure orders, for texts of few tokens.

    The best order has the lowest objective of `search`. Texts of more than `longest` tokens are given to
    `search`, and to `beam(worst=true)` for the worst order.

    Args:
        clf: The evaluator.
        batch: B texts.
        labels: Class number for which each text is explained, Tensor [B].
        longest: Number of tokens up to which all orders are compared; n tokens cost at most 2ⁿ evaluations.
        worst: Whether to return the worst of all orders, at whose steps the label is predicted most often.

    Returns:
        Ranks, Tensor [B, T]: n for the first of n tokens to erase, 1 for the last, 0 for tokens not erased.

    Raises:
        InputError: The model has a single class.
    """
    sets, orders = TokenSets(clf, batch, labels), {}
    sizes = [*map(len, sets.places)]
    for row, n in enumerate(sizes):
        if 0 < n <= longest:
            repeats = np.bincount(step_sizes(int(batch.explained[row].sum()), n), minlength=n + 1)
            numbers = np.arange(2**n)  # of a set: bit i is token i
            counted = np.flatnonzero(repeats[np.bitwise_count(numbers)])  # sets of a size that a step masks
            masks = (counted[:, None] >> np.arange(n) & 1).astype(bool)  # [K, n]
            costs = np.zeros(2**n)
            if len(counted):
                margins = sets.values({row: masks}, "margin")[row]
                costs[counted] = step_costs(margins, repeats[masks.sum(axis=1)])
            orders[row] = cheapest_order(-costs if worst else costs)
    ranks = sets.ranks(orders)
    long = torch.tensor(sizes) > longest
    if long.any():
        rest = batch[long.nonzero()[:, 0]], labels[long]
        ranks[long] = beam_search(clf, *rest, worst=True) if worst else search(clf, *rest)
    return ranks


def cheapest_order(costs: Floats) -> Ints:
    """Return the order of n tokens whose sets of masked tokens have the lowest total cost.

    `costs` [2ⁿ] holds the cost of each set, whose number has bit i if token i is masked. The cheapest way to
    a set ends with the token without which the rest is cheapest, so sets are solved from small to large.
    """
    n = len(costs).bit_length() - 1
    bits = 1 << np.arange(n)
    totals, last = costs.copy(), np.zeros(len(costs), np.int64)
    sizes = np.bitwise_count(np.arange(len(costs)))
    for size in range(1, n + 1):  # total[S] = cost[S] + min over i in S of total[S without i]
        sets = np.flatnonzero(sizes == size)
        before = np.where(sets[:, None] & bits, totals[sets[:, None] & ~bits], np.inf)  # [sets, n]
        last[sets] = before.argmin(axis=1)
        totals[sets] += before.min(axis=1)
    order, remaining = [], len(costs) - 1  # back from the set of all tokens
    while remaining:
        order.append(last[remaining])
        remaining &= ~int(bits[last[remaining]])
    return np.array(order[::-1], np.int64)
