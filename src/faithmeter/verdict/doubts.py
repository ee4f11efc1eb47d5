"""Rules: reasons to doubt a measurement, each a small function of the evidence."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from ..config import BASELINE, SIGNIFICANCE_LEVEL
from ..stats.metrics import NUMBER_METRICS
from .evidence import (
    MAX_UNREAD,
    MIN_AGREEMENT,
    MIN_RACU_DIVISOR,
    MIN_TEXTS,
    MIN_VALIDATION_TEXTS,
    ROUNDING,
    Evidence,
    ProbeEvidence,
    TaskEvidence,
    TextEvidence,
    rejects,
)
from .formats import format_metric, format_percent, format_pvalue, join_names

BAD, CAUTION, NOTE = "bad", "caution", "note"
"""Severities of doubts. Bad: do not trust the areas. Caution: they have a limit. Note: good to know."""
SEVERITIES = (BAD, CAUTION, NOTE)
STEP_WARNING = "do not trust this step"
"""Warning at a step where a text is out of distribution."""
LOW_PRECISIONS = ("bf16", "fp16")
TEST_NAMES = {"crossfit": "cross-fitted", "published": "published"}
UNFAITHFUL = "unfaithful"
"""Kind of doubt raised when an area can be trusted and shows that explanations are not faithful."""


@dataclass(frozen=True)
class Doubt:
    """Reason to doubt a measurement.

    Attributes:
        kind: Name of the rule, such as `outside`.
        severity: `bad`, `caution` or `note`.
        methods: The methods concerned; empty means all.
        text: The reason in one line of plain words.
    """

    kind: str
    severity: str
    methods: tuple[str, ...]
    text: str

    def concerns(self, method: str) -> bool:
        return not self.methods or method in self.methods


def doubts(evidence: Evidence) -> list[Doubt]:
    """Return all reasons to doubt a measurement, the most severe first."""
    rules = RULES[type(evidence)]
    reasons = list(chain.from_iterable(rule(evidence) for rule in rules))
    # sorting is stable: among equally severe doubts, the order of the rules tells which is more basic
    return sorted(reasons, key=lambda doubt: SEVERITIES.index(doubt.severity))


def unlearned(evidence: TaskEvidence) -> Iterator[Doubt]:
    if not evidence.learned:
        text = f"the model did not learn the task ({describe_performance(evidence)})"
        yield Doubt("unlearned", BAD, (), f"{text}, so there is nothing to explain")


def describe_performance(evidence: TaskEvidence) -> str:
    """Describe the performance, e.g. `90.0% accuracy on whole texts, 50.0% by guessing`.

    A guess of classes is the most frequent label of the measured texts, not of the training texts.
    """
    guess = "by guessing" if evidence.metric in NUMBER_METRICS else "by guessing their most frequent label"
    return (
        f"{format_percent(evidence.whole)}% {format_metric(evidence.metric)} on whole texts, "
        f"{format_percent(evidence.majority)}% {guess}"
    )


def misbehaving(evidence: TaskEvidence) -> Iterator[Doubt]:
    if not evidence.by_faithfulness:  # a model that predicts numbers has no such check
        return
    if evidence.behavior is None:
        text = f"masked texts were not checked, so no area proves anything. {explain_unchecked_masks()}"
        yield Doubt("unchecked", BAD, (), text.removesuffix("."))
    elif evidence.behavior.outcome == "rejected":
        text = "the model handles masked texts badly, so its areas say little about what it relies on"
        yield Doubt("misbehaving", BAD, (), text)
    elif evidence.behavior.outcome == "undecided":
        text = "too few texts tell whether the model handles masked texts well"
        yield Doubt("undecided", BAD, (), text)


def explain_unchecked_masks() -> str:
    """Return what to do for a model that was not checked on masked texts."""
    return "Name the task of the model, give --valid FILE or, in Python, tests=fit_tests(…)."


def unchecked(evidence: Evidence) -> Iterator[Doubt]:
    if not evidence.checked and not _is_checked_otherwise(evidence):
        text = "nothing tells whether masked texts are normal to this model, so no area proves anything"
        yield Doubt("unchecked", BAD, (), f"{text}: {explain_unchecked(evidence)}")


def explain_unchecked(evidence: Evidence) -> str:
    """Return the reason why no test can reject."""
    if evidence.test is None:
        return "no check was made; name the task of the model, --valid FILE, or tests=fit_tests(…)"
    floor = evidence.floors[evidence.test]
    return f"there are too few validation texts for a p-value below {floor:.2g}"


def _is_checked_otherwise(evidence: Evidence) -> bool:
    """Return whether the behavioral check decides, so that the test of hidden states only casts doubts."""
    return isinstance(evidence, TaskEvidence) and evidence.by_faithfulness


def undecided(evidence: TaskEvidence) -> Iterator[Doubt]:
    if evidence.undecided and not evidence.by_faithfulness:
        text = f"{explain_undecided(evidence.outside_share)}, so no area proves anything"
        yield Doubt("undecided", BAD, (), text)


def explain_undecided(outside_share: float) -> str:
    """Return the reason why individual rejections do not decide."""
    texts = f"{format_percent(outside_share, 0)}% of the texts masked at random"
    few = f"which with fewer than {MIN_VALIDATION_TEXTS} validation texts also happens to good models"
    return f"{texts} are rejected one by one at some step, {few} (give more with --valid)"


def outside(evidence: TaskEvidence) -> Iterator[Doubt]:
    # where the behavioral check decides, the test of hidden states only makes a method less sure
    if evidence.by_faithfulness:
        yield from _unusual(evidence)
        return
    for method in evidence.methods:
        if evidence.is_outside(method):
            how = describe_outside(evidence, method)
            if method == BASELINE:  # it is what all areas are measured from
                text = f"texts masked at random are out of distribution ({how}), so do not trust any area"
                yield Doubt("outside", BAD, (), text)
            else:
                text = f"texts erased by {method} are out of distribution ({how}), so do not trust its areas"
                yield Doubt("outside", BAD, (method,), text)


def _unusual(evidence: TaskEvidence) -> Iterator[Doubt]:
    """Yield a doubt about methods whose erased texts look unusual to the model."""
    names = [name for name in evidence.methods if evidence.is_outside(name)]
    if names:
        hows = ", ".join(f"{name}: {describe_outside(evidence, name)}" for name in names)
        text = f"texts erased by {join_names(names)} look unusual to the model ({hows})"
        yield Doubt("outside", CAUTION, tuple(names), f"{text}: see its predictions on them as less sure")


def describe_outside(evidence: TaskEvidence, method: str) -> str:
    """Describe the evidence that erased texts are out of distribution: a p-value or a share of texts."""
    unusual = evidence.unusual(method)
    if unusual is not None:
        return f"{format_percent(unusual.share, 0)}% of them one by one at some rate, 5% by chance"
    if rejects(evidence.p(method)):
        return describe_pvalue(evidence, evidence.p(method))
    return f"{format_percent(evidence.outside_share, 0)}% of them one by one, at some step"


def describe_pvalue(evidence: Evidence, p: float) -> str:
    """Format a p-value with the name of the deciding test, e.g. `cross-fitted p = 0.50`."""
    return f"{TEST_NAMES[str(evidence.test)]} {format_pvalue(p)}"


def untold_training(evidence: Evidence) -> Iterator[Doubt]:
    texts = {
        "none": "the model was fine-tuned without masks, so a check that does not reject proves little",
        "unknown": "how the model was trained is not known, so the check compares masked texts with whole "
        "ones; if its training masked texts, say so with --trained-with (in Python "
        "trained_with=)",
    }
    if evidence.floors and evidence.trained_with in texts:  # without a check it has no meaning to limit
        yield Doubt("training", CAUTION, (), texts[evidence.trained_with])


def wholly_masked(evidence: TaskEvidence) -> Iterator[Doubt]:
    if evidence.checked and rejects(evidence.p_wholly_masked):
        p = describe_pvalue(evidence, evidence.p_wholly_masked)
        text = f"wholly masked texts are out of distribution ({p})"
        reason = "RACU, which is scaled by them, is less certain than ACU"
        yield Doubt("wholly-masked", CAUTION, (), f"{text}: {reason}")


def small_divisor(evidence: TaskEvidence) -> Iterator[Doubt]:
    # at 0 and below RACU is undefined
    if evidence.explained and 0 < evidence.racu_divisor < MIN_RACU_DIVISOR:
        area = f"an area of {format_percent(evidence.racu_divisor)}%"
        text = f"erasing at random costs only {area}, by which RACU divides"
        yield Doubt("small-divisor", CAUTION, (), f"{text}: compare the methods by ACU")


def disagreement(evidence: TaskEvidence | TextEvidence) -> Iterator[Doubt]:
    if not evidence.checked or not rejects(evidence.floors.get("published", 1.0)) or len(evidence.floors) < 2:
        return
    split = []
    for name, method in evidence.methods.items():
        if method.p and rejects(method.p["published"]) != rejects(method.p["crossfit"]):
            split.append(name)
    if split:
        methods = "every method" if len(split) == len(evidence.methods) > 1 else join_names(split)
        text = f"the published and the cross-fitted test disagree about {methods}"
        reason = "go by the cross-fitted one"
        yield Doubt("disagreement", NOTE, tuple(split), f"{text}: {reason}")


def powerless_published(evidence: Evidence) -> Iterator[Doubt]:
    floor = evidence.floors.get("published", 0.0)  # a test that was not fitted cannot be without power
    if evidence.checked and not rejects(floor):
        text = f"the published test could not have rejected (its smallest p-value is {floor:.2g})"
        yield Doubt("powerless", NOTE, (), f"{text}: go by the cross-fitted one")


def unfaithful(evidence: TaskEvidence) -> Iterator[Doubt]:
    weak = []
    for name, method in evidence.explained.items():
        # `not >` also holds for an undefined area; a method that is outside has a graver doubt already
        if not (method.area.lower > 0 or evidence.is_outside(name)):
            weak.append(name)
    if weak:
        text = f"{join_names(weak)}: not clearly better than a random order"
        yield Doubt(UNFAITHFUL, CAUTION, tuple(weak), text)


def few_texts(evidence: TaskEvidence) -> Iterator[Doubt]:
    few = {name: method.texts for name, method in evidence.explained.items() if method.texts < MIN_TEXTS}
    if few:
        text = f"{join_names(list(few))}: measured on {min(few.values())} texts only"
        yield Doubt("few-texts", CAUTION, tuple(few), f"{text}, so small differences mean little")


def matched_by_number(evidence: TaskEvidence) -> Iterator[Doubt]:
    if evidence.classes_by_number:
        text = "classes of model and task were matched by number, as their names do not tell"
        yield Doubt("classes", CAUTION, (), f"{text}: make sure that they mean the same")


def truncated(evidence: Evidence) -> Iterator[Doubt]:
    if evidence.truncated:
        text = "this text is too long for the model, which did not read its end"
        if isinstance(evidence, TaskEvidence):
            share = f"{format_percent(evidence.truncated)}% of the texts"
            text = f"{share} are too long for the model, which did not read their ends"
        yield Doubt("truncated", CAUTION, (), text)


def low_precision(evidence: Evidence) -> Iterator[Doubt]:
    if evidence.precision in LOW_PRECISIONS:
        text = f"the model was evaluated in {evidence.precision}, so these numbers hold for the rounded model"
        close = "in fp32, close scores may rank otherwise"
        if evidence.ranks_alike:
            close = f"a few texts' scores in fp32 rank alike (correlation {evidence.ranks_alike:.3f} or more)"
        yield Doubt("precision", NOTE, (), f"{text}: {close}")


def unlearned_seeds(evidence: TaskEvidence) -> Iterator[Doubt]:
    if evidence.unlearned_seeds:
        total = evidence.seeds + evidence.unlearned_seeds
        text = f"{evidence.unlearned_seeds} of {total} seeds did not learn the task and are left out"
        yield Doubt("unlearned-seeds", CAUTION, (), text)


def other_seeds(evidence: TaskEvidence) -> Iterator[Doubt]:
    if evidence.other_seeds:
        total = evidence.seeds + evidence.unlearned_seeds + evidence.other_seeds
        text = f"{evidence.other_seeds} of {total} seeds were measured on other texts and are left out"
        yield Doubt("other-texts", NOTE, (), text)


def adapted(evidence: Evidence) -> Iterator[Doubt]:
    if not math.isnan(evidence.agreement):
        share = f"{format_percent(evidence.agreement)}% of held-out texts"
        text = f"this holds for the adapted model, which predicts what the original does on {share}"
        # an area of a model that decides otherwise is of no use to who asked about the original
        strayed = isinstance(evidence, TaskEvidence) and evidence.by_faithfulness and evidence.strayed
        severity = BAD if strayed else NOTE if evidence.agreement >= MIN_AGREEMENT else CAUTION
        yield Doubt("adapted", severity, (), f"{text}; for the original itself nothing is shown")


def plain_model(evidence: TaskEvidence) -> Iterator[Doubt]:
    if rejects(evidence.p_plain):
        text = "for the plainly fine-tuned model masked texts are out of distribution"
        p = f"{TEST_NAMES['crossfit']} {format_pvalue(evidence.p_plain)}"
        text = f"{text} ({p}), so do not trust any erasure on it"
        yield Doubt("plain-model", NOTE, (), text)


def explained_once(evidence: TaskEvidence) -> Iterator[Doubt]:
    names = evidence.explained_once
    if names:
        text = f"{join_names(list(names))}: scores that were computed elsewhere, for whole texts"
        reason = "each text was explained once, not again at every step as by recursive methods"
        yield Doubt("explained-once", NOTE, names, f"{text}; {reason}")


def unread(evidence: TextEvidence) -> Iterator[Doubt]:
    if evidence.unread > MAX_UNREAD:
        share = f"{format_percent(evidence.unread, 0)}% of the words of this text"
        text = f"{share} are not in the model's vocabulary, so its predictions say nothing about them"
        yield Doubt("unread", BAD, (), text)


def text_outside(evidence: TextEvidence) -> Iterator[Doubt]:
    """Yield a doubt for each method whose erased text is out of distribution.

    If the whole text is already out of distribution, a single doubt covers all methods.
    """
    names = [name for name in evidence.methods if evidence.is_outside(name)]
    test = str(evidence.test)
    if len(names) == len(evidence.methods) > 1:
        # at 0 % nothing is erased, so the first p-value is that of the text itself for every method
        p = next(iter(evidence.methods[names[0]].steps[test].values()))
        if rejects(p):
            text = "this text is out of distribution before anything is erased"
            reason = "so do not trust any curve"
            yield Doubt("outside", BAD, (), f"{text} ({describe_pvalue(evidence, p)}), {reason}")
            return
    for name in names:
        method = evidence.methods[name]
        where = _describe_steps(method.steps[test])
        how = describe_pvalue(evidence, method.p[test])
        text = f"erased by {name}, this text is out of distribution {where} ({how})"
        yield Doubt("outside", BAD, (name,), f"{text}, so do not trust its curve")


def _describe_steps(steps: Mapping[int, float]) -> str:
    """Describe the percentages below 100 % at which the text is out of distribution."""
    below = [percent for percent in steps if percent < 100]  # as in the combined p-value
    low = [percent for percent in below if rejects(steps[percent])]
    to_the_end = low == [percent for percent in below if percent >= low[0]]
    return f"from {low[0]} % on" if to_the_end else f"at {', '.join(map(str, low))} %"


def text_unfaithful(evidence: TextEvidence) -> Iterator[Doubt]:
    for name, method in evidence.methods.items():
        if not rejects_chance(method.chance):
            if method.acu <= ROUNDING:
                text = "is not faithful for this text: erasing what it calls important hurts no more than"
                text = f"{text} erasing at random"
            else:
                share = format_percent(method.chance, 0)
                text = f"cannot be told from chance on this text: {share}% of random orders hurt as much"
            yield Doubt(UNFAITHFUL, CAUTION, (name,), f"{name} {text}")


def rejects_chance(share: float) -> bool:
    """Return whether a method beats chance.

    `share` is the share of orders that are at least as good as the method's, including its own.
    """
    return share <= SIGNIFICANCE_LEVEL


def probe_outside(evidence: ProbeEvidence) -> Iterator[Doubt]:
    p = evidence.p.get(str(evidence.test), math.nan)
    if evidence.checked and rejects(p):
        text = "this text, masked as it is," if evidence.masked else "this text"
        text = f"{text} is out of distribution ({describe_pvalue(evidence, p)})"
        yield Doubt("outside", BAD, (), f"{text}, so do not trust what the model makes of it")


Rule = Callable[[Any], Iterator[Doubt]]
COMMON: Sequence[Rule] = (untold_training, powerless_published, truncated, low_precision, adapted)
RULES: dict[type[Evidence], tuple[Rule, ...]] = {
    TaskEvidence: (
        unlearned,
        misbehaving,
        unchecked,
        undecided,
        outside,
        wholly_masked,
        small_divisor,
        unfaithful,
        few_texts,
        unlearned_seeds,
        other_seeds,
        matched_by_number,
        disagreement,
        plain_model,
        explained_once,
        *COMMON,
    ),
    TextEvidence: (unread, unchecked, text_outside, text_unfaithful, disagreement, *COMMON),
    ProbeEvidence: (unchecked, probe_outside, *COMMON),
}
"""Rules that apply to each kind of evidence."""
