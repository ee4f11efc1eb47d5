"""The paper's tables: published digits exactly, ours by hand, the formats by what they must hold."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faithmeter.errors import InputError
from faithmeter.measuring.result import Result
from faithmeter.paper.comparison import compare_cells
from faithmeter.paper.tables import TABLES
from faithmeter.report.blocks import Cell, Table
from faithmeter.report.blocks import file_column as Column
from faithmeter.report.exports import save, to_csv, to_latex, to_markdown
from faithmeter.report.html import render_table
from faithmeter.report.page.sections import fill_sections
from faithmeter.report.values import format_cell, format_duration
from faithmeter.report.view import metrics_table, plausibility_table
from faithmeter.stats.intervals import bootstrap_interval
from faithmeter.store.frames import COLUMNS
from fixtures_tasks import SHARED
from traces import falling, made_up_texts, result, traces

PAPER = SHARED / "paper"
FILES = {name: name for name in TABLES if not name.startswith("faithfulness_")} | {"models": "performance"}
SEEDS = range(5)


def made(kind: str, rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """A frame of the store with what matters here; the rest is filled in."""
    run = {
        "digest": "d",
        "folder": "f",
        "settings": "s",
        "seed": 0,
        "task": "bAbI-1",
        "model": "roberta-base",
    }
    masked = {"strategy": "half", "validation": "both", "scope": "explained", "texts": 1000, "evaluations": 1}
    epoch = {"epochs": 3, "split": "test", "epoch": 1, "best": True, "masking": "0", "majority": 0.15}
    epoch |= {"rows": 1000, "train_rows": 8000}  # as published of bAbI-1
    common = {**run, **masked, **epoch, "metric": "accuracy", "threshold": 0.5, "converged": True, "step": 10}
    filled = [{**common, **row} for row in rows]
    return pd.DataFrame(filled, columns=list(COLUMNS[kind]))


def frames(**rows: Sequence[dict[str, Any]]) -> dict[str, pd.DataFrame]:
    return {kind: made(kind, rows.get(kind, ())) for kind in COLUMNS}


def areas(values: Sequence[float], **also: Any) -> list[dict[str, Any]]:
    """A measured method, one value for each seed: its ACU, and twice that as RACU."""
    return [{"method": "loo-sign", "seed": n, "acu": v, "racu": 2 * v, **also} for n, v in enumerate(values)]


def rows_of(table: Table) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(to_csv(table), newline="")))


@pytest.mark.parametrize("name", FILES)
def test_published_tables_are_the_published_files_byte_for_byte(name: str) -> None:
    shipped = files("faithmeter.paper").joinpath(f"{FILES[name]}.csv").read_bytes()
    assert to_csv(TABLES[name]({}, "published")).encode() == shipped


def test_tables_of_one_task_are_parts_of_the_whole() -> None:
    whole = TABLES["faithfulness"]({}, "published").rows
    names = [name for name in TABLES if name.startswith("faithfulness_")]
    parts = [row for name in names for row in TABLES[name]({}, "published").rows]
    assert sorted(map(str, parts)) == sorted(map(str, whole))
    assert len(whole) == 2 * 16 * 9


def test_every_line_of_the_papers_tables_comes_out_in_latex() -> None:
    if not PAPER.exists():
        pytest.skip(f"needs {PAPER}/paper.tex")
    paper = (PAPER / "paper.tex").read_text(encoding="utf-8")
    found = re.findall(
        r"\\begin\{tabular\}.*?\\end\{tabular\}", paper[paper.index(r"\section{Models}") :], re.S
    )
    names = ["models", *(name for name in FILES if name.startswith("walltime")), "faithfulness"]
    ours = lines_of(to_latex(TABLES[name]({}, "published"), "") for name in names)
    assert len(ours) == 16 + 3 * 16 + 160 + 288
    assert ours == lines_of(found)


def lines_of(tables: Iterable[str]) -> list[str]:
    """Those with numbers, in order; no heads, and no sums, which are wrong in the paper."""
    lines = [line for table in tables for line in table.splitlines()]
    values = [line for line in lines if re.search(r"[_:]\S* \\\\|-- \\\\|--\} \\\\", line)]
    return [_bare(line) for line in values if not re.search(r"sum|seeds|Walltime", line)]


def _bare(line: str) -> str:
    """A line of a table without what may differ: grey, math around whole numbers, the order of bounds."""
    line = re.sub(r"\\textcolor\{gray\}\{((?:[^{}]|\{[^{}]*\})*)\}", r"\1", line)
    line = re.sub(r"\$\{(\d+\\%)\}(\^\{[^}]*\})(_\{[^}]*\})\$", r"$\1\3\2$", line)
    return re.sub(r"\$(\d+)\$", r"\1", line).removesuffix("*").strip()


def test_sums_of_published_times_are_right() -> None:
    """The paper prints 01:43 and 04:28 below fine-tuning, which is the row above."""
    for name in (name for name in FILES if name.startswith("walltime")):
        table = TABLES[name]({}, "published")
        for at, column in list(enumerate(table.columns))[-2:]:
            texts = [row[column.names[0]] for row in rows_of(table)]
            minutes = sum(60 * int(text[:-3]) + int(text[-2:]) for text in texts if text)
            shown = [format_cell(total[at], column).value for total in table.totals]
            assert shown == [f"{n // 60:02d}:{n % 60:02d}" for n in (minutes, 5 * minutes)]
    fine_tuning = TABLES["walltime_fine_tune"]({}, "published")
    assert texts_of(fine_tuning, 0) == ["sum", "31:01", "70:55"]


def texts_of(table: Table, total: int) -> list[str]:
    """The cells of a total as they are shown."""
    pairs = zip(table.totals[total], table.columns, strict=True)
    return [format_cell(cell, column).value for cell, column in pairs]


def test_ours_beside_published() -> None:
    """Published for LOO on bAbI-1: ACU 46.1 -0.7 +0.7, RACU 129.9 -3.5 +3.4."""
    values = [0.40, 0.41, 0.42, 0.43, 0.44]
    table = TABLES["faithfulness"](frames(areas=areas(values)))
    [row] = rows_of(table)
    mean, lower, upper, _ = bootstrap_interval([100 * value for value in values])
    assert mean == pytest.approx(42)
    assert [row["task"], row["model"], row["method"]] == ["bAbI-1", "roberta-base", "loo-sign"]
    assert [float(row[f"acu_published{end}"]) for end in ("", "_minus", "_plus")] == [46.1, 0.7, 0.7]
    ours = [float(row[f"acu_ours{end}"]) for end in ("", "_minus", "_plus")]
    assert ours == pytest.approx([42, 42 - lower, upper - 42], abs=1e-5)
    assert float(row["acu_difference"]) == pytest.approx(-4.1)
    assert float(row["racu_difference"]) == pytest.approx(84 - 129.9)
    assert [row["acu_apart"], row["racu_apart"]] == ["true", "true"]
    assert [row["n"], row["excluded"], row["rroar_n"], row["texts"]] == ["5", "0", "", "1000"]
    assert row["rroar_racu_published"] == row["rroar_racu_ours"] == row["rroar_racu_difference"] == ""


def test_intervals_that_touch_are_not_marked() -> None:
    [row] = rows_of(TABLES["faithfulness"](frames(areas=areas([0.45, 0.455, 0.46, 0.465, 0.47]))))
    assert [row["acu_apart"], row["racu_apart"]] == ["false", "true"]


def test_one_seed_has_no_interval_and_no_mark() -> None:
    table = TABLES["faithfulness"](frames(areas=areas([0.1])))
    [row] = rows_of(table)
    assert [row["acu_ours"], row["acu_ours_minus"], row["acu_apart"]] == ["10.0", "", "false"]
    assert "$10.0$" in to_latex(table, "")


def test_seeds_that_did_not_converge_are_excluded_and_counted() -> None:
    found = areas([0.4, 0.4, 0.0])
    found[2]["converged"] = False
    [row] = rows_of(TABLES["faithfulness"](frames(areas=found), "ours"))
    assert [row["acu"], row["acu_minus"], row["n"], row["excluded"]] == ["40.0", "0.0", "2", "1"]


def test_only_masked_fine_tuning_counts_and_the_baseline_is_no_row() -> None:
    rows = (
        areas([0.4, 0.4]) + areas([0.0], strategy="none", validation="unmasked") + areas([0], method="random")
    )
    [row] = rows_of(TABLES["faithfulness"](frames(areas=rows), "ours"))
    assert row["acu"] == "40.0"


def test_two_runs_of_a_seed_count_once() -> None:
    twice = areas([0.2], digest="a") + areas([0.4], digest="b") + areas([0.5, 0.5], digest="c")[1:]
    [row] = rows_of(TABLES["faithfulness"](frames(areas=twice), "ours"))
    assert [row["acu"], row["n"]] == ["40.0", "2"]


def test_runs_on_fewer_texts_are_left_out_and_named() -> None:
    table = TABLES["faithfulness"](frames(areas=areas([0.4, 0.4]) + areas([0.9], texts=7)), "ours")
    assert [(row["acu"], row["texts"]) for row in rows_of(table)] == [("40.0", "1000")]
    [note] = [note for note in table.notes if note.startswith("Left out")]
    assert note.endswith("another number of texts than most: bAbI-1, roberta-base, loo-sign (7 texts).")


def test_methods_on_fewer_texts_than_others_are_named() -> None:
    rows = areas([0.4]) + areas([0.5], method="beam", texts=50, model="roberta-base")
    table = TABLES["faithfulness"](frames(areas=rows))
    found = {row["method"]: (row["texts"], row["acu_difference"]) for row in rows_of(table)}
    assert found == {"loo-sign": ("1000", "-6.1"), "beam": ("50", "4.1")}  # published 46.1
    note = "Not comparable with the other methods because they ran on fewer texts: bAbI-1, roberta-base, "
    assert [one for one in table.notes if one.startswith("Not")] == [note + "beam (50 of 1000 texts)."]
    alone = TABLES["faithfulness"](frames(areas=areas([0.4])))
    assert not [note for note in alone.notes if note.startswith("Not")]


def test_of_a_model_that_the_paper_lacks_the_published_is_a_reference_without_difference() -> None:
    values = {"strategy": "none", "validation": "unmasked", "masking": "0", "value": 0.9, "phase": "train"}
    run = {"model": "models/tiny", "kind": "train", "method": "", "seconds": 60.0} | values
    found = frames(areas=areas([0.4, 0.4], model="models/tiny"), train=[run], seconds=[run])
    names = {"faithfulness": "acu", "models": "performance", "walltime_fine_tune": "hhmm"}
    for name, column in names.items():
        table = TABLES[name](found)
        [row] = rows_of(table)
        assert row[f"{column}_published_roberta-base"] in ("46.1", "100", "00:27")
        assert row["model"] == "tiny"
        assert "published (roberta-base)" in render_table(table)
        assert not any(word in to_markdown(table) for word in ("difference", "†"))
        assert "only as a reference" in " ".join(table.visible_notes)
        assert "published" not in to_markdown(TABLES[name](found, "ours"))


def test_beside_a_published_model_others_and_options_have_nothing_published() -> None:
    rows = areas([0.4, 0.4], model="embedded") + areas([0.4, 0.4], method="beam(width=20)")
    rows += areas([0.4, 0.4], model="models/roberta-base", method="beam")
    table = TABLES["faithfulness"](frames(areas=rows))
    found = {(row["model"], row["method"]): row["acu_published"] for row in rows_of(table)}
    expected = {("roberta-base", "beam(width=20)"): "", ("models/roberta-base", "beam"): "45.9"}
    assert found == expected | {("embedded", "loo-sign"): ""}
    assert "Beam (width=20)" in to_latex(table, "")


def test_the_less_relevant_score_is_grey() -> None:
    rows = [
        row
        for method in ("loo-sign", "beam(width=20)", "loo-abs", "grad-l2", "own-sign")
        for row in areas([0.4], method=method)
    ]
    table = TABLES["faithfulness"](frames(areas=rows), "ours")
    grey = {row[2].value: ["grey" in cell.mark for cell in row[3:6]] for row in table.rows}
    assert grey["loo-sign"] == grey["beam(width=20)"] == [False, True, True]
    assert grey["loo-abs"] == grey["grad-l2"] == [True, False, False]
    assert grey["own-sign"] == [False, False, False], "nothing is guessed from a name"


def test_an_undefined_racu_is_missing() -> None:
    rows = areas([0.4, 0.4])
    rows[1]["racu"] = float("nan")
    [row] = rows_of(TABLES["faithfulness"](frames(areas=rows), "ours"))
    assert [row["acu"], row["racu"]] == ["40.0", ""]


def test_all_is_for_each_seed_the_mean_over_the_tasks_on_which_it_converged() -> None:
    """Of seeds 0 to 2: (0.2 + 0.6) / 2, (0.4 + 0.4) / 2 and, as it failed on bAbI-2, 0.7; 3 lacks a task."""
    second = areas([0.6, 0.4, 0.9], task="bAbI-2")
    second[2]["converged"] = False
    rows = areas([0.2, 0.4, 0.7, 0.9]) + second
    table = TABLES["faithfulness"](frames(areas=rows), "ours")
    assert [row["task"] for row in rows_of(table)] == ["bAbI-1", "bAbI-2", "All (2 tasks)"]
    first, other, together = rows_of(table)
    assert [together["acu"], together["racu"], together["n"]] == ["50.0", "100.0", "3"]
    assert [together["excluded"], together["texts"]] == ["", ""]
    assert [first["n"], first["excluded"], other["n"], other["excluded"]] == ["4", "0", "2", "1"]
    one = TABLES["faithfulness_bAbI-2"](frames(areas=rows), "ours")
    assert [row["task"] for row in rows_of(one)] == ["bAbI-2"]
    assert [any(note.startswith("All") for note in of.notes) for of in (table, one)] == [True, False]


def test_methods_that_lack_tasks_are_compared_on_those_they_have() -> None:
    """Beam was run on two of three tasks, Recursive ROAR on two others: each has an All of its own."""
    tasks = ("RTE", "SST2", "bAbI-1")
    rows = [row for n, task in enumerate(tasks) for row in areas([0.1 * n + 0.3] * 2, task=task)]
    rows += [row for task in tasks[:2] for row in areas([0.8, 0.8], task=task, method="beam")]
    curves = {"random": {0: 0.9, 50: 0.8, 100: 0.5}, "loo-sign": {0: 0.9, 50: 0.6, 100: 0.5}}
    steps = [
        step | {"task": task}
        for task in tasks[1:]
        for seed in (0, 1)
        for method, values in curves.items()
        for step in roar(method, values, seed)
    ]
    table = TABLES["faithfulness"](frames(areas=rows, roar=steps), "ours")
    found = [row for row in rows_of(table) if row["task"].startswith("All")]
    assert [(row["task"], row["method"], row["acu"], row["rroar_racu"], row["n"]) for row in found] == [
        ("All (3 tasks)", "loo-sign", "40.0", "", "2"),
        ("All (2 tasks)", "loo-sign", "35.0", "", "2"),
        ("All (2 tasks)", "beam", "80.0", "", "2"),
        ("All (2 tasks) 2", "loo-sign", "45.0", "40.0", "2"),
    ]
    assert [note for note in table.notes if note.startswith("All (")] == [
        "All (2 tasks): without bAbI-1.",
        "All (2 tasks) 2: without RTE.",
    ]


def test_an_undefined_racu_of_one_task_makes_that_of_all_undefined() -> None:
    rows = areas([0.4, 0.4]) + areas([0.2, 0.2], task="RTE")
    rows[1]["racu"] = float("nan")
    together = rows_of(TABLES["faithfulness"](frames(areas=rows), "ours"))[-1]
    assert [together["task"], together["acu"], together["racu"]] == ["All (2 tasks)", "30.0", ""]


def roar(method: str, values: dict[int, float], seed: int = 0) -> list[dict[str, Any]]:
    return [{"method": method, "percent": p, "value": v, "seed": seed} for p, v in values.items()]


LABELS = np.arange(30) % 2
NAMED = ("bAbI-1", "tiny")


def measured(*seeds: int, rationales: bool = False) -> Result:
    """A result of made-up traces, of one or several seeds."""
    each = [traces(falling({"random": 0.9, "loo-sign": 0.3}, LABELS, seed), LABELS) for seed in seeds]
    texts = made_up_texts(each[0]["random"])
    # the first of four words is the reason, and that with the highest score
    texts["rationale"] = [[(0, 1)] if rationales else None] * len(texts)
    return result(*each, inputs=texts)


def test_metrics_of_other_papers_are_means_over_seeds_with_links() -> None:
    both = measured(0, 1)
    table = metrics_table({NAMED: both})
    row, _ = rows_of(table)
    assert [row[name] for name in ("task", "model", "method")] == [*NAMED, "loo-sign"]
    alone = [measured(seed).metrics("loo-sign")["comprehensiveness"] for seed in (0, 1)]
    assert float(row["comprehensiveness"]) == pytest.approx(100 * sum(alone) / 2)
    assert float(row["log_odds"]) == pytest.approx(both.metrics("loo-sign")["log_odds"])
    assert row["sufficiency"] == "", "the complement was not measured"
    assert f"{both.metrics('loo-sign')['log_odds']:.2f}" in to_markdown(table)
    url = "https://aclanthology.org/2020.acl-main.408/"
    assert f"[comprehensiveness]({url})" in to_markdown(table)
    assert f'<a href="{url}">comprehensiveness</a>' in render_table(table)
    assert f"comprehensiveness: {url}" in to_latex(table, "")
    assert "Prefer ACU with its check" in to_markdown(table)
    assert "bAbI-1" not in to_markdown(metrics_table({(None, None): both})), "one result has no name"


def test_faithful_and_plausible_stand_side_by_side() -> None:
    reasoned = measured(0, rationales=True)
    table = plausibility_table({NAMED: reasoned, ("IMDB", "tiny"): measured(0)})
    row, random = rows_of(table)  # IMDB has no rationales
    assert (row["method"], random["method"]) == ("loo-sign", "random")
    assert float(row["acu"]) == pytest.approx(100 * reasoned.acu("loo-sign"))
    assert [float(row[name]) for name in ("token_f1", "token_iou", "auprc")] == [100, 100, 100]
    headings = {column.heading for column in table.columns}
    assert {("ACU",), ("AUPRC",)} <= headings
    assert "Neither says anything about the other" in to_markdown(table)
    assert not plausibility_table({NAMED: measured(0)}).rows
    of_paper = TABLES["faithfulness"](frames(areas=areas([0.4])))
    known = {"table plausibility": [table], "table faithfulness": [of_paper]}
    [section] = [one for one in fill_sections(known) if one.anchor == "areas"]
    assert section.blocks == [of_paper, table]


def test_racu_of_recursive_roar() -> None:
    """Areas down from random to the curve and to its end: 0.10 of 0.25; published: 48.2 -5.7 +4.1."""
    random, curve = {0: 0.9, 50: 0.8, 100: 0.5}, {0: 0.9, 50: 0.6, 100: 0.5}
    rows = [
        row for seed in (0, 1) for row in roar("random", random, seed) + roar("int-grad-abs", curve, seed)
    ]
    unfinished = roar("grad-l2", {0: 0.9, 50: 0.6})
    failed = roar("random", {**random, 0: 0.4}, 2) + roar("int-grad-abs", {**curve, 0: 0.4}, 2)
    train = [{"masking": "0", "value": 0.9}]
    table = TABLES["faithfulness"](frames(roar=rows + unfinished + failed, train=train))
    [row] = rows_of(table)
    assert [row["method"], row["rroar_racu_published"], row["rroar_racu_ours"]] == [
        "int-grad-abs",
        "48.2",
        "40.0",
    ]
    assert [row["rroar_racu_difference"], row["rroar_racu_apart"]] == ["-8.2", "true"]
    assert [row["rroar_n"], row["rroar_excluded"], row["n"], row["acu_ours"]] == ["2", "1", "", ""]


def test_models_shows_plain_fine_tuning_on_unmasked_texts() -> None:
    plain = {"task": "RTE", "strategy": "none", "validation": "unmasked", "epochs": 30, "rows": 277}
    rows = [{**plain, "seed": seed, "value": 0.8} for seed in SEEDS]
    rows += [{**plain, "masking": "100", "value": 0.1}, {**plain, "split": "validation", "value": 0.2}]
    rows += [{"task": "RTE", "value": 0.3}, {**plain, "seed": 9, "value": 0.1, "converged": False}]
    table = TABLES["models"](frames(train=rows))
    [row] = rows_of(table)
    assert [row["performance_published"], row["performance_ours"], row["performance_difference"]] == [
        "75",
        "80.0",
        "5.0",
    ]
    assert [row["max_epochs_published"], row["max_epochs_ours"], row["n"], row["excluded"]] == [
        "30",
        "30",
        "5",
        "1",
    ]
    assert row["performance_apart"] == "true"  # 75 + 1.4 and at most 0.55 by rounding
    assert r"$80\%_{-0.0}^{+0.0}$" in to_latex(table, "")
    assert r"$+5\%^{\dagger}$" in to_latex(table, "")


def test_datasets_shows_where_the_published_metric_is_another() -> None:
    """SNLI is listed with macro F1, but its number is the accuracy; Diabetes is misspelled in that table."""
    rows = [
        {"task": "SNLI", "majority": 0.3428, "rows": 9824},
        {"task": "Diabetes", "metric": "macro_f1", "majority": 0.446},
    ]
    snli, diabetes = rows_of(TABLES["datasets"](frames(train=rows)))
    assert [snli["type"], snli["metric_published"], snli["metric_ours"]] == ["NLI", "Macro F1", "Accuracy"]
    assert float(snli["class_majority_percent_difference"]) == pytest.approx(0.28)
    assert [diabetes["train"], diabetes["class_majority_percent_published"]] == ["8066", "45"]
    assert diabetes["class_majority_percent_difference"] == ""  # of 1000 texts, not of the published 1729
    [own] = rows_of(TABLES["datasets"](frames(train=[{"task": "mine"}]), "ours"))
    assert own == {"type": "", "task": "mine", "train": "8000", "validation": "", "test": "1000",
                   "masked": "", "auxiliary": "", "metric": "Accuracy",
                   "class_majority_percent": "15.0"}  # fmt: skip


def seconds(**spent: dict[str, float]) -> list[dict[str, Any]]:
    """Two measure runs: seconds by phase and method; the second run takes twice as long."""
    return [
        {
            "kind": "measure",
            "digest": digest,
            "seed": factor,
            "phase": phase,
            "method": method,
            "seconds": factor * s,
        }
        for factor, digest in ((1, "a"), (2, "b"))
        for phase, methods in spent.items()
        for method, s in methods.items()
    ]


def test_walltimes_of_measuring() -> None:
    """Means of runs that take t and 2 t, so 1.5 t."""
    spent = seconds(
        fit={"": 10}, check={"beam": 4, "loo-abs": 6}, evaluate={"beam": 20, "loo-abs": 40},
        explain={"beam": 2400, "loo-abs": 1.5},
    )  # fmt: skip
    known = [{"digest": digest, "method": "beam"} for digest in "ab"]
    found = frames(seconds=spent, areas=known)

    def times(name: str) -> list[float]:
        return [float(row["seconds_ours"]) for row in rows_of(TABLES[name](found))]

    assert times("walltime_in_distribution") == [1.5 * 5]
    assert [row["fit_seconds_ours"] for row in rows_of(TABLES["walltime_in_distribution"](found))] == ["15.0"]
    assert times("walltime_faithfulness") == [1.5 * 30]
    assert times("walltime_importance_measures") == [3600, 2.25]
    table = TABLES["walltime_importance_measures"](found)
    beam = rows_of(table)[0]
    assert [beam["hhmm_published"], beam["seconds_difference"], beam["runs"]] == ["00:54", "360.0", "2"]
    assert [beam["texts_published"], beam["texts_ours"]] == ["1000", "1000"]
    total, five = table.totals
    assert [cell.value for cell in total[:3]] == ["sum", "roberta-base", ""]
    assert texts_of(table, 0)[4] == "01:18"  # 00:54 and 00:24
    assert [total[3].value, five[3].value] == [3602.25, 5 * 3602.25]
    assert "| Beam | 1:00:00 | 00:54 | +0:06:00 |" in to_markdown(table)
    assert "share evaluations" in " ".join(table.visible_notes)


def test_times_of_different_work_are_neither_averaged_nor_subtracted() -> None:
    """Beam ran on 50 texts, all else on 1000, as published: its second is no part of the mean of 30."""
    spent = seconds(evaluate={"loo-abs": 20, "grad-l1": 40}, explain={"loo-abs": 60, "grad-l1": 2})
    few = seconds(evaluate={"beam": 1}, explain={"beam": 100})
    few = [row | {"digest": row["digest"] + "few"} for row in few]
    known = [{"digest": digest, "method": "loo-abs"} for digest in "ab"]
    known += [{"digest": digest, "method": "beam", "texts": 50} for digest in ("afew", "bfew")]
    found = frames(seconds=spent + few, areas=known)
    [row] = rows_of(TABLES["walltime_faithfulness"](found))
    assert [row["seconds_ours"], row["runs"], row["texts_ours"]] == ["45.0", "2", "1000"]
    notes = TABLES["walltime_faithfulness"](found).notes
    [left_out] = [note for note in notes if note.startswith("Left out")]
    assert left_out.endswith(": bAbI-1, roberta-base, beam (50 texts).")
    table = TABLES["walltime_importance_measures"](found)
    times = {row["method"]: (row["seconds_ours"], row["seconds_difference"]) for row in rows_of(table)}
    assert times == {"beam": ("150.0", ""), "grad-l1": ("3.0", "-57.0"), "loo-abs": ("90.0", "-1350.0")}
    assert "beam (50 of 1000 texts)" in " ".join(table.visible_notes)
    shown = [cell.value for cell in table.totals[0][3:6]]
    assert shown == [243.0, 79 * 60, None]  # 54 + 1 + 24 minutes; no sum of some differences


def test_sums_of_our_times_are_those_of_each_model() -> None:
    """Two tasks, two models: checks of 10 s and 20 s, twice that for the large one; fitting 5 s each."""
    runs = [
        {"task": task, "model": model, "digest": f"{task}{model}", "texts": texts, "time": factor * base}
        for task, texts, base in (("RTE", 277, 10.0), ("bAbI-1", 1000, 20.0))
        for model, factor in (("roberta-base", 1), ("roberta-large", 2))
    ]
    spent = [run | {"kind": "measure", "phase": "fit", "method": "", "seconds": 5.0} for run in runs]
    spent += [
        run | {"kind": "measure", "phase": "check", "method": method, "seconds": share * run["time"]}
        for run in runs
        for method, share in (("beam", 0.5), ("random", 1.5))
    ]
    measured = [run | {"method": "beam"} for run in runs]
    table = TABLES["walltime_in_distribution"](frames(seconds=spent, areas=measured))
    assert [float(row["seconds_ours"]) for row in rows_of(table)] == [10, 20, 20, 40]
    sums = [
        [
            total[0].value,
            total[1].value,
            total[2].value,
            texts_of(table, at)[3],
            *(c.value for c in total[4:6]),
        ]
        for at, total in enumerate(table.totals)
    ]
    assert sums == [  # published: RTE 00:02 and 00:04, bAbI-1 00:01 and 00:03
        ["sum", "roberta-base", 30.0, "00:03", 30.0 - 180, 10.0],
        ["x5 seeds", "roberta-base", 150.0, "00:15", 5 * (30.0 - 180), 50.0],
        ["sum", "roberta-large", 60.0, "00:07", 60.0 - 420, 10.0],
        ["x5 seeds", "roberta-large", 300.0, "00:35", 5 * (60.0 - 420), 50.0],
    ]
    assert all(cell.value == "" for total in table.totals for cell in total[6:])


def test_walltimes_of_fine_tuning_are_means_over_seeds_and_strategies_of_whole_runs() -> None:
    runs = {"a": ("half", 50.0), "b": ("none", 30.0)}
    train = [{"digest": digest, "strategy": strategy} for digest, (strategy, _) in runs.items()]
    spent = [
        {"kind": "train", "digest": digest, "strategy": strategy, "method": "", "phase": phase, "seconds": s}
        for digest, (strategy, s) in runs.items()
        for phase in ("train", "test")
    ]
    spent.append({"kind": "roar", "digest": "c", "method": "beam", "phase": "train", "seconds": 1e6})
    [row] = rows_of(TABLES["walltime_fine_tune"](frames(train=train, seconds=spent), "ours"))
    expected = {"task": "bAbI-1", "model": "roberta-base", "seconds": "80.0", "runs": "2", "epochs": "3"}
    assert row == expected | {"train_rows": "8000"}
    [short] = rows_of(TABLES["walltime_fine_tune"](frames(train=train, seconds=spent)))
    assert [short["hhmm_published"], short["seconds_difference"]] == ["00:27", ""]  # 20 epochs, not 3
    full = [run | {"epochs": 20} for run in train]
    [long] = rows_of(TABLES["walltime_fine_tune"](frames(train=full, seconds=spent)))
    assert [long["epochs_published"], long["seconds_difference"]] == ["20", "-1540.0"]


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("show", ["ours", "both"])
def test_without_runs_a_table_is_empty_and_can_still_be_written(name: str, show: Any, tmp_path: Path) -> None:
    table = TABLES[name](frames(), show)
    assert not table.rows
    assert render_table(table).startswith("<table>")
    assert len(save(table, tmp_path, name)) == 3


def test_an_unknown_variant_is_an_error() -> None:
    with pytest.raises(InputError, match="did you mean 'published'"):
        TABLES["models"](frames(), "publishd")  # type: ignore[arg-type]


def test_saving_writes_three_files(tmp_path: Path) -> None:
    table = TABLES["faithfulness"]({}, "published")
    paths = save(table, tmp_path / "new", "areas")
    assert [path.name for path in paths] == ["areas.md", "areas.csv", "areas.tex"]
    assert paths[1].read_bytes() == files("faithmeter.paper").joinpath("faithfulness.csv").read_bytes()
    assert r"\label{tab:areas}" in paths[2].read_text(encoding="utf-8")
    assert paths[2].read_text(encoding="utf-8").count(r"\begin{longtable}") == 1


EVIL = r"a_b & <c> 100% $x$ #1 {d} ~^\ | e"


def test_names_are_escaped_in_every_format() -> None:
    table = TABLES["faithfulness"](
        frames(areas=areas([0.4], task=EVIL, model=EVIL.replace("\\", ""), method=EVIL))
    )
    page, text, code = render_table(table), to_markdown(table), to_latex(table, "")
    assert "<c>" not in page
    assert "a_b &amp; &lt;c&gt; 100%" in page
    assert r"\\ \| e" in text
    escaped = r"a\_b \& \textless{}c\textgreater{} 100\% \$x\$ \#1 \{d\} "
    escaped += r"\textasciitilde{}\textasciicircum{}\textbackslash{} \textbar{} e"
    assert code.count(escaped) == 2
    assert code.count(escaped.replace(r"\textbackslash{}", "")) == 1
    assert rows_of(table)[0]["task"] == EVIL


class Grid(HTMLParser):
    """Fills the cells of a table into a grid, as a browser does; counts those that overlap."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.taken: set[tuple[int, int]] = set()
        self.row, self.overlaps, self.heads = -1, 0, 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.row += tag == "tr"
        if tag not in ("td", "th"):
            return
        said = dict(attrs)
        self.heads += tag == "th"
        assert tag == "td" or said["scope"] in ("row", "col", "rowgroup", "colgroup")
        column = next(n for n in range(1000) if (self.row, n) not in self.taken)
        for down in range(int(said.get("rowspan") or 1)):
            for right in range(int(said.get("colspan") or 1)):
                place = (self.row + down, column + right)
                self.overlaps += place in self.taken
                self.taken.add(place)


