"""Computes all tables on the controls and writes them to `results/validation`.

Controls whose file is missing are trained first, half an hour on a free core; `--quick` skips them.
"""

from __future__ import annotations

import sys

import pandas as pd
import torch

from faithmeter.files import write_csv

from . import repeats
from .cache import CONTROLS, FOLDER, run
from .definitions import DEFINITIONS, compare, decide, measure_false_praise
from .exact import tabulate_excess
from .ladder import MARGINS, check_of_today, climb, count
from .page import PICTURE, write_page
from .picture import draw_planted
from .simulations import simulate_counts, simulate_coverage, simulate_learned

RESULTS = FOLDER.parent
EMPTY = ("shuffled", "random")


def main() -> None:
    """Compute all tables."""
    torch.set_num_threads(1)
    for control in () if "--quick" in sys.argv else CONTROLS:
        run(control)
    there = [control for control in CONTROLS if control.file.exists()]
    explained = [control for control in there if control.explained]
    methods = pd.concat([compare(control) for control in explained], ignore_index=True)
    decision = decide(methods)
    empty = [control for control in explained if control.task in EMPTY or control.training in EMPTY]
    for name, definition in DEFINITIONS.items():
        praise = max(measure_false_praise(control, definition) for control in empty)
        decision.loc[decision.definition == name, "praised_windows_of_empty_models"] = praise
    draws = pd.concat([climb(control) for control in there], ignore_index=True)
    tables = {
        "faithfulness-methods": methods,
        "faithfulness-decision": decision,
        "ladder-draws": draws,
        "ladder": count(draws),
        "ladder-margins": pd.concat([count(draws[draws.texts == 400], margin) for margin in MARGINS]),
        "check-of-0.2": pd.DataFrame([check_of_today(control) for control in there]),
        "exact": pd.concat([tabulate_excess(control) for control in there]),
        "repeats": repeats.compare_draws(repeats.LARGEST),
        "learned": simulate_learned(),
        "counts": simulate_counts(),
        "coverage": simulate_coverage(),
    }
    for name, table in tables.items():
        write_csv(table.round(6), RESULTS / f"{name}.csv")
    draw_planted(CONTROLS[0]).save(PICTURE)
    write_page()


if __name__ == "__main__":
    main()
