"""The three answers of a verdict, each a mood and a sentence, from the frames of one task and model."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from ...config import BASELINE, SIGNIFICANCE_LEVEL
from ...faithfulness.intervals import Interval, bootstrap_interval
from ...faithfulness.pvalues import format_pvalue, simes

if TYPE_CHECKING:
    from pandas import DataFrame

    Frames: TypeAlias = Mapping[str, DataFrame]
    Published: TypeAlias = Mapping[tuple[str, str, str], float]

COST = 0.02
"""A loss of performance on unmasked texts, as a fraction, from which on masking is said to have a price."""
FEW = 100
"""Below this many texts a curve is coarse."""
PREFERRED = {"strategy": ("half", "all", "none"), "validation": ("both", "masked", "unmasked")}
"""Which fine-tuning is judged where a store holds several."""
GOOD, CAUTION, BAD = "good", "caution", "bad"

Answer = tuple[str, str]
"""A mood and a sentence."""


def rank(strategy: str, validation: str, scope: str) -> tuple[int, int, bool]:
    """A sort key of fine-tunings, the preferred one first."""
    places = PREFERRED["strategy"].index(strategy), PREFERRED["validation"].index(validation)
    return *places, scope != "explained"


def judged(areas: DataFrame) -> DataFrame:
    """The rows of one fine-tuning: masked rather than plain, if methods were measured on both."""
    explained = areas[areas["method"] != BASELINE]
    candidates = (explained if len(explained) else areas)[[*PREFERRED, "scope"]].drop_duplicates()
    best = min(candidates.itertuples(index=False), key=lambda tuning: rank(*tuning))
    return areas[(areas[[*PREFERRED, "scope"]] == list(best)).all(axis=1)]


def measurable(own: Frames, rows: DataFrame, learned: DataFrame) -> Answer:
    if not len(learned):
        seeds = rows["seed"].nunique()
        among = "" if seeds == 1 else f" with any of {seeds} seeds"
        reached = (
            f"{_percent(rows['whole'].max())} on whole texts, {_percent(rows['majority'].max())} by guessing"
        )
        return BAD, f"No: it did not learn the task{among} ({reached}), so there is nothing to explain."
    p = _p(learned, BASELINE)
    performance, costly = _performance(own, learned)
    if math.isnan(p):
        untold = "no test tells whether masked texts are normal to it, or only one of too few texts to reject"
        return CAUTION, f"Not known: {untold}; {performance}."
    tuned = f"fine-tuned {'without' if rows['strategy'].iloc[0] == 'none' else 'with'} masks"
    if p < SIGNIFICANCE_LEVEL:
        strange = (
            f"for the model, {tuned}, texts masked at random are out of distribution ({format_pvalue(p)})"
        )
        return BAD, f"No: {strange}, so what it does with them says little about what it goes by."
    normal = "there is no sign that texts masked at random are out of distribution for the model"
    return CAUTION if costly else GOOD, f"Yes: {normal}, {tuned} ({format_pvalue(p)}); {performance}."


def _performance(own: Frames, learned: DataFrame) -> tuple[str, bool]:
    """What masking cost on unmasked texts, and whether that is much."""
    run = learned.iloc[0]
    test = own["train"][(own["train"]["split"] == "test") & (own["train"]["masking"] == "0")]
    test = test[test["converged"].astype(bool)]
    plain = test[test["strategy"] == "none"]["value"].mean()
    tuned = test[(test["strategy"] == run.strategy) & (test["validation"] == run.validation)]
    value, guess = tuned["value"].mean(), tuned["majority"].mean()
    if math.isnan(value):  # the checkpoint was trained elsewhere
        most = learned[learned["texts"] == learned["texts"].max()]
        value, guess = most["whole"].mean(), most["majority"].mean()
    reached = f"{_percent(value)} {run.metric.replace('_f1', ' F1')} (guessing: {_percent(guess)})"
    said = f"it classifies whole texts at {reached}"
    if run.strategy == "none":
        return said, False
    if math.isnan(plain):
        return f"{said}, with no plainly fine-tuned model here to tell what the masks cost", False
    return f"{said}, a plainly fine-tuned one at {_percent(plain)}", plain - value > COST


def best(
    areas: Mapping[str, Interval],
    others: Mapping[str, tuple[int, Mapping[str, float]]],
    strange: Mapping[str, float],
    published: Mapping[str, float | None],
    *,
    trusted: bool,
) -> tuple[Answer, tuple[str, ...]]:
    """The sentence, and the methods in the lead: those whose intervals overlap with that of the best."""
    (mood, sentence), leaders = _leading(areas, strange, published, trusted=trusted)
    if not leaders:
        return (mood, sentence), leaders
    said, ahead = _on_other_texts(leaders[0], others)
    return (CAUTION if ahead else mood, sentence + said), leaders


def _on_other_texts(
    leader: str, others: Mapping[str, tuple[int, Mapping[str, float]]]
) -> tuple[str, list[str]]:
    """Of methods that were measured on other texts: how they and the leader do on those that they share."""
    said, ahead = "", []
    for method, (texts, areas) in others.items():
        if not {method, leader} <= set(areas):
            said += f" {method} was not measured on the same texts."
            continue
        pair = f"{method} has {_percent(areas[method])} and {leader} {_percent(areas[leader])}"
        said += f" On the {texts} texts that both were measured on, {pair}."
        ahead += [method] if areas[method] > areas[leader] else []
    return said, ahead


def _leading(
    areas: Mapping[str, Interval],
    strange: Mapping[str, float],
    published: Mapping[str, float | None],
    *,
    trusted: bool,
) -> tuple[Answer, tuple[str, ...]]:
    ranking = [(method, area) for method, area in areas.items() if method not in strange]
    if not areas:
        return (CAUTION, "Not known: no method was measured on a model that learned the task."), ()
    if not ranking:
        return (BAD, "None can be named: what the methods leave of the texts is out of distribution."), ()
    (method, area), *others = ranking
    reported = published[method]
    paper = "" if reported is None else f"; the paper reports {reported:.1f}%"
    shown = f"{method}, whose area below random erasure (ACU) is {_interval(area)}{paper}"
    if not trusted:
        unsure = "None can be named while the model is not measurable; by the numbers alone it would be"
        return (BAD, f"{unsure} {shown}."), ()
    if area.lower <= 0:
        return (BAD, f"None is surely better than a random order; the best is {shown}."), ()
    if area.n == 1:
        once = "; with one seed there is no interval, and another seed may turn the order"
        return (CAUTION, f"On this one seed it is {shown}{_lead(area, others)}{once}."), (method,)
    tied = tuple(name for name, other in others if other.upper >= area.lower)
    if tied:
        overlap = f"it cannot be told apart from {listed(tied)}, as intervals over seeds overlap"
        return (CAUTION, f"Not decided: the best is {shown}, but {overlap}."), (method, *tied)
    return (GOOD, f"It is {shown}{_lead(area, others)}."), (method,)


def _lead(area: Interval, others: Sequence[tuple[str, Interval]]) -> str:
    if not others:
        return ""
    name, other = others[0]
    return f", {100 * (area.mean - other.mean):.1f} points ahead of {name}"


def distrust(
    all_areas: DataFrame, rows: DataFrame, learned: DataFrame, areas: Mapping[str, Interval]
) -> Answer:
    """What the numbers themselves speak against; limits, where they speak against nothing."""
    strange = out_of_distribution(learned, [BASELINE, *areas])
    if not len(learned):
        return BAD, "Do not trust any number here: they are of a model that has not learned the task."
    doubts = list(_doubts(all_areas, rows, learned, areas, strange))
    if doubts:
        return BAD if strange else CAUTION, f"Do not trust {'; '.join(doubts)}."
    seeds = learned["seed"].nunique()
    limits = f"these {learned['texts'].max()} texts and {seeds} seed{'s' * (seeds > 1)}"
    return GOOD, f"Nothing measured here speaks against the numbers; they hold for {limits}, not beyond."


def _doubts(
    all_areas: DataFrame,
    rows: DataFrame,
    learned: DataFrame,
    areas: Mapping[str, Interval],
    strange: Mapping[str, float],
) -> Iterator[str]:
    for method, p in strange.items():
        whose = (
            f"the area of {method}" if method != BASELINE else "any area, as it is taken from random erasure"
        )
        yield f"{whose}, which leaves texts that are out of distribution ({format_pvalue(p)})"
    if weak := [method for method, area in areas.items() if area.lower <= 0 and method not in strange]:
        yield f"explanations by {listed(weak)}, not surely better than a random order"
    plain = all_areas[all_areas["strategy"] == "none"]
    if rows["strategy"].iloc[0] != "none" and (p := _p(plain, BASELINE)) < SIGNIFICANCE_LEVEL:
        foreign = f"for which masked texts are out of distribution ({format_pvalue(p)})"
        yield f"any erasure on the plainly fine-tuned model, {foreign}"
    if failed := set(rows["seed"]) - set(learned["seed"]):
        whole = rows["seed"].nunique()
        yield f"{len(failed)} of {whole} seeds, which did not learn the task and are left out"
    few = learned[(learned["texts"] < FEW) & (learned["method"] != BASELINE)]
    if len(few):
        methods = listed(list(dict.fromkeys(few["method"])))
        yield f"small differences of {methods}, measured on {few['texts'].min()} texts only"


def untested(train: DataFrame) -> tuple[Answer, Answer, Answer]:
    """All three answers of a model that was only trained."""
    test = train[(train["split"] == "test") & (train["masking"] == "0")]
    means = test.groupby("strategy", sort=False)["value"].mean()
    values = [f"{_percent(value)} with strategy {name}" for name, value in means.items()]
    reached = ", ".join([*values, f"{_percent(test['majority'].mean())} by guessing"])
    return (
        (CAUTION, f"Not known yet: it was trained but not measured; whole texts: {reached}."),
        (CAUTION, "Not known yet: no explanation has been measured."),
        (CAUTION, "Do not trust any explanation of it before `faithmeter measure` has been run."),
    )


def ranking(learned: DataFrame) -> dict[str, Interval]:
    """The mean ACU of each method with its interval over seeds, best first; all on as many texts as most."""
    explained = learned[learned["method"] != BASELINE]
    alike = explained[explained["texts"] == explained["texts"].mode().max()]
    areas = {str(name): bootstrap_interval(rows["acu"]) for name, rows in alike.groupby("method")}
    return dict(sorted(areas.items(), key=lambda item: -item[1].mean))


def on_other_texts(
    learned: DataFrame, ranked: Collection[str], shared: DataFrame
) -> dict[str, tuple[int, dict[str, float]]]:
    """For each method that is not ranked: the number of texts that it shares with others, and ACU on them."""
    explained = learned[learned["method"] != BASELINE]
    shared = shared.merge(learned[[*PREFERRED, "scope", "seed"]].drop_duplicates())
    usual, found = explained["texts"].mode().max(), {}
    for method, rows in explained[~explained["method"].isin(ranked)].groupby("method"):
        texts = int(min(usual, rows["texts"].min()))
        same = shared[(shared["texts"] == texts) & shared["seed"].isin(rows["seed"])]
        means = same.groupby("method")["acu"].mean()
        found[str(method)] = texts, {str(name): float(area) for name, area in means.items()}
    return found


def out_of_distribution(learned: DataFrame, methods: Iterable[str]) -> dict[str, float]:
    """Methods whose erased texts are out of distribution, with the p-value."""
    pvalues = {method: _p(learned, method) for method in methods}
    return {method: p for method, p in pvalues.items() if p < SIGNIFICANCE_LEVEL}


def _p(rows: DataFrame, method: str) -> float:
    """One p-value for the seeds of a method, by the cross-fitted test where it was run and could reject."""
    able = rows["floor_crossfit"] < SIGNIFICANCE_LEVEL
    values = rows[(rows["method"] == method) & able]["p_crossfit"].dropna()
    return float(simes(values)) if len(values) else math.nan


def _interval(area: Interval) -> str:
    shown = _percent(area.mean)
    return shown if area.n == 1 else f"{shown} [{100 * area.lower:.1f}, {100 * area.upper:.1f}]"


def _percent(value: float) -> str:
    return f"{value:.1%}"


def listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
