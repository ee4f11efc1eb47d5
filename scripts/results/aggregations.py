"""The ablation of MaSF's aggregations that the paper mentions in F.2, by model and rate.

python scripts/results/aggregations.py runs-study/train-bAbI-1-* --data-dir data

Fits the published test and its variants on the validation texts of each checkpoint, masked as in its
training, and writes the p-values of test texts masked at random to `results/aggregations.csv`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import torch

import faithmeter as fm
from faithmeter.config import SIGNIFICANCE_LEVEL
from faithmeter.files import write_csv
from faithmeter.measuring.erase import states
from faithmeter.measuring.fitting import Masking, masked_pvalues, trace_masked
from faithmeter.measuring.texts import read_slices
from faithmeter.models.evaluator import Evaluator
from faithmeter.stats.masf import ABLATIONS
from faithmeter.store.records import RECORD, TrainRecord, read_record

AGGREGATIONS = ("published", *ABLATIONS)
TEXTS = 200


def measure(checkpoint: Path, data_dir: str) -> Iterator[dict[str, Any]]:
    """Yield a row for each aggregation and rate: the p-value of all texts, and the share below the level."""
    record = read_record(checkpoint / RECORD)
    assert isinstance(record, TrainRecord), f"{checkpoint} is not a training"
    config = record.trained
    evaluator = Evaluator.of(fm.load(checkpoint))
    splits = fm.task(config.task, data_dir=data_dir).load()
    masking = Masking(config.strategy, config.scope, config.rates, seed=config.seed)
    features = []
    for batch, _ in read_slices(evaluator, splits["validation"], len(splits["validation"])):
        features.append(states(evaluator, batch.masked(masking.draw(batch), evaluator.mask_id))[1])
    rows = torch.cat(features).numpy()
    tests = {}
    for name in AGGREGATIONS:
        tests[name] = fm.MaSF(calibration=name, trained_with=config.strategy).fit(rows)
    trace = trace_masked(evaluator, splits["test"], tests, TEXTS, seed=config.seed)
    for name, by_rate in masked_pvalues(trace).items():
        for percent, p in by_rate.items():
            yield {
                **{key: getattr(config, key) for key in ("task", "model", "seed", "strategy")},
                **{"aggregation": name, "percent": percent, "texts": len(trace.rows)},
                **{"p": p.p, "below": p.below[SIGNIFICANCE_LEVEL]},
            }


def main(checkpoints: Sequence[Path], data_dir: str) -> None:
    rows = [row for checkpoint in checkpoints for row in measure(checkpoint, data_dir)]
    write_csv(pd.DataFrame(rows), Path("results/aggregations.csv"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoints", type=Path, nargs="+")
    parser.add_argument("--data-dir", default="data")
    options = parser.parse_args()
    main(options.checkpoints, options.data_dir)
