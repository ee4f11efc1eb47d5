"""Page `docs/faithfulness.md`, whose numbers all come from `results/validation`."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from faithmeter.stats.areas import MIN_REMOVABLE
from faithmeter.stats.behavior import MAX_EXCESS, MAX_SHORTFALL

from .cache import FOLDER, ROOT

RESULTS, PAGE = FOLDER.parent, ROOT / "docs" / "faithfulness.md"
PICTURE = ROOT / "docs" / "figures" / "planted.svg"
EXAMPLE = "embedded-word-masked-0"
TEXTS = 400
NAMES = {
    "masked": "masked",
    "plain": "without masks",
    "few-masks": "masked up to 15 %",
    "half-trained": "a quarter of the training",
    "random": "random weights",
}
TASKS = {"word": "planted word", "first": "first word", "pair": "planted pair", "stories": "stories"}
TASKS |= {"places": "places of people"}
TASKS |= {"distractor": "training-only distractor", "shuffled": "shuffled labels", "sst2": "SST-2"}


def read(name: str) -> pd.DataFrame:
    return pd.read_csv(RESULTS / f"{name}.csv")


def build_page() -> str:
    """Return the page."""
    methods, decision, ladder = read("faithfulness-methods"), read("faithfulness-decision"), read("ladder")
    example = methods[methods.control == EXAMPLE]
    truth, attack = (_points(example, "accuracy", name) for name in ("truth", "loo-sign"))
    empty = methods[methods.control.str.contains("shuffled") & (methods.method == "loo-sign")]
    chosen = decision.set_index("definition").loc["probability, clipped"]
    template = (Path(__file__).parent / "page.md").read_text(encoding="utf-8")
    return template.format(
        truth=f"{truth:.1f}",
        attack=f"{attack:.1f}",
        empty=f"{empty[empty.definition == 'accuracy'].points.iloc[0]:.1f}",
        example=_example_table(example),
        decision=_decision_table(decision),
        ladder=_ladder_table(ladder, read("check-of-0.2")),
        **_coverage(read("coverage")),
        exact=_exact_sentence(read("exact")),
        few=_share(ladder, "stories", "few-masks"),
        fewer=f"{1 / chosen.texts_for_the_same_width:.0f}",
        learned=_learned_sentence(read("learned")),
        counts=_count_sentence(read("counts")),
        margin=f"{MAX_EXCESS:g}",
        shortfall=f"{100 * MAX_SHORTFALL:g}",
        least=f"{100 * MIN_REMOVABLE:g}",
        texts=TEXTS,
    )


def _points(example: pd.DataFrame, definition: str, method: str) -> float:
    rows = example[(example.definition == definition) & (example.method == method)]
    return float(rows.points.iloc[0])


def _coverage(coverage: pd.DataFrame) -> dict[str, str]:
    lowest, highest = 100 * coverage.coverage.min(), 100 * coverage.coverage.max()
    pairs = coverage[["control", "method"]].drop_duplicates()
    covered = f"{len(pairs)} pairs of a method and a model"
    return {"coverage": f"{lowest:.0f} to {highest:.0f} %", "covered": covered}


def _share(ladder: pd.DataFrame, task: str, training: str) -> str:
    """Return the share of draws that are accepted."""
    rows = ladder[(ladder.texts == TEXTS) & (ladder.task == task) & (ladder.training == training)]
    return f"{100 * rows.accepted.iloc[0]:.0f} %"


def _exact_sentence(exact: pd.DataFrame) -> str:
    """Compare predictions with the best ones where the planted word is masked first."""
    known = exact[(exact.encoder == "embedded") & (exact.task == "word")].set_index("training").excess
    few, masked, plain = (known[name] for name in ("few-masks", "masked", "plain"))
    return (
        "Random masks are not the only ones: with the planted word masked first, as its true explanation "
        "does, the best prediction is one half. There the model that saw few masks is at most "
        f"{few:.3f} nats from it, the masked one {masked:.3f}, the plain one {plain:.1f}. "
    )


def _table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _example_table(example: pd.DataFrame) -> str:
    rows = []
    for method in example.method.unique():
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


def _ladder_table(ladder: pd.DataFrame, before: pd.DataFrame) -> str:
    known = before.groupby(["encoder", "task", "training"]).measurable.all()
    rows = []
    for row in ladder[ladder.texts == TEXTS].itertuples():
        said = "Yes" if known[row.encoder, row.task, row.training] else "No"
        shares = [f"{100 * share:.0f} %" for share in (row.accepted, row.rejected, row.undecided)]
        task = TASKS[row.task] + (" in sentences" if (row.encoder, row.task) == ("minilm", "word") else "")
        rows.append([task, NAMES[row.training], str(row.trainings), said, *shares, f"{row.excess:.3f}"])
    heads = ["task", "trained", "trainings", "0.2 said", "accepted", "rejected", "not known"]
    heads.append("excess in nats")
    return _table(heads, rows)


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
    PAGE.write_text(build_page(), encoding="utf-8")
