"""The search for one text's order of erasure: the label is to fall early and stay away, within a budget."""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

CANDIDATES = 0.3
"""Share of the open tokens, the first of the order, that are occluded one by one."""


class Question(NamedTuple):
    """Masked sets of one text's tokens, bool [K, n], of which margins or, by gradients, scores are asked."""

    masks: Bools
    scores: bool


Asking = Generator[Question, Floats, None]
AskingMargins = Generator[Question, Floats, Floats]
AskingOrder = Generator[Question, Floats, Ints]


class BudgetSpent(Exception):
    """The next question would cost more evaluations than are left."""


class OrderSearch:
    """The search for one text's order, whose result `order` improves while `run` advances.

    A margin is the label's logit minus the highest other logit: the label stands while it is at least 0. The
    objective of an order is the number of steps at which the label stands, then the sum of tanh(margin).
    """

    def __init__(
        self, n: int, sizes: list[int], *, budget: int, gradients: int = 4, exchanges: int = 8
    ) -> None:
        """Begin the search.

        Args:
            n: Number of tokens.
            sizes: Number of tokens masked at each step.
            budget: Evaluations allowed; a gradient counts as one.
            gradients: Gradients of each proposal; 0 proposes by leave-one-out of every token.
            exchanges: Pairs of tokens exchanged on trial in each round; 0 ends after the walk.
        """
        self.n = n
        self.sizes = sorted(set(sizes))
        self.repeats = np.array([sizes.count(size) for size in self.sizes])
        self.gradients = gradients
        self.exchanges = exchanges
        self.left = budget
        self.order: Ints = np.arange(n)
        self.objective = (math.inf, math.inf)
        self.known: dict[bytes, float] = {}  # margin of each masked set
        self.scores: dict[bytes, Floats] = {}  # by gradients, of the text with this set masked

    def run(self) -> Asking:
        """Propose an order, walk along its steps, then exchange tokens, until the budget is spent."""
        if not self.sizes:
            return
        try:
            self.order = order = yield from self._propose(self.order[:0], self.order, 0)
            yield from self._walk(order)
            while self.exchanges and self.objective[0] and (yield from self._improve()):
                pass
        except BudgetSpent:
            return

    def _walk(self, order: Ints) -> Asking:
        """Order the rest anew at each step at which the label stands: by gradients, then by occlusion."""
        margins = yield from self._consider(order)
        for step, size in enumerate(self.sizes):
            start = self.sizes[step - 1] if step else 0
            head, rest, margin = order[:start], order[start:], margins[step]
            for propose in (self._propose, self._occlude):
                if margin < 0:
                    break
                rest = yield from propose(head, rest, 2 * (size - start))
                trial = np.concatenate([head, rest])
                trial_margin = (yield from self._ask_margins(self._prefix(trial, size)[None]))[0]
                if trial_margin < margin:
                    order, margin = trial, trial_margin
            margins = yield from self._consider(order)

    def _improve(self) -> Generator[Question, Floats, bool]:
        """Change the set of one step of the best order; return True if the objective fell."""
        before, order = self.objective, self.order
        margins = yield from self._ask_margins(self._prefixes(order))
        for step in np.flatnonzero(margins >= 0).tolist():
            fallen = np.flatnonzero(margins[:step] < 0)
            fixed = self._prefix(order, self.sizes[fallen[-1]] if len(fallen) else 0)
            masked, margin = self._prefix(order, self.sizes[step]), margins[step]
            if step + 1 < len(margins) and margins[step + 1] < 0:
                trial = yield from self._shrink(self._prefix(order, self.sizes[step + 1]), fixed, step)
                trial_margin = (yield from self._ask_margins(trial[None]))[0]
                if trial_margin < margin:
                    masked, margin = trial, trial_margin
            if margin >= 0:
                masked = yield from self._exchange_tokens(masked, margin, fixed)
            first = np.where(fixed, 0, np.where(masked, 1, 2))
            yield from self._consider(order[np.argsort(first[order], kind="stable")])
            if self.objective < before:
                return True
        return False

    def _shrink(self, masked: Bools, fixed: Bools, step: int) -> Generator[Question, Floats, Bools]:
        """Uncover tokens of a set under which the label falls, those it needs least, to the step's size."""
        tokens = np.flatnonzero(masked & ~fixed)
        margins = yield from self._ask_margins(_toggle(masked, tokens))
        surplus = masked.sum() - self.sizes[step]
        uncovered = tokens[np.argsort(margins, kind="stable")[:surplus]]
        return masked & ~np.isin(np.arange(self.n), uncovered)

    def _exchange_tokens(
        self, masked: Bools, margin: float, fixed: Bools
    ) -> Generator[Question, Floats, Bools]:
        """Exchange a masked token for an open one as long as the margin falls and the label stands.

        The effects of both alone, added up, say which pairs are tried.
        """
        while margin >= 0:
            inside, outside = np.flatnonzero(masked & ~fixed), np.flatnonzero(~masked)
            effects = yield from self._ask_margins(_toggle(masked, np.concatenate([inside, outside])))
            sums = effects[: len(inside), None] + effects[len(inside) :]
            pairs = np.argsort(sums, axis=None, kind="stable")[: self.exchanges]
            trials = np.repeat(masked[None], len(pairs), axis=0)
            trials[np.arange(len(pairs)), inside[pairs // len(outside)]] = False
            trials[np.arange(len(pairs)), outside[pairs % len(outside)]] = True
            margins = yield from self._ask_margins(trials)
            if margins.min() >= margin:
                break
            masked, margin = trials[margins.argmin()], float(margins.min())
        return masked

    def _propose(self, head: Ints, rest: Ints, least: int) -> AskingOrder:
        """Order `rest` by gradients where `head` is masked, or, without gradients, by occlusion of all."""
        if not self.gradients:
            return (yield from self._occlude(head, rest, len(rest)))
        mask = self._prefix(head, len(head))
        key = mask.tobytes()
        if key not in self.scores:
            self._pay(self.gradients)
            self.scores[key] = (yield Question(mask[None], scores=True))[0]
        return rest[np.argsort(-self.scores[key][rest], kind="stable")]

    def _occlude(self, head: Ints, rest: Ints, least: int) -> AskingOrder:
        """Order the first tokens of `rest`, at least `least`, by the margin when each is masked as well."""
        count = max(least, math.ceil(CANDIDATES * len(rest)))
        masks = _toggle(self._prefix(head, len(head)), rest[:count])
        margins = yield from self._ask_margins(masks)
        return np.concatenate([rest[:count][np.argsort(margins, kind="stable")], rest[count:]])

    def _consider(self, order: Ints) -> AskingMargins:
        """Return the margins at all steps of an order; keep it if it is the best so far."""
        margins = yield from self._ask_margins(self._prefixes(order))
        objective = (int(self.repeats[margins >= 0].sum()), float((self.repeats * np.tanh(margins)).sum()))
        if objective < self.objective:
            self.order, self.objective = order, objective
        return margins

    def _ask_margins(self, masks: Bools) -> AskingMargins:
        """Return the margins of masked sets [K]; those that are known cost nothing."""
        keys = [mask.tobytes() for mask in masks]
        new = {key: mask for key, mask in zip(keys, masks, strict=True) if key not in self.known}
        if new:
            self._pay(len(new))
            margins = yield Question(np.array(list(new.values())), scores=False)
            self.known.update(zip(new, margins.tolist(), strict=True))
        return np.array([self.known[key] for key in keys])

    def _pay(self, evaluations: int) -> None:
        if evaluations > self.left:
            raise BudgetSpent
        self.left -= evaluations

    def _prefixes(self, order: Ints) -> Bools:
        return np.array([self._prefix(order, size) for size in self.sizes])

    def _prefix(self, order: Ints, size: int) -> Bools:
        mask = np.zeros(self.n, bool)
        mask[order[:size]] = True
        return mask


def _toggle(mask: Bools, tokens: Ints) -> Bools:
    """Return the mask once for each token, with that token masked if it is open and open if it is masked."""
    masks = np.repeat(mask[None], len(tokens), axis=0)
    masks[np.arange(len(tokens)), tokens] ^= True
    return masks
