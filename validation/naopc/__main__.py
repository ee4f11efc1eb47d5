"""Computes all tables and writes them to `results/validation`."""

from __future__ import annotations

import pandas as pd

from faithmeter.files import write_csv

from .data import DATA, RESULTS, files
from .published import compare_published, count_reasons, list_named
from .rankings import compare_rankings, measure_attributions, tabulate_scores
from .searches import run_searches, summarize_searches


def main() -> None:
    """Compute all tables and write them to `results/validation`."""
    if not DATA.is_dir():
        raise SystemExit(f"no data in {DATA}; set FAITHMETER_SHARED to the folder that holds data/NAOPC")
    numbers, searches, measured, scores = [], [], {}, []
    for file in files():
        numbers.append(compare_published(file))
        searches.append(run_searches(file))
        measured[file.dataset, file.model] = part = measure_attributions(file)
        scores.append(tabulate_scores(file, part))
        print(f"{file.dataset} {file.model}: {len(file.tables)} texts", flush=True)
    everything = pd.concat(numbers)
    tables = {
        "equal": count_reasons(everything),
        "named": list_named(everything),
        "search": summarize_searches(pd.concat(searches)),
        "scores": pd.concat(scores),
        "kendall": compare_rankings(measured),
    }
    for name, table in tables.items():
        write_csv(table.round(9), RESULTS / f"naopc-{name}.csv")


if __name__ == "__main__":
    main()
