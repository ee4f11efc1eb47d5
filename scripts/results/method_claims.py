"""Evidence → claims about importance measures: which are faithful, and whether erased texts are normal."""

from __future__ import annotations

from collections.abc import Iterator

from claim import UNPUBLISHED, Claim, statements
from evidence import MASKED, METHODS, PLAIN, STEPS, Effect, Place, Study, paired, published_areas
from evidence import spearman as rank_correlation
from pandas import DataFrame
from rules import (
    CORRELATION,
    MOST,
    judge,
    judge_difference,
    judge_gain,
    judge_no_rejection,
    judge_rejection,
)

from faithmeter.config import BASELINE
from faithmeter.paper import published
from faithmeter.stats.curves import racu
from faithmeter.stats.pvalues import simes

STEMS = ("inp-grad", "int-grad", "loo")
"""Measures with a signed and an absolute variant."""
FAMILIES = {
    "signed": ("loo-sign", ("int-grad-sign", "inp-grad-sign")),
    "absolute": ("loo-abs", ("grad-l2", "grad-l1", "inp-grad-abs", "int-grad-abs")),
}
"""Leave-one-out and its rivals, by what they can express; beam search is a claim of its own."""


def in_distribution(study: Study) -> Iterator[Claim]:
    not_rejected, rejected = statements("c")
    for test in ("crossfit", "published"):
        for place in study.main_places(MASKED):
            p, share = pvalue(study, place, MASKED, test), study.rejected(place.grid, MASKED, test)
            verdict = judge_no_rejection(p, share)
            yield Claim("c", not_rejected.format(test), place.name, share, verdict, "holds", p)
    for test in ("crossfit", "published"):
        for place in study.main_places(PLAIN):
            p, share = pvalue(study, place, PLAIN, test), study.rejected(place.grid, PLAIN, test)
            yield Claim("c", rejected.format(test), place.name, share, judge_rejection(p), "holds", p)


def pvalue(study: Study, place: Place, strategy: str, test: str, method: str = BASELINE) -> float:
    """Return the p-value of all steps and seeds, by Simes' method."""
    return float(simes([study.pvalue(place.grid, strategy, test, step, method) for step in STEPS]))


def each_measure(study: Study) -> Iterator[Claim]:
    """The measure whose erased texts are rejected most often decides; p-values are combined over measures."""
    [statement] = statements("o")
    for place in study.main_places(MASKED):
        names = study.methods(place.grid, MASKED)
        shares = {name: study.rejected(place.grid, MASKED, "crossfit", name) for name in names}
        worst = max(shares, key=lambda name: shares[name].value)
        p = float(simes([pvalue(study, place, MASKED, "crossfit", name) for name in names]))
        verdict = judge_no_rejection(p, shares[worst])
        yield Claim("o", statement, f"{place.name}: {worst}", shares[worst], verdict, "holds", p)


def published_order(study: Study) -> Iterator[Claim]:
    [statement] = statements("d")
    pairs = {}
    for place in study.main_places(MASKED):
        if place.grid in study.ranked_grids:
            pairs[place] = study.predictions(place.grid, MASKED, *METHODS), published_areas(place.task)
            effect = rank_correlation([pairs[place]])
            yield Claim("d", statement, place.name, effect, judge(effect, CORRELATION), "reference")
    if len(pairs) > 1:
        effect = rank_correlation(pairs.values())
        yield Claim("d", statement, "mean of these", effect, judge(effect, CORRELATION), "reference")


def leave_one_out(study: Study) -> Iterator[Claim]:
    """Leave-one-out must exceed every rival, so the rival that it exceeds least surely decides."""
    for family, (ours, rivals) in FAMILIES.items():
        statement = statements("j")[0].format(family)
        for place in study.main_places(MASKED):
            if place.grid not in study.ranked_grids:
                continue
            known = published_areas(place.task)
            effects = {name: study.difference(place.grid, MASKED, ours, name) for name in rivals}
            closest = min(effects, key=lambda name: effects[name].lower)
            where = f"{place.name}: {closest}"
            paper = f"{known[ours] - max(known[name] for name in rivals):.1f}"
            yield Claim("j", statement, where, effects[closest], judge(effects[closest]), paper)


