"""Table of the methods on MPNet-base, from the committed predictions and probabilities of each text.

python scripts/results/mpnet.py            prints the table
python scripts/results/mpnet.py --write    writes it into results/mpnet/README.md
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from faithmeter.config import BASELINE
from faithmeter.stats.intervals import Interval, TextIntervals, resample_texts
from faithmeter.stats.predictions import Predictions

FOLDER = Path(__file__).parents[2] / "results" / "mpnet"
START, END = "<!-- table -->\n", "<!-- end -->\n"


def read_predictions(metric: str, column: str) -> Predictions:
    """Return the column of the per-text results as arrays [N, S] by method; the baseline comes first."""
    frame = pd.read_parquet(FOLDER / "predictions.parquet")
    frame["method"] = frame["method"].astype(str)
    names = [BASELINE, *sorted({*frame["method"]} - {BASELINE})]
    methods = {}
    for name in names:
        rows = frame[frame["method"] == name].drop_duplicates(["row", "percent"])
        table = rows.pivot(index="row", columns="percent", values=column)
        methods[name] = table.to_numpy()
    labels = frame.drop_duplicates("row").sort_values("row")["label"].to_numpy(np.int64)
    percents = tuple(int(percent) for percent in sorted(frame["percent"].unique()))
    values = {name: np.asarray(array) for name, array in methods.items()}
    return Predictions(labels, values, 2, metric, percents)


def describe(interval: Interval) -> str:
    return f"{100 * interval.mean:.1f} [{100 * interval.lower:.1f}, {100 * interval.upper:.1f}]"


def table() -> str:
    """Return the methods with faithfulness, ACU and RACU in percent, the most faithful first."""
    accuracy = resample_texts(read_predictions("accuracy", "prediction"))
    probability = resample_texts(read_predictions("mean", "probability"))
    names = [name for name in accuracy.predictions.methods if name != BASELINE]
    shares = {name: faithfulness(probability, name) for name in names}
    lines = ["| method | faithfulness | ACU | RACU |", "|---|---|---|---|"]
    for name in sorted(names, key=lambda name: -shares[name].mean):
        cells = (shares[name], accuracy.acu(name), accuracy.racu(name))
        lines.append(f"| `{name}` | {' | '.join(map(describe, cells))} |")
    return "\n".join(lines) + "\n"


def faithfulness(probability: TextIntervals, name: str) -> Interval:
    return probability.area(name, "faithfulness")


def page(text: str) -> str:
    """Return the text of the page with the table as it follows from the files."""
    before, _, rest = text.partition(START)
    return before + START + table() + END + rest.partition(END)[2]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    if parser.parse_args().write:
        file = FOLDER / "README.md"
        file.write_text(page(file.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print(table(), end="")
