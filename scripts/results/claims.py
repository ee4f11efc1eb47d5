"""Evidence → claims, each with its effect, interval, verdict and published counterpart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from evidence import (
    MASKED,
    PLAIN,
    Effect,
    Place,
    Study,
    difference,
    over_seeds,
    paired,
    published_areas,
    spearman,
)
from pandas import DataFrame

from faithmeter.config import BASELINE, SIGNIFICANCE_LEVEL
from faithmeter.paper import published
from faithmeter.stats.curves import racu
from faithmeter.stats.pvalues import simes

MARGIN = 2.0
"""Points of performance that count as no difference."""
CORRELATION = 0.5
"""Rank correlation from which on two orders of methods count as alike."""
STORIES = "01-stories"
LONGER = "05-stories-epochs"
ROAR = "08-stories-roar"
VARIANTS = (LONGER, "06-stories-scope", "07-stories-rates", ROAR)
"""Grids that repeat another one with one setting changed; the claims are about the others."""
PERCENTS = tuple(range(10, 100, 10))
"""Steps that the claim about masked texts is about; the wholly masked text is reported apart."""


STATEMENTS = {
    "a": ("Masked fine-tuning does not lower unmasked performance (masked − plain, points)",),
    "b": (
        "Wholly masked, the masked model reaches the class majority (model − majority, points)",
        "Wholly masked, the plain model stays below the class majority (majority − model, points)",
    ),
    "c": (
        "After masked fine-tuning, masked texts are not rejected ({} test)",
        "After plain fine-tuning, masked texts are rejected ({} test)",
    ),
    "d": ("Methods have the published order (Spearman with RoBERTa-base)",),
    "e": ("Explaining again at every step raises ACU ({0} − {0} explained once, points)",),
    "f": ("Twice the epochs are not needed ({} texts: E − 2E epochs, points)",),
    "g": ("RACU of grad-l2 is above that of Recursive ROAR (ours − theirs, points)",),
    "h": ("ACU of {} differs on the plain model (plain − masked, points)",),
    "i": ("Token counts alone beat the class majority (counts − majority, points)",),
}
"""What is claimed, by letter: the effect in brackets."""


@dataclass(frozen=True)
class Claim:
    """One claim on one task and model; without an effect it was not measured here."""

    letter: str
    statement: str
    where: str = ""
    effect: Effect | None = None
    verdict: str = "not measured here"
    published: str = "–"


def judge(effect: Effect, threshold: float = 0.0) -> str:
    """Return holds or fails if the whole interval is above or below the threshold, else unclear."""
    if effect.lower > threshold:
        return "holds"
    return "fails" if effect.upper < threshold else "unclear"


def _both_trained(study: Study) -> Iterator[Place]:
    for place in study.places.values():
        if study.test_scores(place.grid, MASKED, "0") and study.test_scores(place.grid, PLAIN, "0"):
            yield place


def unmasked_performance(study: Study) -> Iterator[Claim]:
    [statement] = STATEMENTS["a"]
    for place in _both_trained(study):
        scores = (study.test_scores(place.grid, strategy, "0") for strategy in (MASKED, PLAIN))
        effect = paired(*scores)
        yield Claim("a", statement, place.name, effect, judge(effect, -MARGIN), "holds")


def wholly_masked_performance(study: Study) -> Iterator[Claim]:
    reaches, misses = STATEMENTS["b"]
    for place in _both_trained(study):
        majority = study.majority(place.grid)
        masked = over_seeds(v - majority for v in study.test_scores(place.grid, MASKED, "100").values())
        plain = over_seeds(majority - v for v in study.test_scores(place.grid, PLAIN, "100").values())
        yield Claim("b", reaches, place.name, masked, judge(masked, -MARGIN), "holds")
        yield Claim("b", misses, place.name, plain, judge(plain), "holds on most tasks")


def judge_pvalue(p: float, strategy: str) -> str:
    """Return whether the test decides as claimed: it rejects masked texts of plain models only."""
    return "holds" if (p < SIGNIFICANCE_LEVEL) == (strategy == PLAIN) else "fails"


def in_distribution(study: Study) -> Iterator[Claim]:
    for strategy, statement in zip((MASKED, PLAIN), STATEMENTS["c"], strict=True):
        for test in ("crossfit", "published"):
            for place in study.places.values():
                if study.measured(place.grid, strategy) and place.grid not in VARIANTS:
                    p = float(simes([study.pvalue(place.grid, strategy, test, n) for n in PERCENTS]))
                    verdict = judge_pvalue(p, strategy)
                    yield Claim(
                        "c", statement.format(test), place.name, Effect(p, over="p"), verdict, "holds"
                    )


def published_order(study: Study) -> Iterator[Claim]:
    [statement] = STATEMENTS["d"]
    pairs = {}
    for place in study.places.values():
        if place.grid in study.ranked_grids and place.grid not in VARIANTS:
            pairs[place] = study.predictions(place.grid, MASKED), published_areas(place.task)
            effect = spearman([pairs[place]])
            yield Claim("d", statement, place.name, effect, judge(effect, CORRELATION), "reference")
    if len(pairs) > 1:
        effect = spearman(pairs.values())
        yield Claim("d", statement, "mean of these", effect, judge(effect, CORRELATION), "reference")


def recursion(study: Study) -> Iterator[Claim]:
    for method in ("loo-sign", "grad-l2"):
        statement = STATEMENTS["e"][0].format(method)
        for place in study.places.values():
            if study.areas(place.grid, MASKED, f"{method}-once"):
                effect = difference(study.intervals(place.grid, MASKED), method, f"{method}-once")
                yield Claim("e", statement, place.name, effect, judge(effect), "not published")


def twice_the_epochs(study: Study) -> Iterator[Claim]:
    [statement] = STATEMENTS["f"]
    if LONGER in study.places:
        for words, masking in (("whole", "0"), ("masked", "uniform")):
            scores = (study.test_scores(grid, MASKED, masking) for grid in (STORIES, LONGER))
            effect = paired(*scores)
            verdict, name = judge(effect, -MARGIN), study.places[LONGER].name
            yield Claim("f", statement.format(words), name, effect, verdict, "uses twice the epochs")


def recursive_roar(study: Study) -> Iterator[Claim]:
    for grid, rows in study.frames["roar"].groupby("grid"):
        ours_grid = STORIES if str(grid) == ROAR else str(grid)
        ours, theirs = study.areas(ours_grid, MASKED, "grad-l2", "racu"), _roar_areas(rows)
        if ours.keys() & theirs.keys():
            effect, place = paired(ours, theirs), study.places[ours_grid].name
            yield Claim("g", STATEMENTS["g"][0], place, effect, judge(effect), roar_difference())


def _roar_areas(rows: DataFrame) -> dict[int, float]:
    """Return the RACU of grad-l2 by Recursive ROAR of each seed that has all steps, in percent."""
    areas = {}
    for seed in sorted(rows["seed"].unique()):
        own = rows[rows["seed"] == seed].sort_values("percent")
        curves = {method: steps["value"].tolist() for method, steps in own.groupby("method")}
        steps = 1 + -(-100 // int(own["step"].iloc[0]))
        if [len(curves.get(name, ())) for name in ("grad-l2", BASELINE)] == [steps, steps]:
            areas[int(seed)] = 100 * racu(curves["grad-l2"], curves[BASELINE])
    return areas


def roar_difference() -> str:
    """Return the published difference for bAbI-1."""
    rows = published.table("faithfulness")
    row = rows[(rows["model"] == "roberta-base") & (rows["dataset"] == "bAbI-1")]
    first = row[row["importance_measure"] == "grad-l2"].iloc[0]
    return f"{first['racu'] - first['rroar_racu']:.1f}"


def plain_areas(study: Study) -> Iterator[Claim]:
    for method in ("loo-sign", "grad-l2"):
        statement = STATEMENTS["h"][0].format(method)
        for place in study.places.values():
            plain, masked = (study.areas(place.grid, strategy, method) for strategy in (PLAIN, MASKED))
            if plain.keys() & masked.keys():
                effect = paired(plain, masked)
                away = effect.lower > 0 or effect.upper < 0
                within = effect.lower > -MARGIN and effect.upper < MARGIN
                verdict = "holds" if away else "fails" if within else "unclear"
                yield Claim("h", statement, place.name, effect, verdict, "not published")


def number_of_masks(study: Study) -> Iterator[Claim]:
    [statement] = STATEMENTS["i"]
    for row in study.lengths.to_dict("records"):
        gain, lower, upper = (100 * row[name] for name in ("gain", "gain_lower", "gain_upper"))
        effect = Effect(gain, lower, upper, f"{row['texts']} texts")
        yield Claim("i", statement, row["task"], effect, judge(effect), "not published")


QUESTIONS: dict[str, tuple[Callable[[Study], Iterator[Claim]], str]] = {
    "a": (unmasked_performance, "Masked fine-tuning does not lower unmasked performance"),
    "b": (wholly_masked_performance, "Wholly masked, only the masked model reaches the class majority"),
    "c": (in_distribution, "The check rejects masked texts after plain fine-tuning, not after masked"),
    "d": (published_order, "Methods have the published order"),
    "e": (recursion, "Explaining again at every step raises ACU"),
    "f": (twice_the_epochs, "Twice the epochs are not needed with the corrected schedule"),
    "g": (recursive_roar, "Recursive ROAR gives lower areas than ours"),
    "h": (plain_areas, "Areas differ on a model that was not fine-tuned with masks"),
    "i": (number_of_masks, "The number of masks gives the label away"),
}


def gather_claims(study: Study) -> list[Claim]:
    """Return all claims of the study in order."""
    return [claim for find, _ in QUESTIONS.values() for claim in find(study)]
