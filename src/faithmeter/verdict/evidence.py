"""Evidence: the facts of a measurement from which its doubts and verdict are derived."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..config import BASELINE, SIGNIFICANCE_LEVEL, TrainedWith
from ..stats.pvalues import CountTest, DatasetPValue, simes

if TYPE_CHECKING:
    from ..stats.behavior import Behavior
    from ..stats.intervals import Interval

MAIN_KIND = "faithfulness"
"""Kind of area (see `stats.curves.KINDS`) that verdicts and rankings go by."""
NUMBER_KIND = "acu"
"""The same for models that predict numbers, which have no probability of a label."""

MIN_TEXTS = 100
"""Number of texts below which small differences between methods mean little."""
MIN_AGREEMENT = 0.98
"""Agreement of an adapted model with the original, below which they count as two models."""
MAX_UNREAD = 1 / 3
"""Largest acceptable share of a text's words that the model's tokenizer does not know."""
MIN_ORDERS = round(1 / SIGNIFICANCE_LEVEL) - 1
"""Smallest number of random orders at which beating all of them is significant."""
MAX_OUTSIDE_SHARE = 0.5
"""Largest acceptable share of texts that are individually out of distribution; 5 % are expected.

With few validation texts no p-value can be small, so the combined p-value may miss a large share.
"""
MIN_VALIDATION_TEXTS = 200
"""Validation texts below which individual rejections do not tell good models from others.

