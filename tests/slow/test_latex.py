"""Every table compiles in LaTeX, as published and beside made-up runs of ours."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from faithmeter.paper.tables import TABLES
from faithmeter.report import exports
from faithmeter.store.frames import COLUMNS

pytestmark = pytest.mark.slow
DEBIAN = "texlive-latex-base texlive-latex-recommended texlive-latex-extra"
MODELS = ("roberta-base", "roberta-large", "models/my_own & <model>")
METHODS = (
    "random",
    "grad-l2",
    "grad-l1",
    "inp-grad-sign",
    "inp-grad-abs",
    "loo-sign",
    "beam(width=20)",
    "50%_own",
)
TASKS = ("bAbI-1", "SNLI", "Diabetes", r"my_task\#1 {x} ~ ^ $y$ | z")


def made_up() -> dict[str, pd.DataFrame]:
    """Three seeds of four tasks, three models and eight methods; one seed did not converge."""
    rng = np.random.default_rng(0)
    rows: dict[str, list[dict[str, Any]]] = {kind: [] for kind in COLUMNS}
    for number, (task, model, seed) in enumerate((t, m, s) for t in TASKS for m in MODELS for s in range(3)):
        run = {"digest": f"t{number}", "task": task, "model": model, "seed": seed, "scope": "explained"}
        good = {"converged": number != 4, "metric": "macro_f1"}
        plain = run | {"strategy": "none", "validation": "unmasked"}
        score = {
            "value": rng.uniform(0.7, 0.9),
            "majority": 0.34,
            "threshold": 0.5,
            "epochs": 20,
            "rows": 1000,
            "train_rows": 8000,
        }
        rows["train"].append(plain | good | score | {"split": "test", "masking": "0"})
        rows["seconds"] += [
            plain | {"kind": "train", "method": "", "phase": phase, "seconds": rng.uniform(1, 3000)}
            for phase in ("train", "test")
        ]
        measured = run | {"digest": f"m{number}", "strategy": "half", "validation": "both"}
        rows["seconds"].append(measured | {"kind": "measure", "method": "", "phase": "fit", "seconds": 5.0})
        for method in METHODS:
            area = {"acu": rng.uniform(-0.1, 0.6), "racu": rng.uniform(-0.5, 2)}
            rows["areas"].append(measured | good | area | {"method": method, "texts": 1000})
            for phase in ("explain", "evaluate", "check"):
                spent = {"kind": "measure", "method": method, "phase": phase, "seconds": rng.uniform(0, 99)}
                rows["seconds"].append(measured | spent)
        for method, percent in ((m, p) for m in ("random", "grad-l2") for p in range(0, 101, 20)):
            step = {"method": method, "percent": percent, "value": 0.9 - percent / 200 - rng.uniform(0, 0.05)}
            rows["roar"].append(run | step | {"metric": "macro_f1"})
    return {kind: pd.DataFrame(rows[kind], columns=list(columns)) for kind, columns in COLUMNS.items()}


def document(tables: list[str]) -> str:
    packages = [rf"\usepackage{{{name}}}" for name in exports.PACKAGES]
    head = [
        r"\documentclass[a4paper]{article}",
        r"\usepackage[T1]{fontenc}",
        r"\usepackage[margin=12mm]{geometry}",
    ]
    body = (table + r"\clearpage" for table in tables)
    return "\n".join([*head, *packages, r"\begin{document}", *body, r"\end{document}"])


def test_every_table_compiles(tmp_path: Path) -> None:
    """Twice, as longtable finds its widths in the first pass; nothing may stick out of the page."""
    if shutil.which("pdflatex") is None:
        pytest.skip(f"needs pdflatex: apt-get install {DEBIAN}")
    frames = made_up()
    names = [name for name in TABLES if not name.startswith("faithfulness_")]
    names += ["faithfulness_SST2", "faithfulness_SNLI"]
    wanted = [(frames, name, show) for name in names for show in ("published", "ours", "both")]
    alone = {kind: frame[~frame["model"].isin(MODELS[:2])] for kind, frame in frames.items()}
    wanted += [(alone, name, "both") for name in names]  # beside what is published of another model
    all_tables = [TABLES[name](rows, show) for rows, name, show in wanted]
    tables = [table for table in all_tables if table.rows]
    assert len(tables) == len(wanted) - 3  # nothing of ours on SST2
    text = document([exports.to_latex(table, f"tab:{number}") for number, table in enumerate(tables)])
    (tmp_path / "tables.tex").write_text(text, encoding="utf-8")
    for _ in range(2):
        done = subprocess.run(
            ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "tables.tex"],
            cwd=tmp_path, capture_output=True, text=True, errors="replace", check=False, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-3000:]
    log = (tmp_path / "tables.log").read_text(encoding="utf-8", errors="replace")
    assert "undefined" not in log
    assert "Missing character" not in log
    assert not [line for line in log.splitlines() if "Overfull \\hbox" in line]
    assert (tmp_path / "tables.pdf").stat().st_size > 10_000