@pytest.mark.parametrize("show", ["published", "ours", "both"])
@pytest.mark.parametrize("name", FILES)
def test_the_cells_of_an_html_table_fill_its_grid(name: str, show: Any) -> None:
    runs = [
        {"task": task, "model": model} for task in ("bAbI-2", "SNLI") for model in ("roberta-base", "mine")
    ]
    plain = {"strategy": "none", "validation": "unmasked", "value": 0.5, "phase": "train", "kind": "train"}
    spent = [{"kind": "measure", "phase": phase} for phase in ("check", "evaluate", "explain")]
    found = frames(
        areas=[row for run in runs for row in areas([0.3, 0.4], **run)],
        train=[run | plain for run in runs],
        seconds=[run | part | {"seconds": 9.0, "method": "beam"} for run in runs for part in (plain, *spent)],
    )
    table = TABLES[name](found, show)
    grid = Grid(render_table(table))
    assert len(table.rows) >= 2
    assert grid.overlaps == 0
    assert len(grid.taken) == (grid.row + 1) * len(table.body.columns)
    assert grid.heads > len(table.rows)


def test_html_says_what_is_grey_and_what_is_apart() -> None:
    page = render_table(TABLES["faithfulness"](frames(areas=areas([0.40, 0.41, 0.42, 0.43, 0.44]))))
    assert re.search(r'<td class="apart">-4.1 <abbr title="[a-z ]+">†</abbr></td>', page)
    assert re.search(r'<td class="grey apart">-45.9 ', page)
    assert "<td>46.1 <sub>-0.7</sub> <sup>+0.7</sup></td>" in page


