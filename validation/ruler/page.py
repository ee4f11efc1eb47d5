"""Page `docs/validation.md`, whose numbers all come from `results/validation`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

from ..controls.cache import ROOT
from .cases import CASES
from .erasures import FOLDER, file_of
from .recovery import TEXTS, TOLERANCE
from .rivals import OURS, TITLES
from .summary import ENOUGH

RESULTS, PAGE = FOLDER.parent, ROOT / "docs" / "validation.md"
DETAILS = RESULTS / "tables.md"
TEMPLATES = Path(__file__).parent
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
ENCODERS = {"embedded": "embedded", "minilm": "MiniLM-L3", "six-layer": "granite-30M (six layers)"}
TRAININGS = ("masked", "plain", "adapted")
AIM = 0.95
"""Share of masked models on which the truth was to be first or tied."""
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
    summary, first, kendall = read("ruler"), read("ruler-first"), read("naopc-kendall")
    by = _by_mask(summary)
    ours = by.loc["masked", OURS]
    search = read("naopc-search")
    everything = search[(search.dataset == "all") & (search.words == "all")].set_index(["method", "values"])
    tau = kendall[kendall.metric == OURS].set_index("other").tau
    return (
        (TEMPLATES / "page.md")
        .read_text(encoding="utf-8")
        .format(
            claim=claim(summary),
            found=_found_table(by),
            ways=_ways_table(summary, (OURS, "comprehensiveness"), with_tau=False),
            aim=_aim(first, read("ruler-learned"), ours),
            encoders=_encoders(first),
            adapted=_count(by.loc["adapted", OURS]),
            needed=_needed(ours.needed),
            needed_plain=_needed(by.loc["plain", OURS].needed),
            untrained=_untrained(),
            **_against(by),
            **_chosen(first),
            **_row_counts(read("naopc-equal")),
            texts=TEXTS,
            enough=ENOUGH,
            tolerance=f"{100 * TOLERANCE:g}",
            searches=_search_table(everything),
            greedy=_percent(everything.share["beam(width=1)", "probabilities"]),
            greedy_cost=_percent(everything.cost["beam(width=1)", "probabilities"]),
            deletion=f"{tau['deletion AUC']:.2f}",
            naopc=f"{tau['NAOPC']:.2f}",
            sufficiency=f"{tau['sufficiency']:.2f}",
            loo=f"{tau['agreement with loo-sign']:.2f}",
        )
    )


def build_details() -> str:
    """Return the page of all tables, model by model and with every interval."""
    summary = read("ruler")
    by = _by_mask(summary)
    return (
        (TEMPLATES / "tables.md")
        .read_text(encoding="utf-8")
        .format(
            truth=_truth_table(by),
            degraded=_degraded_table(by),
            praise=_praise_table(by),
            models=_models_table(read("ruler-first")),
            ways=_ways_table(summary, (OURS, "comprehensiveness", "naopc", "deletion")),
            rows=_rows_table(read("naopc-equal")),
            kendall=_kendall_table(read("naopc-kendall")),
            texts=TEXTS,
            enough=ENOUGH,
        )
    )


def _by_mask(summary: pd.DataFrame) -> pd.DataFrame:
    return summary[summary.way == "mask"].set_index(["training", "metric"])


def claim(summary: pd.DataFrame) -> str:
    """Return the sentence that the page begins with and the README quotes."""
    by = _by_mask(summary)
    ours, theirs = by.loc["masked", OURS], by.loc["plain", "comprehensiveness"]
    return (
        f"On {ours.models:.0f} planted models the true explanation came first or tied in "
        f"{_percent(ours.share)} by faithfulness, and in {_percent(theirs.share)} by comprehensiveness on "
        f"{theirs.models:.0f} models trained without masks; models that know nothing were praised in "
        f"{_percent(ours.praise_share)} and {_percent(theirs.praise_share)} of samples."
    )


def concession(summary: pd.DataFrame) -> str:
    """Return the sentence on rivals that find the truth, which the README quotes, too."""
    by = _by_mask(summary)
    rows = [by.loc["plain", metric] for metric in ("sufficiency", "insertion")]
    found = " and ".join(dict.fromkeys(map(_count, rows)))  # once if both are alike
    praised = " and ".join(_percent(row.praise_share) for row in rows)
    return (
        f"Not every rival misses it: sufficiency and insertion find it on {found} plain models, but praise "
        f"{praised} of samples of models that know nothing."
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _count(row: pd.Series) -> str:
    return f"{row['first']:.0f} of {row.models:.0f}"


def _found_table(by: pd.DataFrame) -> str:
    """Return what each metric finds on masked and on plain models, with intervals of 95 %."""
    rows = []
    for metric, title in TITLES.items():
        masked, plain = (by.loc[training, metric] for training in TRAININGS[:2])
        cells = [f"{_count(row)} {_range(row.low, row.high, 100)}" for row in (masked, plain)]
        cells += [
            f"{row.tau_truth:.2f} {_range(row.tau_low_truth, row.tau_high_truth)}" for row in (masked, plain)
        ]
        cells += [_percent(row.praise_share) for row in (masked, plain)]
        rows.append([title, *cells])
    heads = [
        "truth, masked (%)",
        "truth, plain (%)",
        "τ, masked",
        "τ, plain",
        "praise, masked",
        "praise, plain",
    ]
    return _table(["metric", *heads], rows)


def _range(low: float, high: float, scale: int = 1) -> str:
    digits = 0 if scale > 1 else 2
    return f"[{scale * low:.{digits}f}–{scale * high:.{digits}f}]"


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
    return f"{_count(row)} ({_percent(row.low)} to {_percent(row.high)})"


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


def _ways_table(summary: pd.DataFrame, metrics: tuple[str, ...], *, with_tau: bool = True) -> str:
    rows = []
    for metric in metrics:
        for way in summary.way.unique():
            own = summary[(summary.metric == metric) & (summary.way == way)].set_index("training")
            cells = [_count(own.loc[one]) for one in TRAININGS]
            if with_tau:
                cells += [f"{own.tau_truth[one]:.2f}" for one in TRAININGS]
            rows.append([TITLES[metric], way, *cells])
    heads = ["metric", "erased by", *TRAININGS]
    return _table([*heads, *(f"τ, {one}" for one in TRAININGS)] if with_tau else heads, rows)


def _models_table(first: pd.DataFrame) -> str:
    """Return a row for each model erased by masks: what is ahead of the truth by our metric and by others."""
    masks = first[first.way == "mask"]
    rows = []
    keys = ["encoder", "task", "training", "epochs", "seed"]
    for (encoder, task, training, epochs, seed), found in masks.groupby(keys, sort=False):
        own = found.set_index("metric")
        cells = [
            f"{max(own.behind_by[name], 0) * 100:.0f} %{'' if own.first_or_tied[name] else ' ✗'}"
            for name in (OURS, "acu", "comprehensiveness", "deletion")
        ]
        rows.append([f"{NAMES[task]}, {ENCODERS[encoder]}", training, f"{epochs}", f"{seed}", *cells])
    heads = ["model", "trained", "epochs", "seed", "faithfulness", "ACU", "comprehensiveness", "deletion AUC"]
    return _table(heads, rows)


def _ours(first: pd.DataFrame) -> pd.DataFrame:
    """Return what faithfulness finds on each masked model."""
    return first[(first.metric == OURS) & (first.way == "mask") & (first.training == "masked")]


def _encoders(first: pd.DataFrame) -> str:
    counts = _ours(first).encoder.value_counts()
    return ", ".join(f"{counts[name]} {title}" for name, title in ENCODERS.items() if name in counts)


def _aim(first: pd.DataFrame, learned: pd.DataFrame, ours: pd.Series) -> str:
    """Return how far the share of truths is from what was asked, and what is known of each miss."""
    rows = _ours(first)
    text = (
        f"- **The aim was {100 * AIM:.0f} %.** Faithfulness finds the truth on {_count(ours)} masked models "
        f"({_percent(ours.share)}); the interval does not exclude less."
    )
    for row in rows[~rows.first_or_tied].itertuples():
        text += f" On {NAMES[row.task]} ({ENCODERS[row.encoder]}, {row.epochs} epochs) `{row.leader}` is "
        text += f"{100 * row.behind_by:.1f} % ahead."
    pairs = learned[(learned.task == "pair") & (learned.training == "masked")].set_index("epochs").excess
    short = pairs[pairs.index == pairs.index.min()].max()
    longer = pairs[pairs.index > pairs.index.min()].max()
    return text + (
        " Once one word of a pair is masked, the best prediction is one half. After "
        f"{pairs.index.min()} epochs this model is {short:.2f} nats from it, after longer trainings "
        f"{longer:.2f} at most: it had not "
        "learned the truth to the end. Which word still moves it, `loo-sign` finds out. The behavioral check "
        "accepts it, as no temperature repairs that. It stays in the count."
    )


def _untrained() -> str:
    """Return how many planned models have no file."""
    text = "The large encoders and second trainings have no degraded orders."
    missing = Counter(
        f"{ENCODERS[one.encoder]} {one.training}{', trained again' * bool(one.seed)}"
        for one in CASES
        if not file_of(one).exists()
    )
    if not missing:
        return text
    counts = "; ".join(f"{count} {name}" for name, count in missing.items())
    return (
        f"{text} Of {len(CASES)} planned models, {missing.total()} were not trained for want of computing "
        f"time: {counts}. `make validate` trains them."
    )


def _chosen(first: pd.DataFrame) -> dict[str, str]:
    """Return on how many masked models faithfulness was chosen, and what it finds on all others."""
    ours = _ours(first)
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
    texts = {f"{name}_plain": _count(row) for name, row in keeping.items()}
    texts |= {f"{name}_praise": _percent(row.praise_share) for name, row in keeping.items()}
    texts |= {f"{name}_best": f"{by.loc['masked', rivals[name]].tau_best:.2f}" for name in ("suff", "ins")}
    return texts | {
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
    total, by = equal.numbers.sum(), equal.groupby("reason").numbers.sum()
    same = by["equal"]
    keys = {"float32": "float32", "words": "other words", "one": "one word", "maximum": "maximum from 0"}
    counts = {key: f"{by[reason]:,}" for key, reason in keys.items()}
    return {"numbers": f"{total:,}", "same": f"{same:,}", "named": f"{total - same:,}", **counts}


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
    """Write the page, and that of all tables."""
    PAGE.write_text(build_page(), encoding="utf-8")
    DETAILS.write_text(build_details(), encoding="utf-8")