def signed_variants(study: Study) -> Iterator[Claim]:
    for stem in STEMS:
        statement = statements("k")[0].format(stem)
        first, second = f"{stem}-sign", f"{stem}-abs"
        for place in study.main_places(MASKED):
            if {first, second} <= {*study.methods(place.grid, MASKED)}:
                effect = study.difference(place.grid, MASKED, first, second)
                known = published_areas(place.task)
                paper = f"{known[first] - known[second]:.1f}"
                yield Claim("k", statement, place.name, effect, judge(effect), paper)


def most_are_faithful(study: Study) -> Iterator[Claim]:
    """Of the measures ordered by their lower bound, the fifth decides: then five of eight are above it."""
    [statement] = statements("l")
    for place in study.main_places(MASKED):
        if place.grid in study.ranked_grids:
            effects = {name: study.acu(place.grid, MASKED, name) for name in METHODS}
            ordered = sorted(effects, key=lambda name: effects[name].lower, reverse=True)
            name = ordered[MOST - 1]
            known = published_areas(place.task)
            paper = f"{sorted((known[each] for each in METHODS), reverse=True)[MOST - 1]:.1f}"
            where = f"{place.name}: {name}"
            yield Claim("l", statement, where, effects[name], judge(effects[name]), paper)


def beam_search(study: Study) -> Iterator[Claim]:
    [statement] = statements("p")
    for place in study.places.values():
        if study.areas(place.grid, MASKED, "beam"):
            effect = study.difference(place.grid, MASKED, "beam", "loo-sign")
            known = published_areas(place.task)
            paper = f"{known['beam'] - known['loo-sign']:.1f}"
            yield Claim("p", statement, study.title(place), effect, judge(effect), paper)


def recursion(study: Study) -> Iterator[Claim]:
    for method in ("loo-sign", "grad-l2"):
        statement = statements("e")[0].format(method)
        for place in study.places.values():
            if study.areas(place.grid, MASKED, f"{method}-once"):
                effect = study.difference(place.grid, MASKED, method, f"{method}-once")
                yield Claim("e", statement, place.name, effect, judge(effect), UNPUBLISHED)


def plain_areas(study: Study) -> Iterator[Claim]:
    for method in ("loo-sign", "grad-l2"):
        statement = statements("h")[0].format(method)
        for place in study.places.values():
            plain, masked = (study.areas(place.grid, strategy, method) for strategy in (PLAIN, MASKED))
            if plain.keys() & masked.keys():
                effect = paired(plain, masked)
                verdict = judge_difference(effect)
                yield Claim("h", statement, place.name, effect, verdict, UNPUBLISHED)


def recursive_roar(study: Study) -> Iterator[Claim]:
    [statement] = statements("g")
    for grid, rows in study.frames["roar"].groupby("grid"):
        ours_grid = study.compared.get(str(grid), str(grid))
        ours, theirs = study.areas(ours_grid, MASKED, "grad-l2", "racu"), _roar_areas(rows)
        if ours.keys() & theirs.keys():
            effect, place = paired(ours, theirs), study.places[ours_grid]
            yield Claim("g", statement, study.title(place), effect, judge(effect), roar_difference())


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


def number_of_masks(study: Study) -> Iterator[Claim]:
    [statement] = statements("i")
    for row in study.lengths.to_dict("records"):
        gain, lower, upper = (100 * row[name] for name in ("gain", "gain_lower", "gain_upper"))
        effect = Effect(gain, lower, upper, f"{row['texts']} texts")
        yield Claim("i", statement, row["task"], effect, judge_gain(effect), UNPUBLISHED)
