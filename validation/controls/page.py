"""Pages `docs/faithfulness.md` and `results/faithfulness.md`, built from tables in `results/validation`."""

from __future__ import annotations

from math import sqrt
from pathlib import Path

import pandas as pd

from faithmeter.stats.behavior import MAX_EXCESS, MAX_SHORTFALL
from faithmeter.stats.curves import MIN_REMOVABLE

from .cache import FOLDER, ROOT
from .ladder import DRAWS
from .repeats import DIRECT, WITH, WITHOUT

RESULTS, PAGE = FOLDER.parent, ROOT / "docs" / "faithfulness.md"
TRIALS = ROOT / "results" / "faithfulness.md"
PICTURE = ROOT / "docs" / "figures" / "planted.svg"
EXAMPLE = "embedded-word-masked-0"
SHOWN = ("truth", "loo-sign", "loo-abs", "grad-l2", "inp-grad-sign", "search")
"""Methods of the example; `faithfulness-methods.csv` has all."""
TEXTS = 400
NAMES = {
    "masked": "masked",
    "plain": "without masks",
    "few-masks": "masked ≤ 15 %",
    "half-trained": "a quarter of the training",
    "random": "random weights",
}
TASKS = {"word": "planted word", "first": "first word", "pair": "planted pair", "stories": "stories"}
TASKS |= {"places": "places"}
TASKS |= {"distractor": "training-only distractor", "shuffled": "shuffled labels", "sst2": "SST-2"}


def read(name: str) -> pd.DataFrame:
    return pd.read_csv(RESULTS / f"{name}.csv")


def build_page() -> str:
    """Return the page of the documentation."""
    return _fill("page.md")


def build_trials() -> str:
    """Return the page of all trials."""
    return _fill("trials.md")


def _fill(template: str) -> str:
    """Return a template with all numbers filled in that it asks for."""
    methods, decision, ladder = read("faithfulness-methods"), read("faithfulness-decision"), read("ladder")
    example, before = methods[methods.control == EXAMPLE], read("check-of-0.2")
    truth, attack = (_points(example, "accuracy", name) for name in ("truth", "loo-sign"))
    empty = methods[methods.control.str.contains("shuffled") & (methods.method == "loo-sign")]
    by = decision.set_index("definition")
    chosen, old = by.loc["probability, clipped"], by.loc["accuracy"]
    text = (Path(__file__).parent / template).read_text(encoding="utf-8")
    return text.format(
        truth=f"{truth:.1f}",
        attack=f"{attack:.1f}",
        empty=f"{empty[empty.definition == 'accuracy'].points.iloc[0]:.1f}",
        example=_example_table(example),
        definitions=len(decision),
        **_decided("chosen", chosen),
        **_decided("old", old),
        decision=_decision_table(decision),
        ladder=_ladder_table(ladder),
        ladder_all=_whole_ladder(ladder, before),
        said=before.measurable.sum(),
        trained=len(before),
        draws=DRAWS,
        repeats=_repeats(read("repeats").set_index(["drawn_from", "way"])),
        **_coverage(read("coverage")),
        **_targets(read("adapt-targets")),
        few=_few_masks(ladder, read("exact")),
        fewer=f"{1 / chosen.texts_for_the_same_width:.0f}",
        learned=_learned_sentence(read("learned")),
        counts=_count_sentence(read("counts")),
        margin=f"{MAX_EXCESS:g}",
        shortfall=f"{100 * MAX_SHORTFALL:g}",
        least=f"{100 * MIN_REMOVABLE:g}",
        texts=TEXTS,
    )


def _decided(name: str, row: pd.Series) -> dict[str, str]:
    """Return on what a definition was judged."""
    return {
        f"{name}_first": f"{row.truth_first_or_tied:.0f} of {row.planted_models:.0f}",
        f"{name}_praise": f"{100 * row.praised_windows_of_empty_models:.0f} of 100",
        f"{name}_pairs": f"{row.pairs_apart:.0f} of {row.pairs:.0f}",
    }


def _targets(rows: pd.DataFrame) -> dict[str, str]:
    """Return what the two kinds of targets of an adaptation did."""
    facts = {}
    for row in rows.itertuples():
        facts[f"excess_{row.masked_rows_learn}"] = f"{row.excess:.2f}"
        bounds = f"[{row.rank_lower:.2f}, {row.rank_upper:.2f}]"
        facts[f"rank_{row.masked_rows_learn}"] = f"{row.rank_correlation:.2f} {bounds}"
    return facts


def _points(example: pd.DataFrame, definition: str, method: str) -> float:
    rows = example[(example.definition == definition) & (example.method == method)]
    return float(rows.points.iloc[0])


def _coverage(coverage: pd.DataFrame) -> dict[str, str]:
    lowest, highest = 100 * coverage.coverage.min(), 100 * coverage.coverage.max()
    pairs = coverage[["control", "method"]].drop_duplicates()
    covered = f"{len(pairs)} pairs of a method and a model"
    return {"coverage": f"{lowest:.0f} to {highest:.0f} %", "covered": covered}