Few of so few texts are masked almost wholly, so such texts look unusual for every model.
"""
MIN_RACU_DIVISOR = 0.05
"""Area of random erasure below which RACU, which divides by it, exaggerates small differences."""
ROUNDING = 1e-6
"""Areas that differ by less count as equal, as micro-batches change the last digits."""


class EqualByFields:
    """Base of dataclasses with `eq=False` that are equal if all their fields are.

    Fields are compared as in a dict, by identity first. So an undefined number (NaN) equals itself, which
    the equality that dataclasses generate does not grant since Python 3.13.
    """

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence(EqualByFields):
    """Facts that measurements of all kinds share.

    Attributes:
        floors: By test, the smallest possible p-value; empty without tests.
        trained_with: Masking strategy of the model's training.
        truncated: Share of the texts whose end the model could not read.
        precision: Data type that the model was evaluated in.
        ranks_alike: Lowest rank correlation of a method's scores with those in fp32, for which that type was
            chosen; 0 if it was not chosen so.
        agreement: Share of held-out texts on which an adapted model predicts the same class as the
            original; NaN for a model that was not adapted.
    """

    floors: Mapping[str, float] = field(default_factory=dict)
    trained_with: TrainedWith = "unknown"
    truncated: float = 0.0
    precision: str = "fp32"
    ranks_alike: float = 0.0
    agreement: float = math.nan

    @property
    def test(self) -> str | None:
        """Name of the deciding test (see `choose_test`); None without tests."""
        return choose_test(self.floors) if self.floors else None

    @property
    def checked(self) -> bool:
        """Whether the deciding test can reject."""
        return self.test is not None and rejects(self.floors[self.test])

    @property
    def validated(self) -> bool:
        """Whether the deciding test was fitted on enough validation texts to count individual rejections."""
        # the cross-fitted test ranks among half of the texts: its smallest p-value is about 2 / texts
        return self.test is not None and self.floors[self.test] <= 1 / (MIN_VALIDATION_TEXTS // 2)


@dataclass(frozen=True)
class MethodEvidence:
    """Evidence on one method.

    Attributes:
        area: Area as a fraction; both bounds equal the mean if there is no interval.
        p: P-value by test.
        texts: Number of texts.
        seeds: Number of training runs.
        beyond: Area below the wholly masked level, relative to the removable one; None if not measured.
        unusual: Number of erased texts that look unusual at their rate; None without a test at that rate.
    """

    area: Interval
    p: Mapping[str, float]
    texts: int
    seeds: int = 1
    beyond: Interval | None = None
    unusual: CountTest | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class TaskEvidence(Evidence):
    """Facts of a measurement on the texts of a task, over one or several seeds.

    Attributes:
        methods: Evidence by method, including the baseline.
        kind: Kind of the areas (see `stats.curves.KINDS`).
        metric: Name of the metric.
        whole: Performance on whole texts, as a fraction.
        majority: Performance of the best guess that does not depend on the text.
        converged: Whether the performance passes the task's threshold.
        outside_share: Largest share, over the steps below 100 %, of randomly masked texts that are out of
            distribution when tested individually.
        p_wholly_masked: P-value of wholly masked texts, by the deciding test.
        racu_divisor: Area between random erasure and the performance on wholly masked texts, as a fraction.
        seeds: Number of training runs over which the values are averaged.
        unlearned_seeds: Number of training runs left out because they did not learn the task.
        classes_by_number: Whether the classes of model and task were matched by number, not by name.
        cost: Loss of performance on whole texts against a plainly fine-tuned model, as a fraction.
        p_plain: P-value of the check of that model.
        other_seeds: Number of training runs left out because they were measured on other texts.
        group: Methods that cannot be told apart from the best, best first; empty if not computed.
        texts_needed: About how many texts would tell the group's first two apart.
        shared: By method that was measured on other texts than most: the number of texts that it shares with
            the best method, and the areas of methods on them.
        explained_once: Methods whose scores were computed elsewhere, for whole texts only.
        lead: Performance on whole texts above the best guess that ignores the text; None if not computed.
        behavior: Behavioral check on masked texts; None if it was not made.
        optimizers: Methods that optimize the measured order itself: the ceiling, not rivals.
        training_spread: Standard deviation over training runs of the best method's area.
    """

    methods: Mapping[str, MethodEvidence]
    kind: str = NUMBER_KIND
    metric: str = "accuracy"
    whole: float
    majority: float
    converged: bool = True
    outside_share: float = 0.0
    p_wholly_masked: float = math.nan
    racu_divisor: float = math.nan
    seeds: int = 1
    unlearned_seeds: int = 0
    classes_by_number: bool = False
    cost: float = math.nan
    p_plain: float = math.nan
    group: tuple[str, ...] = ()
    texts_needed: int | None = None
    other_seeds: int = 0
    shared: Mapping[str, tuple[int, Mapping[str, float]]] = field(default_factory=dict)
    explained_once: tuple[str, ...] = ()
    lead: Interval | None = None
    behavior: Behavior | None = None
    optimizers: tuple[str, ...] = ()
    training_spread: float = math.nan

    @property
    def learned(self) -> bool:
        """Whether the model passes the task's threshold and is clearly better than guessing."""
        # older records and single texts have no interval of the lead
        if self.lead is None or math.isnan(self.lead.lower):
            return self.converged and self.whole > self.majority
        return self.converged and self.lead.lower > 0

    @property
    def strayed(self) -> bool:
        """Whether the model was adapted, and agrees too seldom with the original to stand for it."""
        # NaN, for a model that was not adapted, is not smaller
        return self.agreement < MIN_AGREEMENT

    @property
    def by_faithfulness(self) -> bool:
        """Whether methods are judged by faithfulness, and the model by the behavioral check."""
        return self.kind == MAIN_KIND

    def p(self, method: str) -> float:
        """Return a method's p-value by the deciding test; NaN if it cannot reject, or is not available."""
        # a test that cannot reject has said nothing: its p-value must not look like a pass
        if not self.checked or method not in self.methods:
            return math.nan
        return self.methods[method].p.get(str(self.test), math.nan)

    def is_outside(self, method: str) -> bool:
        """Return whether the texts erased by a method are out of distribution."""
        unusual = self.unusual(method)
        if unusual is not None:
            return rejects(unusual.p)
        return rejects(self.p(method)) or (method == BASELINE and self.mostly_outside and self.validated)

    def unusual(self, method: str) -> CountTest | None:
        """Return how many texts erased by a method look unusual; None if faithfulness does not decide."""
        known = self.methods.get(method)
        return known.unusual if known and self.by_faithfulness else None

    @property
    def mostly_outside(self) -> bool:
        """Whether most texts, masked at random, are individually out of distribution at some step."""
        return self.checked and self.outside_share > MAX_OUTSIDE_SHARE

    @property
    def undecided(self) -> bool:
        """Whether most texts are rejected individually, and nothing else speaks against the model."""
        return self.mostly_outside and not self.is_outside(BASELINE)

    @property
    def accepted(self) -> bool:
        """Whether the model learned the task, stands for the original, and passes the check."""
        if self.by_faithfulness:
            passes = self.behavior is not None and self.behavior.outcome == "accepted"
        else:  # for numbers there is no behavioral check: the test of hidden states decides
            passes = self.checked and not self.undecided and not self.is_outside(BASELINE)
        return self.learned and not self.strayed and passes

    @property
    def measurable(self) -> bool:
        """Whether the model is accepted, and nothing in its training speaks against masks."""
        # of hidden states a check that does not reject proves little, so masks in training must be known
        known = self.by_faithfulness or self.trained_with != "unknown"
        return self.accepted and known and self.trained_with != "none"

    @property
    def explained(self) -> dict[str, MethodEvidence]:
        """Methods other than the baseline, largest area first."""
        others = {name: method for name, method in self.methods.items() if name != BASELINE}
        return dict(sorted(others.items(), key=lambda item: -_or_least(item[1].area.mean)))

    @property
    def rivals(self) -> list[str]:
        """Methods that can be ranked together: those measured on the most common number of texts.

        Searches optimize the measured order and do not compete.
        """
        places = {}
        for name, own in self.explained.items():
            if name not in self.optimizers:
                places[name] = (own.seeds, own.texts)
        return find_comparable(places)


