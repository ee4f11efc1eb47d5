"""Evidence and claims → Markdown tables of the page."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from claim import Claim
from evidence import (
    MASKED,
    METHODS,
    ONLY_MASKED,
    PLAIN,
    VARIANTS,
    Effect,
    Study,
    over_seeds,
    published_areas,
)

from faithmeter.methods.registry import METHODS as REGISTERED
from faithmeter.methods.registry import PAPER, find_method
from faithmeter.report.figures.styles import STRATEGIES, TRAINING_NAMES
from faithmeter.verdict.formats import UNDEFINED, format_number

NAMES = {MASKED: "masked", PLAIN: "plain", ONLY_MASKED: "only masking"}
VARIANTS_OF_SIGN = {"sign": "signed", "abs": "absolute"}
EXTRA_METHODS = ("beam", "search", "int-grad-sign(baseline=mask)", "loo-sign-once", "grad-l2-once")


def markdown(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a pipe table."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def format_effect(effect: Effect, decimals: int = 1) -> str:
    """Format a value with its bounds in brackets, if it has some."""
    value, lower, upper = (format_number(number, decimals) for number in effect[:3])
    return value if math.isnan(effect.lower) else f"{value} [{lower}, {upper}]"


def format_pvalue(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def shorten_over(over: str) -> str:
    """Return `3×100` for "3 seeds, 100 texts", and the number of seeds alone."""
    counts = re.findall(r"\d+", over)
    return "×".join(counts) if "seed" in over else over


def claims_table(claims: Iterable[Claim]) -> str:
    """Return all claims with effects and verdicts; a statement is written once."""
    rows, before = [], ""
    for claim in claims:
        statement = "" if claim.statement == before else f"({claim.letter}) {claim.statement}"
        before = claim.statement
        effect, over = "", ""
        if claim.effect is not None:
            effect = format_effect(claim.effect, 2 if claim.letter == "d" else 1)
            over = shorten_over(claim.effect.over)
        if claim.p is not None:
            effect = f"{effect}, {format_pvalue(claim.p)}"
        rows.append((statement, claim.where, effect, over, f"**{claim.verdict}**", claim.published))
    return markdown(("claim", "task, model", "effect [95 %]", "seeds × texts", "verdict", "paper"), rows)


def summary_table(claims: Iterable[Claim], questions: dict[str, str]) -> str:
    """Return the verdicts of each claim, counted over tasks, models and variants."""
    verdicts: dict[str, list[str]] = {letter: [] for letter in questions}
    for claim in claims:
        verdicts[claim.letter].append(claim.verdict)
    rows = []
    for letter, statement in questions.items():
        own = verdicts[letter]
        counts = [f"{own.count(verdict)} {verdict}" for verdict in dict.fromkeys(own)]
        rows.append((f"({letter}) {statement}", ", ".join(counts)))
    return markdown(("claim", "verdicts"), rows)


def performance_table(study: Study) -> str:
    """Return test performance on whole and wholly masked texts, in percent, of every fine-tuning."""
    rows = []
    for place in (place for place in study.places.values() if place.grid not in VARIANTS):
        for strategy in NAMES:
            whole = study.test_scores(place.grid, strategy, "0")
            masked = study.wholly_masked(place.grid, strategy)
            if whole:
                values = [format_effect(over_seeds(scores.values())) for scores in (whole, masked)]
                majority = format_number(study.majority(place.grid))
                name = NAMES[strategy]
                rows.append((place.name, name, *values, majority, str(len(whole))))
    headings = ("task, model", "fine-tuning", "whole texts", "wholly masked", "majority", "seeds")
    return markdown(headings, rows)


def pvalues_table(study: Study) -> str:
    """Return p-values of texts masked at random, by step, all seeds together."""
    steps = range(0, 101, 10)
    rows = []
    for place in study.places.values():
        for strategy in (MASKED, PLAIN):
            if study.measured(place.grid, strategy):
                for test in ("published", "crossfit"):
                    values = [f"{study.pvalue(place.grid, strategy, test, step):.3f}" for step in steps]
                    rows.append((place.grid, f"{NAMES[strategy]}, {test}", *values))
    return markdown(("grid", "fine-tuning, test", *(f"{step} %" for step in steps)), rows)


def areas_table(study: Study, grid: str) -> str:
    """Return ACU by method in percent, on the masked and the plain model, beside the published values."""
    reference = published_areas(study.places[grid].task)
    rows = []
    for method in (*METHODS, *EXTRA_METHODS):
        if study.areas(grid, MASKED, method):
            area = study.acu(grid, MASKED, method)
            ours = format_effect(area)
            plain = study.areas(grid, PLAIN, method)
            other = format_effect(over_seeds(plain.values())) if plain else UNDEFINED
            paper = format_number(reference[method]) if method in reference else UNDEFINED
            racu = format_number(over_seeds(study.areas(grid, MASKED, method, "racu").values()).value)
            rows.append((area.value, (method, ours, racu, other, paper)))
    ranked = [row for _, row in sorted(rows, key=lambda row: -row[0])]
    headings = ("method", "ACU, masked model", "RACU", "ACU, plain model", "ACU, RoBERTa-base")
    return markdown(headings, ranked)


def overview_table(study: Study, grids: Sequence[str]) -> str:
    """Return ACU and RACU of the masked models by method in percent, beside those of RoBERTa-base."""
    places = [study.places[grid] for grid in grids]
    tasks = sorted({place.task for place in places})
    rows = []
    for method in (*METHODS, "beam", "search"):
        cells = [_area_cell(study, place.grid, method) for place in places]
        paper = [_published_cell(task, method) for task in tasks]
        if any(cell != UNDEFINED for cell in cells):
            rows.append((method, *cells, *paper))
    headings = ("ACU; RACU", *(place.name for place in places), *(f"RoBERTa-base, {task}" for task in tasks))
    return markdown(headings, rows)


def _area_cell(study: Study, grid: str, method: str) -> str:
    if not study.areas(grid, MASKED, method):
        return UNDEFINED
    racu = over_seeds(study.areas(grid, MASKED, method, "racu").values()).value
    return f"{format_effect(study.acu(grid, MASKED, method))}; {format_number(racu, 0)}"


def _published_cell(task: str, method: str) -> str:
    acu, racu = (published_areas(task, column).get(method) for column in ("acu", "racu"))
    if acu is None or racu is None:
        return UNDEFINED
    return f"{format_number(acu)}; {format_number(racu, 0)}"


def decisions_table(study: Study) -> str:
    """Return the ACU gained by the mask token as the baseline of integrated gradients."""
    rows = []
    for place in study.places.values():
        if study.areas(place.grid, MASKED, "int-grad-sign(baseline=mask)"):
            names = "int-grad-sign(baseline=mask)", "int-grad-sign"
            effect = study.difference(place.grid, MASKED, *names)
            rows.append((place.name, format_effect(effect), effect.over))
    if not rows:
        return "Not measured; the default stays the paper's zero."
    headings = ("task, model", "ACU, mask baseline − zero baseline, points [95 %]", "over")
    return f"The mask token against zero:\n\n{markdown(headings, rows)}"


def options_table(study: Study, grids: Sequence[str]) -> str:
    """Return performance, p-values and ACU of the default and of other options of fine-tuning."""
    rows = []
    for grid in (grid for grid in grids if grid in study.places):
        scores = [study.test_scores(grid, MASKED, masking) for masking in ("0", "100")]
        values = [format_effect(over_seeds(own.values())) for own in scores]
        measured = study.measured(grid, MASKED)
        p = f"{study.pvalue(grid, MASKED, 'crossfit', 100):.3f}" if measured else UNDEFINED
        acu = study.areas(grid, MASKED, "loo-sign")
        area = format_effect(over_seeds(acu.values())) if acu else UNDEFINED
        rows.append((grid, *values, p, area, str(len(scores[0]))))
    headings = ("grid", "whole texts", "wholly masked", "crossfit p at 100 %", "ACU of loo-sign", "seeds")
    return markdown(headings, rows)


def costs_table(study: Study) -> str:
    """Return seconds and evaluations by grid and phase."""
    seconds, areas = study.frames["seconds"], study.frames["areas"]
    rows = []
    for (grid, kind), own in seconds.groupby(["grid", "kind"]):
        phases = own.groupby("phase")["seconds"].sum().sort_values(ascending=False)
        total = f"{own['seconds'].sum():.0f}"
        evaluations = areas[areas["grid"] == grid]["evaluations"].sum() if kind == "measure" else 0
        longest = ", ".join(f"{phase} {value:.0f}" for phase, value in phases.items() if value >= 1)
        rows.append(
            (str(grid), str(kind), str(own["digest"].nunique()), total, longest,
             f"{evaluations:,.0f}" if evaluations else UNDEFINED)
        )  # fmt: skip
    return markdown(("grid", "kind", "runs", "seconds", "by phase", "evaluations"), rows)


def measures_table() -> str:
    """Return the paper's table of importance measures, from the registry, with those that are not in it."""
    stems: dict[str, list[str]] = {}
    built_in = [name for name, method in REGISTERED.items() if not method.code]
    for name in built_in:
        stem, _, end = name.rpartition("-")
        known = end in VARIANTS_OF_SIGN
        stems.setdefault(stem if known else name, []).append(VARIANTS_OF_SIGN[end] if known else "")
    rows = []
    for stem, variants in stems.items():
        method = find_method(stem if "" in variants else f"{stem}-sign")
        assert method is not None
        one = "signed" if method.directed else "absolute"
        names = "both" if len(variants) > 1 else one
        rows.append((f"`{stem}`", names, "yes" if method.name in PAPER else "no", method.about))
    return markdown(("name", "variants", "in the paper", "score of a word"), rows)


