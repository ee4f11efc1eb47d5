"""Page `docs/validation.md`, whose numbers all come from `results/validation`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ..controls.cache import ROOT
from .erasures import FOLDER
from .recovery import TEXTS, TOLERANCE
from .rivals import OURS, TITLES
from .summary import ENOUGH

RESULTS, PAGE = FOLDER.parent, ROOT / "docs" / "validation.md"
FIGURES = ROOT / "docs" / "figures"
RECOVERY, PARETO = FIGURES / "validation-recovery.svg", FIGURES / "validation-pareto.svg"
NAMES = {
    "word": "planted word",
    "first": "first word",
    "pair": "planted pair",
    "negation": "a negation that flips",
    "distractor": "training-only distractor",
    "stories": "stories",
    "places": "places in stories",
}
ENCODERS = {"embedded": "embedded", "minilm": "MiniLM-L3", "six-layer": "MiniLM-L6"}
TRAININGS = ("masked", "plain", "adapted")
REASONS = ("equal", "float32", "other words", "one word", "maximum from 0")
SEARCHES = {
    "search(budget=5,gradients=0)": "logits",
    "search(budget=20,gradients=0)": "logits",
    "beam(width=1)": "probabilities",
    "beam(width=5)": "probabilities",
    "authors' beam 5": "probabilities",
    "authors' beam 50": "probabilities",
}
"""Searches that the page names, and the values that they read."""


def read(name: str) -> pd.DataFrame:
    return pd.read_csv(RESULTS / f"{name}.csv")


def build_page() -> str:
    """Return the page."""
    summary, first = read("ruler"), read("ruler-first")
    masks = summary[summary.way == "mask"]
    by = masks.set_index(["training", "metric"])
    search = read("naopc-search")
    everything = search[(search.dataset == "all") & (search.words == "all")].set_index(["method", "values"])
    template = (Path(__file__).parent / "page.md").read_text(encoding="utf-8")
    return template.format(
        claim=claim(summary),
        truth=_truth_table(by),
        degraded=_degraded_table(by),
        praise=_praise_table(by),
        ways=_ways_table(summary),
        models=_models_table(first),
        misses=_misses(first),
        **_against(by),
        **_chosen(first),
        texts=TEXTS,
        enough=ENOUGH,
        tolerance=f"{100 * TOLERANCE:g}",
        rows=_rows_table(read("naopc-equal")),
        **_row_counts(read("naopc-equal")),
        searches=_search_table(everything),
        kendall=_kendall_table(read("naopc-kendall")),
        greedy=_percent(everything.share["beam(width=1)", "probabilities"]),
        greedy_cost=_percent(everything.cost["beam(width=1)", "probabilities"]),
    )


def claim(summary: pd.DataFrame) -> str:
    """Return the sentence that the page begins with and the README quotes."""
    by = summary[summary.way == "mask"].set_index(["training", "metric"])
    ours, theirs = by.loc["masked", OURS], by.loc["plain", "comprehensiveness"]
    return (
        f"On {ours.models:.0f} planted models the true explanation came first or tied in "
        f"{_percent(ours.share)} by faithfulness, and in {_percent(theirs.share)} by comprehensiveness on "
        f"{theirs.models:.0f} models trained without masks; models that know nothing were praised in "
        f"{_percent(ours.praise_share)} and {_percent(theirs.praise_share)} of samples."
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _truth_table(by: pd.DataFrame) -> str:
    rows = [
        [title, *(_first(by, training, metric) for training in TRAININGS)] for metric, title in TITLES.items()
    ]
    return _table(["metric", *(f"{training} model" for training in TRAININGS)], rows)


def _first(by: pd.DataFrame, training: str, metric: str) -> str:
    if (training, metric) not in by.index:
        return "–"
    row = by.loc[training, metric]
    return f"{row['first']:.0f} of {row.models:.0f} ({_percent(row.low)} to {_percent(row.high)})"


def _degraded_table(by: pd.DataFrame) -> str:
    heads = ["metric", "masked", "plain", "adapted", "best method, masked", "texts needed, masked", "plain"]
    rows = []
    for metric, title in TITLES.items():
        cells = [_tau(by.loc[training, metric], "truth") for training in TRAININGS]
        cells.append(_tau(by.loc["masked", metric], "best"))
        cells += [_needed(by.loc[training, metric].needed) for training in TRAININGS[:2]]
        rows.append([title, *cells])
    return _table(heads, rows)


def _tau(row: pd.Series, ladder: str) -> str:
    """Return τ with its interval, if the metric was computed for these orders."""
    mean, low, high = (row[f"{name}_{ladder}"] for name in ("tau", "tau_low", "tau_high"))
    return "–" if np.isnan(mean) else f"{mean:.2f} ({low:.2f} to {high:.2f})"


def _needed(texts: float) -> str:
    return f"> {TEXTS}" if np.isnan(texts) else f"{texts:.0f}"


def _praise_table(by: pd.DataFrame) -> str:
    rows = []
    for metric, title in TITLES.items():
        counts = [by.loc[training, metric] for training in TRAININGS[:2]]
        rows.append([title, *(_praise(row) for row in counts)])
    return _table(["metric", "trained with masks", "without"], rows)


def _praise(row: pd.Series) -> str:
    bounds = f"{_percent(row.praise_low)} to {_percent(row.praise_high)}"
    return f"{row.praised:.0f} of {row.windows:.0f} ({bounds})"


def _ways_table(summary: pd.DataFrame) -> str:
    rows = []
    for metric in (OURS, "comprehensiveness", "naopc", "deletion"):
        for way in summary.way.unique():
            own = summary[(summary.metric == metric) & (summary.way == way)].set_index("training")
            cells = [f"{own['first'][one]:.0f} of {own.models[one]:.0f}" for one in TRAININGS]
            cells += [f"{own.tau_truth[one]:.2f}" for one in TRAININGS]
            rows.append([TITLES[metric], way, *cells])
    return _table(["metric", "erased by", *TRAININGS, *(f"τ, {one}" for one in TRAININGS)], rows)


def _models_table(first: pd.DataFrame) -> str:
    """Return a row for each model erased by masks: what is ahead of the truth by our metric and by others."""
    masks = first[first.way == "mask"]
    rows = []
    keys = ["encoder", "task", "training", "epochs"]
    for (encoder, task, training, epochs), found in masks.groupby(keys, sort=False):
        own = found.set_index("metric")
        cells = [
            f"{max(own.behind_by[name], 0) * 100:.0f} %{'' if own.first_or_tied[name] else ' ✗'}"
            for name in (OURS, "acu", "comprehensiveness", "deletion")
        ]
        rows.append([f"{NAMES[task]}, {ENCODERS[encoder]}", training, f"{epochs}", *cells])
    return _table(
        ["model", "trained", "epochs", "faithfulness", "ACU", "comprehensiveness", "deletion AUC"], rows
    )


def _misses(first: pd.DataFrame) -> str:
    """Return the masked models on which the truth is behind by faithfulness, with what is ahead."""
    ours = first[(first.metric == OURS) & (first.way == "mask") & (first.training == "masked")]
    missed = [
        f"{NAMES[row.task]} ({ENCODERS[row.encoder]}): `{row.leader}` is {100 * row.behind_by:.1f} % ahead"
        for row in ours[~ours.first_or_tied].itertuples()
    ]
    return "; ".join(missed) or "none"


def _chosen(first: pd.DataFrame) -> dict[str, str]:
    """Return on how many masked models faithfulness was chosen, and what it finds on all others."""
    ours = first[(first.metric == OURS) & (first.way == "mask") & (first.training == "masked")]
    new = ours[ours.source != "controls"]
    return {
        "tasks": f"{ours.task.nunique()}",
        "earlier": f"{len(ours) - len(new)}",
        "new": f"{len(new)}",
        "new_first": f"{new.first_or_tied.sum()}",
    }


def _against(by: pd.DataFrame) -> dict[str, str]:
    """Return the numbers that do not favor us."""
    ours, plain = by.loc["masked", OURS], by.loc["plain", OURS]
    rivals = {"suff": "sufficiency", "ins": "insertion", "ns": "soft NS"}
    keeping = {name: by.loc["plain", metric] for name, metric in rivals.items()}
    texts = {f"{name}_plain": f"{row['first']:.0f} of {row.models:.0f}" for name, row in keeping.items()}
    texts |= {f"{name}_praise": _percent(row.praise_share) for name, row in keeping.items()}
    texts |= {f"{name}_best": f"{by.loc['masked', rivals[name]].tau_best:.2f}" for name in ("suff", "ins")}
    return texts | {
        "ours_first": f"{ours['first']:.0f}",
        "ours_models": f"{ours.models:.0f}",
        "plain_first": f"{plain['first']:.0f}",
        "plain_models": f"{plain.models:.0f}",
        "ours_best": f"{ours.tau_best:.2f}",
        "ours_tau": f"{ours.tau_truth:.2f}",
        "comp_tau": f"{by.loc['masked', 'comprehensiveness'].tau_truth:.2f}",
    }


def _rows_table(equal: pd.DataFrame) -> str:
    counts = equal.pivot_table(
        index=["dataset", "model"],
        columns="reason",
        values="numbers",
        aggfunc="sum",
        fill_value=0,
        sort=False,
    )
    rows = [
        [dataset, model, *(f"{counts.loc[(dataset, model), reason]:.0f}" for reason in REASONS)]
        for dataset, model in counts.index
    ]
    return _table(["texts", "model", *REASONS], rows)


def _row_counts(equal: pd.DataFrame) -> dict[str, str]:
    total, same = equal.numbers.sum(), equal[equal.reason == "equal"].numbers.sum()
    return {"numbers": f"{total:,}", "same": f"{same:,}", "named": f"{total - same:,}"}


def _search_table(everything: pd.DataFrame) -> str:
    rows = []
    for key in SEARCHES.items():
        own = everything.loc[key]
        numbers = [
            f"{own.evaluations:.0f}",
            _percent(own.cost),
            f"{100 * own.share:.1f} %",
            _percent(own.exact),
        ]
        rows.append([key[0], *numbers])
    return _table(
        ["search", "evaluations per text", "of the widest beam's", "of the exact AOPC", "texts exact"], rows
    )


def _kendall_table(kendall: pd.DataFrame) -> str:
    pairs = kendall[kendall.metric.isin([OURS]) | kendall.other.isin([OURS])]
    rows = []
    for row in pairs.itertuples():
        other = row.other if row.metric == OURS else row.metric
        rows.append([other, f"{row.tau:.2f}", f"{row.low:.2f} to {row.high:.2f}"])
    return _table(["metric", "τ with faithfulness", "interval"], rows)


def write_page() -> None:
    PAGE.write_text(build_page(), encoding="utf-8")