def find_comparable(places: Mapping[str, tuple[Any, ...]]) -> list[str]:
    """Return the methods at the most common place: areas on other texts or seeds cannot be compared.

    A place begins with numbers of seeds and texts; of equally common ones, the larger wins.
    """
    counts = Counter(places.values())
    usual = max(counts, key=lambda place: (counts[place], *place), default=None)
    return [name for name, place in places.items() if place == usual]


def _or_least(area: float) -> float:
    return -math.inf if math.isnan(area) else area


def gather_evidence(
    methods: Mapping[str, MethodEvidence], checks: Sequence[Mapping[int, DatasetPValue]], **facts: Any
) -> TaskEvidence:
    """Return the evidence of a measurement with one or several seeds.

    Args:
        methods: Evidence by method.
        checks: For each seed, the p-values by percentage of texts masked at random, by the deciding test;
            empty without tests.
        facts: Other fields of `TaskEvidence`.
    """
    shares = []
    for steps in checks:  # the mean over seeds of the worst step of each
        below = [step.below[SIGNIFICANCE_LEVEL] for percent, step in steps.items() if percent < 100]
        shares.append(max(below))
    last = [steps[100].p for steps in checks]  # all methods share the wholly masked text
    return TaskEvidence(
        methods=methods,
        outside_share=sum(shares) / len(shares) if shares else 0.0,
        p_wholly_masked=float(simes(last)) if last else math.nan,
        **facts,
    )


@dataclass(frozen=True)
class TextMethodEvidence:
    """Evidence on one method on one text.

    Attributes:
        acu: Area below the mean of the random orders, as a fraction.
        chance: Share of orders that do at least as well, including the method's own.
        p: By test, the combined p-value of the steps.
        steps: By test, the p-value at each percentage erased.
    """

    acu: float
    chance: float
    p: Mapping[str, float]
    steps: Mapping[str, Mapping[int, float]]


@dataclass(frozen=True, kw_only=True, eq=False)
class TextEvidence(Evidence):
    """Facts of a measurement of one text.

    Attributes:
        methods: Evidence by method.
        unread: Share of the text's words that the model's tokenizer does not know.
    """

    methods: Mapping[str, TextMethodEvidence]
    unread: float = 0.0

    def p(self, method: str) -> float:
        """Return a method's p-value by the deciding test; NaN if no test can reject."""
        return self.methods[method].p.get(str(self.test), math.nan) if self.checked else math.nan

    def is_outside(self, method: str) -> bool:
        """Return whether the text, erased by a method, is out of distribution."""
        return rejects(self.p(method))


@dataclass(frozen=True, kw_only=True, eq=False)
class ProbeEvidence(Evidence):
    """Facts of one masked text: its p-value by test, and whether any token is masked."""

    p: Mapping[str, float]
    masked: bool


def choose_test(tests: Iterable[str]) -> str:
    """Return the deciding test: the cross-fitted one, valid for texts masked as in training, if present."""
    names = list(tests)
    return "crossfit" if "crossfit" in names else names[0]


def rejects(p: float) -> bool:
    """Return whether a p-value is significant; NaN is not."""
    return p < SIGNIFICANCE_LEVEL
