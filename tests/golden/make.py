"""Numbers and sentences that must not change, read through public entry points only.

    python tests/golden/make.py     # writes tests/golden/*.json and *.txt anew

`tests/test_golden.py` compares what these functions return with the files beside this one.
"""

from __future__ import annotations

import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parent
ROOT = GOLDEN.parents[1]
DIGITS = 9
METHODS = ["loo-sign", "grad-l2", "inp-grad-abs", "search"]
Call = Callable[..., tuple[str, str]]
"""Runs the command line with arguments; returns standard output and standard error."""


def round_numbers(value: Any) -> Any:
    """Round floats to `DIGITS` digits after the point, and turn NaN into None, as JSON has none."""
    if isinstance(value, Mapping):
        return {str(key): round_numbers(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [round_numbers(each) for each in value]
    if isinstance(value, float):
        return round(value, DIGITS) if math.isfinite(value) else None
    return value


def summarize(result: Mapping[str, Any]) -> dict[str, Any]:
    """What a measurement claims, of the dictionary that `to_dict` and `measure --json` give.

    Seconds are left out, as they change. All else here follows from predictions, counts and ranks.
    """
    methods = {
        name: {
            "acu": values["acu"],
            "racu": values["racu"],
            "curve": values["curve"]["values"],
            "intervals": {area: values["intervals"][area] for area in ("acu", "racu")},
            "p": values["p"],
            "p_by_percent": {
                test: {percent: step["p"] for percent, step in steps.items()}
                for test, steps in values["pvalues"].items()
            },
        }
        for name, values in result["methods"].items()
    }
    verdict = result["verdict"]
    return round_numbers(
        {
            "texts": result["texts"],
            "metric": result["metric"],
            "majority": result["majority"],
            "methods": methods,
            "ceiling": None if result["ceiling"] is None else result["ceiling"]["acu"],
            "leaders": result["leaders"],
            "texts_needed": result["texts_needed"],
            "trusted": verdict["trusted"],
            "faithful": verdict["faithful"],
            "answers": [
                [answer["mood"], answer["question"], answer["text"]] for answer in verdict["answers"]
            ],
            "doubts": [[doubt["severity"], doubt["text"]] for doubt in result["doubts"]],
        }
    )


def measure_toy(folder: Path) -> dict[str, Any]:
    """A random model of two layers on texts of which it classifies seven of eight rightly."""
    import faithmeter as fm
    from faithmeter.measuring.fitting import fit_tests
    from toy import WORDS, tiny

    clf, rng = tiny(labels=2), random.Random(0)
    texts = [" ".join(rng.choices(WORDS, k=rng.randint(4, 10))) for _ in range(4000)]
    predicted = clf.logits(clf.encode(texts)).argmax(dim=1).tolist()
    classes: list[list[str]] = [[], []]
    for text, label in zip(texts, predicted, strict=True):
        classes[label].append(text)
    rows = []
    for pair in zip(*classes, strict=False):  # as many texts of one class as of the other
        for label, text in enumerate(pair):
            wrong = len(rows) % 8 == 0
            rows.append(f"{text},{'ab'[label ^ wrong]}")
    rows = rows[:600]
    path = folder / "reviews.csv"
    path.write_text("\n".join(["review,stars", *rows]), encoding="utf-8")
    task = fm.own_task(path, text="review", label="stars")
    results = {}
    for trained_with in ("half", "none"):
        tests = fit_tests(clf, task, trained_with=trained_with)
        result = fm.measure(clf, task, ["random(seed=3)", *METHODS], tests=tests, limit=32)
        results[trained_with] = summarize(json.loads(json.dumps(result.to_dict())))
    return results


def measure_trained(folder: Path, call: Call) -> tuple[dict[str, Any], dict[str, str]]:
    """The way of the demo, in small: train on generated stories, measure, report.

    Returns the claims of `measure --json`, and what the verbs print that does not tell the time.
    """
    runs = folder / "runs"
    small = ("--limit", 320, "--validation-limit", 60, "--epochs", 1, "--learning-rate", "1e-3")
    trained, _ = call("train", "--task", "bAbI-1", "--model", "embedded", *small, "-o", runs, "--quiet")
    [checkpoint] = runs.glob("train-*")
    measured = ("measure", checkpoint, "--limit", 24, "-o", runs)
    chosen = [part for name in METHODS[1:] for part in ("-m", name)]
    claims, told = call(*measured, *chosen, "--json")
    table, _ = call(*measured, *chosen)
    texts = {"train": trained, "measure": without_costs(table), "verdict": verdict_lines(told)}
    return summarize(json.loads(claims)), {name: tidy(text) for name, text in texts.items()}


def without_costs(table: str) -> str:
    """A table of methods without its last two columns, evaluations and seconds."""
    return re.sub(r"( +evals +seconds| +\d+ +\d+\.\d)$", "", table, flags=re.MULTILINE)


def verdict_lines(told: str) -> str:
    """The line of the first question, and what follows."""
    lines = told.splitlines()
    [first] = [number for number, line in enumerate(lines) if "Is the model measurable?" in line]
    return "\n".join(lines[first:])


def tidy(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines()) + "\n"


def published() -> dict[str, Any]:
    """ACU, RACU and p-values of the committed files, by folder, run and method."""
    import pandas as pd

    found: dict[str, Any] = {}
    for folder in (ROOT / "results", ROOT / "results" / "smoke"):
        runs = pd.read_csv(folder / "runs.csv").set_index("digest")["grid"]
        for row in pd.read_csv(folder / "areas.csv").to_dict("records"):
            place = (runs[row["digest"]], row["task"], Path(row["model"]).name, f"seed {row['seed']}")
            name = "/".join((*place, row["strategy"], row["validation"], row["digest"], row["method"]))
            columns = ("acu", "racu", "p_published", "p_crossfit")
            found[name] = {column: row[column] for column in columns}
    return round_numbers(found)


def in_a_process(*arguments: object) -> tuple[str, str]:
    """The command line in a process of its own, without colors or wrapping of lines."""
    command = [sys.executable, "-m", "faithmeter", *map(str, arguments)]
    environment = os.environ | {"COLUMNS": "200"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
    return done.stdout, done.stderr


def write() -> None:
    """Write all files anew: run it only for a change that is meant, and say so in the changelog."""
    sys.path.insert(0, str(ROOT / "tests"))
    with tempfile.TemporaryDirectory() as folder:
        claims, texts = measure_trained(Path(folder), in_a_process)
        files = {"toy": measure_toy(Path(folder)), "trained": claims, "published": published()}
    for name, values in files.items():
        text = json.dumps(values, indent=1, ensure_ascii=False)
        (GOLDEN / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    for name, text in texts.items():
        (GOLDEN / f"{name}.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
