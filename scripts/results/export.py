"""Stores of grids → tidy files.

python scripts/results/export.py results runs-study --grids grids/study/*.toml
python scripts/results/export.py results/smoke runs-smoke --grids grids/smoke.toml
python scripts/results/export.py results/base runs-base --grids grids/base/*.toml --append

With `--append` the files keep the runs of stores that are gone, as long as the stores given here lack them.
Each frame of the store becomes a CSV file, `runs.csv` lists configs, digests and environments, and
`predictions.parquet` has the predicted class and the label's probability of every text at every step.
"""

from __future__ import annotations

import argparse
import runpy
from collections.abc import Sequence
from io import StringIO
from pathlib import Path

import pandas as pd
from pandas import DataFrame

from faithmeter.config import TrainConfig
from faithmeter.files import write_csv
from faithmeter.grid.file import read as read_grid
from faithmeter.measuring.trace import frame_traces
from faithmeter.store.frames import COLUMNS, frame
from faithmeter.store.records import Manifest, Record
from faithmeter.store.results import Pooled
from faithmeter.store.run_store import RunStore

METHODS = Path("grids/study/once.py")
"""File that registers methods which the grids of the study name."""
SETTINGS = (
    *("task", "model", "seed", "strategy", "validation", "scope", "rates", "epochs", "learning_rate"),
    *("batch_size", "limit", "validation_limit"),
)
VERSIONS = ("faithmeter", "torch", "transformers", "datasets", "numpy")
PREDICTIONS = ("digest", "method", "row", "percent", "label", "prediction", "probability")
UNUSED = ["folder", "classes_by_number"]
"""Columns that name this machine's folders, or that several seeds do not have."""


def grid_names(store: RunStore, grids: Sequence[Path]) -> dict[str, str]:
    """Return the grid file of each run's digest: the first that asks for the run, or for its training.

    Costly methods are measured apart, in files of their own; they belong to the models that they measure.
    """
    names: dict[str, str] = {}
    for path in grids:
        for run in read_grid(path).runs:
            config = run.located(store)
            if config is not None:
                names.setdefault(config.digest, names.get(run.trained.digest, path.stem))
    return names


def describe_run(record: Record, grid: str) -> dict[str, object]:
    """Return the row of a run in `runs.csv`."""
    trained: TrainConfig = record.trained
    environment = record.environment
    return {
        "grid": grid,
        "kind": record.kind,
        "digest": record.digest,
        "trained": record.train_digest if isinstance(record, Manifest) else record.digest,
        **{name: getattr(trained, name) for name in SETTINGS},
        "texts": record.texts if isinstance(record, Manifest) else record.rows["test"],
        "finished": record.finished,
        "checksum": record.checksum[:16],
        "commit": environment.commit,
        "python": environment.python,
        "machine": environment.machine,
        "cores": environment.cores,
        **{name: environment.versions[name] for name in VERSIONS},
    }


def read_predictions(pooled: Pooled) -> DataFrame:
    """Return the predictions of the runs of a fine-tuning, one row for each method, text and step."""
    parts = []
    for run in pooled.runs:
        rows = frame_traces(run.traces.values())
        digests = {method: manifest.digest for method, manifest in run.sources.items()}
        parts.append(rows.assign(digest=rows["method"].map(digests))[list(PREDICTIONS)])
    rows = pd.concat(parts, ignore_index=True)
    small = dict.fromkeys(("row", "percent", "label", "prediction"), "int16")
    return rows.astype({**small, "probability": "float32", "digest": "category", "method": "category"})


def append(rows: DataFrame, path: Path) -> DataFrame:
    """Return the rows after those that a file keeps of other runs; columns that it lacks are empty there."""
    # as text, so that no number of the file is rounded, or changes its type beside an empty cell
    kept, new = (pd.read_csv(source, dtype=str) for source in (path, StringIO(rows.to_csv(index=False))))
    return pd.concat([kept[~kept["digest"].isin(new["digest"])], new], ignore_index=True)


def export(folder: Path, stores: Sequence[RunStore], files: Sequence[Path], *, keep: bool = False) -> None:
    """Write the tidy files of all runs that the grid files ask for, after the runs kept in the folder."""
    runpy.run_path(str(METHODS))
    records = list[tuple[Path, Record]]()
    measured, grids = list[Pooled](), dict[str, str]()
    for store in stores:
        grids |= (names := grid_names(store, files))
        own = [(path, record) for path, record in store.records() if record.digest in names]
        measured += store.results(own)
        records += own
    folder.mkdir(parents=True, exist_ok=True)
    for kind in COLUMNS:
        rows = frame(kind, records, measured)
        rows = rows[[name for name in COLUMNS[kind] if name not in UNUSED]]
        path = folder / f"{kind}.csv"
        write_csv(append(rows, path) if keep else rows, path)
    runs = DataFrame([describe_run(record, grids[record.digest]) for _, record in records])
    if keep:
        runs = append(runs, folder / "runs.csv")
    write_csv(runs.sort_values(["grid", "seed", "strategy", "kind"]), folder / "runs.csv")
    parts = [read_predictions(pooled) for pooled in measured]
    empty = DataFrame(columns=list(PREDICTIONS))
    predictions = pd.concat(parts, ignore_index=True) if parts else empty
    path = folder / "predictions.parquet"
    if keep:
        kept = pd.read_parquet(path)
        kept = kept[~kept["digest"].isin(predictions["digest"].unique())]
        parts = [frame.astype({"digest": str, "method": str}) for frame in (kept, predictions)]
        predictions = pd.concat(parts, ignore_index=True).astype({"digest": "category", "method": "category"})
    predictions.to_parquet(path, index=False, compression="zstd")
    print(f"{len(records)} runs → {folder}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("stores", type=Path, nargs="+")
    parser.add_argument("--grids", type=Path, nargs="+", required=True)
    parser.add_argument("--append", action="store_true", help="keep the runs in the folder")
    options = parser.parse_args()
    stores = [RunStore(path) for path in options.stores]
    export(options.folder, stores, options.grids, keep=options.append)