def test_what_is_missing_everywhere_is_only_in_the_csv() -> None:
    """Nothing is published of this task, and Recursive ROAR was not run."""
    table = TABLES["faithfulness"](frames(areas=areas([0.4, 0.4], task="mine")))
    texts = (render_table(table), to_markdown(table), to_latex(table, ""))
    assert not any(
        word in text for text in texts for word in ("published", "difference", "ROAR", "†", "dagger")
    )
    assert all("40.0" in text for text in texts)
    assert {"acu_published", "rroar_n"} <= {*rows_of(table)[0]}


DURATIONS = {0.04: "0:00:00.0", 9.94: "0:00:09.9", 9.96: "0:00:10", 59.6: "0:01:00", 3661: "1:01:01"}


@pytest.mark.parametrize(("seconds", "text"), [*DURATIONS.items(), (360000, "100:00:00")])
def test_durations(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text
    assert format_duration(-seconds) == f"-{text}"
    assert format_duration(seconds, "+") == f"+{text}"


def test_numbers_are_written_as_the_paper_does() -> None:
    column = Column(("x", "x_minus", "x_plus"), ("x",), form="number", decimals=(1, 1))

    def parts(*numbers: float) -> tuple[str, str, str]:
        text = format_cell(Cell.around(*numbers), column)
        return text.value, text.low, text.high

    assert parts(12.24, 0.66, 0.64) == ("12.2", "-0.7", "+0.6")
    assert parts(-0.04, 0.0, 0.0) == ("0.0", "-0.0", "+0.0")
    assert parts(5.0, -0.3, 0.6) == ("5.0", "+0.3", "+0.6")  # skewed: the lower bound lies above the mean


number = st.floats(-200, 200).map(lambda value: round(value, 3))
size = st.floats(0, 50).map(lambda value: round(value, 3))
interval = st.builds(lambda mean, minus, plus: Cell.around(mean, minus, plus), number, size, size)


@given(interval, interval)
def test_intervals_are_apart_if_more_than_rounding_lies_between_them(one: Cell, other: Cell) -> None:
    *_, difference = compare_cells(one, other, (1, 1))
    (low, high), (lower, upper) = ((cell.low, cell.high) for cell in (one, other))
    gap = max(lower - high, low - upper)
    if abs(gap - 0.1) > 1e-6:
        assert ("apart" in difference.mark) == (gap > 0.1)
    assert difference.value == pytest.approx(other.value - one.value)


@pytest.mark.parametrize("name", ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)"])
def test_texts_in_csv_are_never_formulas(name: str) -> None:
    row = next(csv.reader(io.StringIO(to_csv(one_task(name)).split("\r\n", 1)[1])))
    assert f"'{name}" in row
    assert "40.0" in row  # a number stays a number


def test_markdown_escapes_html_and_links() -> None:
    text = to_markdown(one_task("<img src=x> [click](https://x.y) www.x.y"))
    assert "<img" not in text.replace(r"\<img", "")
    assert "[click]" not in text
    assert "https://" not in text


def one_task(name: str) -> Table:
    return TABLES["faithfulness"](frames(areas=areas([0.4], task=name)), "ours")


def test_one_seed_has_the_interval_over_texts() -> None:
    def table_of(*values: float) -> Table:
        runs = frames(areas=areas(values))
        return TABLES["faithfulness"](
            runs | {"areas": runs["areas"].assign(acu_lower=0.35, acu_upper=0.46)}, "ours"
        )

    [row] = rows_of(table_of(0.4))
    assert [row["acu"], row["acu_minus"], row["acu_plus"], row["racu_minus"]] == ["40.0", "5.0", "6.0", ""]
    assert "interval over texts" in " ".join(table_of(0.4).visible_notes)
    assert "Seeds" not in render_table(table_of(0.4))
    assert "over n seeds" in " ".join(table_of(0.4, 0.5).visible_notes)
    assert "interval over texts" not in " ".join(table_of(0.4, 0.5).visible_notes)