def strategies_table() -> str:
    """Return the paper's table of names of fine-tunings, with the options that select them."""
    rows = [
        (name, TRAINING_NAMES[strategy], f"`--strategy {strategy} --validation {validation}`")
        for (strategy, validation), name in STRATEGIES.items()
        if strategy in TRAINING_NAMES
    ]
    return markdown(("fine-tuning", "training strategy", "options"), rows)


def hardware_table(study: Study) -> str:
    """Return the machines and versions of the runs."""
    columns = ["machine", "cores", "python", "torch", "transformers"]
    counted = study.every_run.groupby(columns, as_index=False).size()
    rows = [tuple(map(str, row)) for row in counted.itertuples(index=False)]
    return markdown((*columns, "runs"), rows)


def runs_table(study: Study) -> str:
    """Return the number of runs, rows, epochs and texts of each grid."""
    rows = []
    for grid, own in study.runs.groupby("grid"):
        trained, measured = (own[own["kind"] == kind] for kind in ("train", "measure"))
        any_run = own.iloc[0]
        texts = str(int(measured["texts"].max())) if len(measured) else UNDEFINED
        limit = str(any_run["limit"] or "all")
        seeds = ", ".join(map(str, sorted(own["seed"].unique())))
        setting = f"{any_run['learning_rate']:g}"
        counts = (str(len(trained)), str(len(measured)), str(int((own["kind"] == "roar").sum())))
        rows.append(
            (
                str(grid),
                study.places[str(grid)].name,
                seeds,
                limit,
                str(any_run["epochs"]),
                setting,
                *counts,
                texts,
            )
        )
    headings = (
        "grid",
        "task, model",
        "seeds",
        "train rows",
        "epochs",
        "learning rate",
        "trained",
        "measured",
        "ROAR",
        "texts",
    )
    return markdown(headings, rows)
