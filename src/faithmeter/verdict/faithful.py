"""Answers about a measured model and its methods: the answer first, then the reason, then the numbers.

The behavioral check decides whether the model may be measured, and faithfulness which method is best; of a
model that predicts numbers, the test of hidden states and the ACU. A first sentence has at most twelve words.
`docs/faithfulness.md` tells why the area of accuracy does not decide.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..config import BASELINE
from ..stats.behavior import MAX_EXCESS, Behavior
from .doubts import (
    BAD,
    CAUTION,
    describe_outside,
    describe_performance,
    describe_pvalue,
    explain_unchecked,
    explain_unchecked_masks,
    explain_undecided,
)
from .evidence import MIN_AGREEMENT
from .formats import describe_method, format_number, format_percent, join_names

if TYPE_CHECKING:
    from ..stats.intervals import Interval
    from .evidence import TaskEvidence

GOOD = "good"
MAX_COST = 0.02
"""Largest loss on whole texts, as a fraction, for which masked fine-tuning needs no caution."""
TRAININGS = {
    "half": "fine-tuned with masks",
    "all": "fine-tuned with masks",
    "none": "fine-tuned without masks",
    "unknown": "whose training is not known",
}
MAX_WORDS = 12
"""Words of a first sentence, at most."""
Mooded = tuple[str, str]
"""Mood and text of an answer."""


def judge_model(evidence: TaskEvidence) -> Mooded:
    """Return the answer to whether the model is measurable."""
    basis = describe_basis(evidence)
    # from the most basic doubt to the least: a later answer would hide that an earlier one forbids it
    if not evidence.learned:
        total = evidence.seeds + evidence.unlearned_seeds
        seeds = f" with any of {total} seeds" if total > 1 else ""
        reason = f"It has {describe_performance(evidence)}{_describe_doubtful_lead(evidence)}."
        return BAD, f"No: it did not learn the task{seeds}. {reason} {basis}"
    if evidence.strayed:
        return BAD, f"No: it is not the model that was adapted. {describe_agreement(evidence)} {basis}"
    mood, text = judge_masks(evidence.behavior) if evidence.by_faithfulness else _judge_states(evidence)
    if evidence.behavior is None:
        text = f"{text} {basis}"
    if not evidence.accepted:
        return mood, text
    text += _describe_cost(evidence)
    if evidence.measurable:
        return CAUTION if evidence.cost > MAX_COST and math.isnan(evidence.agreement) else mood, text
    # passing the check does not tell what a model without masks in training does with other masks
    training = "how it was trained is not known" if evidence.trained_with == "unknown" else ""
    training = training or f"it was {TRAININGS[evidence.trained_with]}"
    return CAUTION, f"Perhaps{text.removeprefix('Yes')} {training[0].upper()}{training[1:]}."


def _judge_states(evidence: TaskEvidence) -> Mooded:
    """Return the answer of the test of hidden states, for a model that predicts numbers."""
    reached = f"It has {describe_performance(evidence)}."
    if not evidence.checked:
        reason = f"Reason: {explain_unchecked(evidence)}."
        return CAUTION, f"Not known: masked texts were not checked. {reason} {reached}"
    if evidence.undecided:
        reason = f"{explain_undecided(evidence.outside_share)}."
        return CAUTION, f"Not known: more texts are needed. {reason} {reached}"
    training = TRAININGS[evidence.trained_with]
    if evidence.is_outside(BASELINE):
        strange = f"For the model, {training}, texts masked at random are out of distribution"
        how = describe_outside(evidence, BASELINE)
        return BAD, f"No: masked texts are strange to it. {strange} ({how})."
    normal = "There is no sign that texts masked at random are out of distribution for the model"
    p = describe_pvalue(evidence, evidence.p(BASELINE))
    return GOOD, f"Yes: it passes the check. {normal}, {training} ({p}). {reached}"


def judge_masks(behavior: Behavior | None) -> Mooded:
    """Return the answer of the behavioral check."""
    if behavior is None:
        return CAUTION, f"Not known: masked texts were not checked. {explain_unchecked_masks()}"
    checked = describe_checked_texts(behavior)
    if behavior.outcome == "rejected":
        return BAD, f"No: it handles masked texts badly. {describe_misbehavior(behavior)} {checked}"
    if behavior.outcome == "undecided":
        needed = describe_texts_needed(behavior)
        return CAUTION, f"Not known: {needed}. {describe_misbehavior(behavior)} {checked}"
    reason = "It predicts from masked texts as well as their visible words allow."
    # the largest upper bound, not the largest mean: it is what the check accepted
    numbers = f"At each masking rate the log-loss in excess is at most {format_nats(_largest(behavior))} nats"
    return GOOD, f"Yes: it passes the check. {reason} {numbers} (accepted: {MAX_EXCESS:g}). {checked}"


def name_best(evidence: TaskEvidence) -> tuple[Mooded, tuple[str, ...]]:
    """Return the answer to which method is most faithful, and the leading methods."""
    basis = describe_basis(evidence)
    if not evidence.explained:
        return (CAUTION, f"Not known: no method was measured. {basis}"), ()
    if not evidence.learned:
        return (CAUTION, f"Not known: the model did not learn the task. {basis}"), ()
    if not evidence.accepted or evidence.trained_with == "none":
        return (BAD, f"None can be named while the model is not measurable. {basis}"), ()
    ceiling = _describe_ceiling(evidence)
    if not evidence.rivals:  # who optimizes the measured steps would win any comparison
        return (CAUTION, f"Not known: only searches were measured. {ceiling} {basis}"), ()
    rivals = usual_rivals(evidence)
    if not rivals:
        return (BAD, f"None can be named: the erased texts are strange to the model. {basis}"), ()
    best, *others = rivals
    share = evidence.methods[best].area
    if math.isnan(share.mean):  # a share of next to nothing would be noise divided by noise
        reason = "Masking words hardly changes the probability of the label, so no share can be told."
        return (BAD, f"None: there is nothing to remove. {reason} {basis}"), ()
    removes = describe_area(evidence, best)
    if share.lower <= 0:  # the interval, not the mean, must lie above a random order
        return (BAD, f"None is clearly better than a random order. The best is {best}. {removes} {basis}"), ()
    tail = " ".join(part for part in (_describe_beyond(evidence, best), ceiling, basis) if part)
    if len(evidence.rivals) == 1:
        single = f"Not known: {best} was measured alone, without a rival."
        return (CAUTION, f"{single} {removes} {tail}"), (best,)
    leaders = find_leaders(evidence)
    if len(leaders) > 1:  # too many names would make the first sentence longer than twelve words
        needed = f" About {evidence.texts_needed:,} texts would decide." if evidence.texts_needed else ""
        names = join_names(leaders)
        first = f"Not decided: {names} cannot be told apart." if len(names.split()) < 9 else "Not decided."
        group = "" if len(names.split()) < 9 else f" These cannot be told apart: {names}."
        return (CAUTION, f"{first}{group} Of {best}: {_lower(removes)}{needed} {tail}"), leaders
    lead = ""
    if others:  # none is left if the texts that the others erase are strange to the model
        points = format_percent(share.mean - evidence.methods[others[0]].area.mean)
        lead = f", {points} points ahead of {others[0]}"
    text = f"It is {describe_method(best)}{lead}. {removes} {tail}"
    if not share.wide:
        return (CAUTION, f"{text} Without an interval, other texts may change the order."), leaders
    return (GOOD, text), leaders


def usual_rivals(evidence: TaskEvidence) -> list[str]:
    """Return the methods that compete, the largest area first.

    Of numbers, an area on texts that are strange to the model may be large for that reason alone.
    """
    if evidence.by_faithfulness:
        return evidence.rivals
    return [name for name in evidence.rivals if not evidence.is_outside(name)]


def headline(evidence: TaskEvidence) -> str:
    """Return the sentence above the verdict: what to use, what it achieves, and whether to rely on it."""
    behavior = evidence.behavior
    # the same order as in `judge_model`, so that both never contradict each other; a model of numbers has
    # no behavioral check, and its answer says what the test of hidden states found
    if not evidence.explained:
        return "No explanation was measured."
    if not evidence.learned:
        return "Do not use these explanations. The model did not learn the task."
    if evidence.strayed:
        return f"Do not use these explanations for the original model. {describe_agreement(evidence)}"
    unsure = "Do not rely on these explanations yet."
    if behavior is not None and behavior.outcome == "undecided":
        return f"{unsure} It is not known whether the model passes: {describe_texts_needed(behavior)}."
    if not evidence.accepted:
        rejected = behavior is not None if evidence.by_faithfulness else evidence.is_outside(BASELINE)
        if rejected:
            return "Do not use these explanations. The model does not pass the check."
        return f"{unsure} The model was not checked on masked texts."
    if evidence.trained_with == "none":
        return "Do not rely on these explanations. The model was fine-tuned without masks."
    leaders = find_leaders(evidence)
    if not leaders:
        return "Use none of these explanations. None removes clearly more than a random order."
    removes = f"{describe_area(evidence, leaders[0])} The model passes the check."
    if len(leaders) > 1:
        names = f"{', '.join(leaders[:-1])} or {leaders[-1]}"
        first = f"Use {names}, which cannot be told apart."
        if len(first.split()) > MAX_WORDS:
            first = f"Use one of {len(leaders)} methods, which cannot be told apart. They are {names}."
        return f"{first} For {leaders[0]}: {_lower(removes)}"
    if len(evidence.rivals) == 1:
        return f"Only {leaders[0]} was measured. {removes}"
    return f"Use {leaders[0]}. {removes}"


def find_leaders(evidence: TaskEvidence) -> tuple[str, ...]:
    """Return the best method and those that cannot be told apart from it; empty if none beats chance.

    The paired comparison decides if there is one; otherwise, methods with overlapping intervals are tied.
    """
    rivals = usual_rivals(evidence)
    usable = evidence.accepted and evidence.trained_with != "none" and rivals
    if not usable or not evidence.methods[rivals[0]].area.lower > 0:
        return ()
    best, *others = rivals
    # the comparison may name another best, if texts differ, and hold searches, which do not compete
    if evidence.group[:1] == (best,):
        return (best, *filter(evidence.group.__contains__, others))
    area = evidence.methods[best].area
    tied = [name for name in others if area.wide and evidence.methods[name].area.upper >= area.lower]
    return (best, *tied)


def describe_area(evidence: TaskEvidence, method: str) -> str:
    """Describe what a method achieves: the share that it removes or, of numbers, its ACU."""
    area = evidence.methods[method].area
    if evidence.by_faithfulness:
        return f"Masking its words removes {describe_share(area)}."
    return f"Its area below random erasure (ACU) is {format_area(area)}."


def format_area(area: Interval) -> str:
    """Format an area in percent with its interval, e.g. `31.0% [30.1, 31.9]`."""
    mean = f"{format_percent(area.mean)}%"
    if not area.wide:
        return mean
    return f"{mean} [{format_percent(area.lower)}, {format_percent(area.upper)}]"


def describe_share(share: Interval) -> str:
    """Describe a faithfulness, e.g. `96% of what can be removed (likely 91–99%)`."""
    likely = ""
    if share.wide:
        likely = f" (likely {format_percent(share.lower, 0)}–{format_percent(share.upper, 0)}%)"
    return f"{format_percent(share.mean, 0)}% of what can be removed{likely}"


def describe_basis(evidence: TaskEvidence) -> str:
    """Say how many texts and trainings the numbers rest on, and what trainings leave open."""
    texts = evidence.methods[BASELINE].texts if BASELINE in evidence.methods else 0
    if evidence.seeds > 1:
        spread = evidence.training_spread
        open_ = f"; it varies by {format_percent(spread)} points between trainings" if spread > 0 else ""
        return f"This rests on {texts} texts and {evidence.seeds} trainings{open_}."
    return f"This rests on {texts} texts and one training; another may change the order of close methods."


def describe_agreement(evidence: TaskEvidence) -> str:
    """Say how often an adapted model agrees with the original, and how often it should."""
    share, required = format_percent(evidence.agreement), format_percent(MIN_AGREEMENT, 0)
    return f"The adapted model agrees with it on {share}% of held-out texts; {required}% are required."


def describe_checked_texts(behavior: Behavior) -> str:
    return f"Checked on {behavior.texts} texts after {behavior.validation_texts} validation texts."


def describe_texts_needed(behavior: Behavior) -> str:
    """Say how many texts would decide the check."""
    needed = behavior.texts_needed
    if needed is None:
        return "many more texts are needed to check it"
    return f"the check needs about {needed:,} texts"


def describe_misbehavior(behavior: Behavior) -> str:
    """Describe the quantity and the masking rate that reject, or that leave the check open."""
    percent, quantity, interval, margin = behavior.worst
    if quantity == "shortfall":
        points, limit = _format_points(interval), format_percent(margin, 0)
        return (
            f"With {percent}% masked, always guessing one class is right more often by {points} points; "
            f"accepted: {limit}%."
        )
    bounds = f"[{format_nats(interval.lower)}, {format_nats(interval.upper)}]"
    return (
        f"With {percent}% masked, recalibrating alone would lower its log-loss by "
        f"{format_nats(interval.mean)} nats {bounds}; accepted: {margin:g}."
    )


def format_nats(value: float) -> str:
    return format_number(value, 3)


def _format_points(interval: Interval) -> str:
    mean, lower, upper = (format_percent(value) for value in interval[:3])
    return f"{mean} [{lower}, {upper}]"


def _largest(behavior: Behavior) -> float:
    return max(each.upper for each in behavior.excess)


def _describe_doubtful_lead(evidence: TaskEvidence) -> str:
    lead = evidence.lead
    # a lead below 0 needs no bounds to be doubtful; a single text has none
    if lead is None or not lead.mean > 0 or math.isnan(lead.lower):
        return ""
    return f", and the lead may be chance [{format_percent(lead.lower)}, {format_percent(lead.upper)} points]"


def _describe_cost(evidence: TaskEvidence) -> str:
    if math.isnan(evidence.cost):
        return ""
    points = format_percent(abs(evidence.cost))
    than = "less" if evidence.cost > 0 else "more"
    return f" On all test texts it has {points} points {than} than a plainly fine-tuned model."


def _describe_beyond(evidence: TaskEvidence, method: str) -> str:
    beyond = evidence.methods[method].beyond
    # below half a percent the sentence would read "a further 0 %"
    if beyond is None or not beyond.lower > 0.005:
        return ""
    share = format_percent(beyond.mean, 0)
    return f"A further {share}% is evidence against the label, which is not counted."


def _describe_ceiling(evidence: TaskEvidence) -> str:
    """Describe the searches, which optimize what is measured and therefore do not compete."""
    searches = [(evidence.methods[name].area.mean, name) for name in evidence.optimizers]
    if not searches or math.isnan(max(searches)[0]):
        return ""
    share, name = max(searches)
    return f"{name} optimizes the measured steps themselves: its {format_percent(share, 0)}% is the ceiling."


def _lower(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]
