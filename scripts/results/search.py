"""Stores with the measurements of results/order-search.md → `results/search.csv`.

Run `python scripts/results/search.py results/search.csv RUNS`, then `make results`, which draws the figure.
"""

from __future__ import annotations

import sys

from export import UNUSED

from faithmeter.files import write_csv
from faithmeter.store.frames import frame
from faithmeter.store.records import MeasureRecord
from faithmeter.store.run_store import RunStore

if __name__ == "__main__":
    file, *folders = sys.argv[1:]
    runs = [record for folder in folders for record in RunStore(folder).records()]
    records = [(path, record) for path, record in runs if isinstance(record, MeasureRecord)]
    write_csv(frame("areas", records).drop(columns=["digest", *UNUSED]), file)
    print(f"{len(records)} measurements → {file}")
