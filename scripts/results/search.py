"""Stores with the measurements of results/order-search.md → `results/search.csv`.

Run `python scripts/results/search.py results/search.csv RUNS`, then `make results`, which draws the figure.
"""

from __future__ import annotations

import sys

from export import UNUSED

from faithmeter.files import write_csv
from faithmeter.store.frames import COLUMNS, frame
from faithmeter.store.run_store import RunStore

if __name__ == "__main__":
    file, *folders = sys.argv[1:]
    results = [pooled for folder in folders for pooled in RunStore(folder).results()]
    names = [name for name in COLUMNS["areas"] if name not in ("digest", *UNUSED)]
    write_csv(frame("areas", (), results)[names], file)
    print(f"{len(results)} results → {file}")
