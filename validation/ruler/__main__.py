"""Computes all tables, pictures and the page of the measured ruler.

`--quick` takes the committed erasures; without it, models whose erasures are missing are trained first.
"""

from __future__ import annotations

import sys

import pandas as pd
import torch

from faithmeter.files import write_csv

from ..naopc.picture import draw_pareto
from .cases import CASES, is_full, trained
from .erasures import FOLDER, collect, file_of
from .page import PARETO, RECOVERY, write_page
from .picture import draw_recovery
from .recovery import (
    EMPTY,
    TRUTH,
    case_of_control,
    cases,
    find_truth,
    known_controls,
    praise_nothing,
    rank_degraded,
    tell_learned,
)
from .summary import summarize

RESULTS = FOLDER.parent


def main() -> None:
    """Compute everything."""
    torch.set_num_threads(1)
    for control in () if "--quick" in sys.argv else CASES:
        if not file_of(control).exists():
            collect(control, trained(control), degraded=is_full(control))
    there = [control for control in CASES if file_of(control).exists()]
    every = [case for control in there for case in cases(control)]
    every += [case_of_control(control) for control in known_controls()]
    known = [case for case in every if TRUTH in case.answers.names and case.control.training not in EMPTY]
    empty = [case for case in every if {case.control.task, case.control.training} & {*EMPTY}]
    first = pd.concat([find_truth(case) for case in known], ignore_index=True)
    tau = pd.concat([rank_degraded(case) for case in known], ignore_index=True)
    praise = pd.concat([praise_nothing(case) for case in empty], ignore_index=True)
    tables = {"ruler-first": first, "ruler-tau": tau, "ruler-praise": praise}
    tables["ruler-learned"] = pd.concat([tell_learned(case) for case in known], ignore_index=True)
    tables["ruler"] = summarize(first, tau, praise)
    for name, table in tables.items():
        write_csv(table.round(6), RESULTS / f"{name}.csv")
    draw_recovery(tables["ruler"]).save(RECOVERY)
    draw_pareto(pd.read_csv(RESULTS / "naopc-search.csv")).save(PARETO)
    write_page()


if __name__ == "__main__":
    main()
