"""Numbers of tokens → labels: what a wholly masked text still tells, written to `results/lengths.csv`.

`python scripts/results/lengths.py data models/paraphrase-MiniLM-L3-v2 results`
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pandas import DataFrame
from scipy import stats
from sklearn.ensemble import HistGradientBoostingClassifier

import faithmeter as fm
from faithmeter.data import Task
from faithmeter.files import write_csv
from faithmeter.models.loading import load_tokenizer
from faithmeter.stats.metrics import METRICS

TASKS = ("bAbI-1", "SST2", "CoLA", "RTE", "CB", "BoolQ")
ROWS = 5000
"""First rows of a training split that are used."""


def count_tokens(rows: DataFrame, tokenizer: object) -> NDArray[np.int64]:
    """Return the numbers of tokens [N, 1 or 2] of text and context."""
    columns = [name for name in ("text", "context") if name in rows]
    counts = [[len(ids) for ids in tokenizer(list(rows[name]))["input_ids"]] for name in columns]  # type: ignore[operator]
    return np.array(counts).T


def judge_lengths(task: Task, tokenizer: object) -> dict[str, object]:
    """Return the test performance of boosted trees on token counts beside the class majority, with bounds."""
    splits = task.load()
    train, test = (
        splits[name].select(range(min(ROWS, len(splits[name])))).to_pandas() for name in ("train", "test")
    )
    trees = HistGradientBoostingClassifier(random_state=0, max_leaf_nodes=8, max_iter=50)
    trees.fit(count_tokens(train, tokenizer), train["label"])
    predicted = trees.predict(count_tokens(test, tokenizer))
    labels, classes = test["label"].to_numpy(), len(task.labels)
    usual = np.full_like(labels, train["label"].mode()[0])
    metric = METRICS[task.metric]

    def gain(rows: NDArray[np.int64]) -> float:
        return metric(labels[rows], predicted[rows], classes) - metric(labels[rows], usual[rows], classes)

    bounds = stats.bootstrap(
        (np.arange(len(labels)),),
        gain,
        vectorized=False,
        n_resamples=999,
        method="percentile",
        random_state=np.random.default_rng(0),
    ).confidence_interval
    every = np.arange(len(labels))
    return {
        "task": task.name, "pair": "context" in test, "metric": task.metric, "train_rows": len(train),
        "texts": len(test), "lengths": metric(labels, predicted, classes),
        "majority": metric(labels, usual, classes), "gain": gain(every),
        "gain_lower": bounds.low, "gain_upper": bounds.high,
    }  # fmt: skip


if __name__ == "__main__":
    data, encoder, folder = sys.argv[1:]
    tokenizer = load_tokenizer(encoder)
    rows = [judge_lengths(fm.task(name, data_dir=data), tokenizer) for name in TASKS]
    write_csv(DataFrame(rows), Path(folder) / "lengths.csv")