def _repeats(repeats: pd.DataFrame) -> str:
    """Return what many draws with and without repeats say of the model on real sentences."""
    shares = {key: f"{100 * share:.0f} %" for key, share in repeats.accepted.items()}
    kept, pools = "kept texts", "pools"
    chance = 196 * sqrt(0.9 * 0.1 / DRAWS)
    return (
        f"{DRAWS} draws tell a share of 90 % to {chance:.0f} points only. Of {DIRECT} more, the check "
        f"accepts SST-2 in {shares[kept, WITH]} with repeats and in {shares[kept, WITHOUT]} without; from "
        f"simulated pools, in {shares[pools, WITH]} and {shares[pools, WITHOUT]}. So repeats change little. "
        f"From both parts together, it is {shares['all texts', WITH]}."
    )


def _few_masks(ladder: pd.DataFrame, exact: pd.DataFrame) -> str:
    """Return where a model that saw few masks passes, why that is right, and where it does not."""
    own = ladder[(ladder.texts == TEXTS) & (ladder.training == "few-masks")]
    excess = own.set_index("task").excess
    known = exact[(exact.encoder == "embedded") & (exact.task == "word")].set_index("training").excess
    few, masked, plain = (known[name] for name in ("few-masks", "masked", "plain"))
    return (
        "The check judges predictions, not trainings. A word of a pair tells nothing alone. A model that "
        f"saw at most 15 % masked has seldom seen that: it is too sure by {excess['pair']:.2f} nats, and "
        "rejected. Easy tasks it predicts well, and passes rightly. With the planted word masked first, as "
        f"its true explanation does, the best prediction is one half, and it is at most {few:.3f} nats from "
        f"it (masked {masked:.3f}, plain {plain:.1f})."
    )


def _table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _example_table(example: pd.DataFrame) -> str:
    rows = []
    for method in SHOWN:
        own = example[example.method == method].set_index("definition")
        beyond = own.share["probability"] - own.share["probability, clipped"]
        rows.append(
            [
                method,
                f"{own.points['accuracy']:.1f}",
                f"{own.share['probability, clipped']:.0f} %",
                f"{max(beyond, 0):.0f} %",
            ]
        )
    return _table(["method", "ACU of accuracy", "faithfulness", "beyond"], rows)


def _decision_table(decision: pd.DataFrame) -> str:
    rows = [
        [
            row.definition,
            f"{row.truth_first_or_tied} of {row.planted_models}",
            f"{row.truth_behind_at_most:.0f}",
            f"{row.points_on_empty_models:z.1f}",
            f"{100 * row.praised_windows_of_empty_models:.0f} of 100",
            f"{row.pairs_apart} of {row.pairs}",
        ]
        for row in decision.itertuples()
    ]
    heads = ["area of", "truth first or tied", "truth behind by at most (% of what can be removed)"]
    heads += ["points on empty models", "windows with praise for these", "pairs told apart on SST-2"]
    return _table(heads, rows)


def _whole_ladder(ladder: pd.DataFrame, before: pd.DataFrame) -> str:
    known = before.groupby(["encoder", "task", "training"]).measurable.all()
    rows = []
    for row in ladder[ladder.texts == TEXTS].itertuples():
        said = "Yes" if known[row.encoder, row.task, row.training] else "No"
        shares = [f"{100 * share:.0f} %" for share in (row.accepted, row.rejected, row.undecided)]
        rows.append([TASKS[row.task], NAMES[row.training], said, *shares, f"{row.excess:.3f}"])
    return _table(
        ["task", "trained", "0.2 said", "accepted", "rejected", "not known", "excess in nats"], rows
    )


def _ladder_table(ladder: pd.DataFrame) -> str:
    """Return the shares that are accepted and rejected, a row for each task; all others are not known."""
    own = ladder[ladder.texts == TEXTS].set_index(["task", "training"])
    rows = []
    for task in own.index.unique("task"):
        cells = []
        for training in NAMES:
            row = own.loc[(task, training)] if (task, training) in own.index else None
            cells.append("–" if row is None else f"{100 * row.accepted:.0f}/{100 * row.rejected:.0f}")
        rows.append([TASKS[task], *cells])
    return _table(["task", *NAMES.values()], rows)


def _learned_sentence(learned: pd.DataFrame) -> str:
    before, after = 100 * learned.constant_rule.max(), 100 * learned.lower_bound.max()
    return f"at most {after:.0f} % of coins pass, where up to {before:.0f} % passed before"


def _count_sentence(counts: pd.DataFrame) -> str:
    null, weak = counts.iloc[0], counts.iloc[1]
    return (
        f"it rejects {100 * null.count_rejects:.1f} % of checks without a difference; where "
        f"{100 * weak.share_rejected:.0f} % of {weak.texts:.0f} texts are rejected one by one, it rejects "
        f"{100 * weak.count_rejects:.0f} % of checks and Simes' method {100 * weak.simes_rejects:.0f} %"
    )


def write_page() -> None:
    """Write the page of the documentation, and that of all trials."""
    PAGE.write_text(build_page(), encoding="utf-8")
    TRIALS.write_text(build_trials(), encoding="utf-8")


if __name__ == "__main__":
    write_page()
