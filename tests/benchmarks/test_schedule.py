"""Simulated schedules: by hand, by bounds that every schedule obeys, and of the paper's grid."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import faithmeter as fm
from benchmarks.costs import seconds as expected_seconds
from benchmarks.schedule import CHAIN, TAIL, WORK, claim_costs, longest_chain, needed_runs, show, simulate
from faithmeter import grid
from faithmeter.grid.execution import Run

GRIDS = Path(__file__).parents[2] / "grids"


def chain(seed: int, length: int) -> list[Run]:
    runs: list[Run] = []
    for number in range(length):
        runs.append(Run(fm.TrainConfig(seed=seed, epochs=number), runs[-1] if runs else None))
    return runs


def test_a_schedule_by_hand() -> None:
    """Two chains a-b-c of 1, 2, 3 seconds and d of 4: two workers do a b c | d, or 6 seconds."""
    (a, b, c), (d,) = chain(0, 3), chain(1, 1)
    seconds = {a: 1.0, b: 2.0, c: 3.0, d: 4.0}
    one, two = (simulate([a, b, c, d], seconds, workers) for workers in (1, 2))
    assert (one.makespan, one.busy, one.limit) == (10.0, 1.0, WORK)
    assert (two.makespan, two.chain, two.limit) == (6.0, 6.0, CHAIN)
    assert two.busy == pytest.approx(10 / 12)


def test_long_runs_that_start_last_are_named_as_the_limit() -> None:
    short, (long,) = [chain(seed, 1)[0] for seed in range(4)], chain(9, 1)
    seconds = dict.fromkeys(short, 1.0) | {long: 3.0}
    schedule = simulate([*short, long], seconds, 2)
    assert (schedule.makespan, schedule.limit) == (5.0, TAIL)


@given(
    st.lists(st.lists(st.floats(0.1, 10.0), min_size=1, max_size=4), min_size=1, max_size=6),
    st.integers(1, 8),
)
def test_every_schedule_obeys_the_bounds(durations: list[list[float]], workers: int) -> None:
    """No schedule beats the work or the longest chain; one without idle workers is at most their sum."""
    chains = [chain(seed, len(lengths)) for seed, lengths in enumerate(durations)]
    runs = [run for each in chains for run in each]
    seconds = dict(zip(runs, (length for lengths in durations for length in lengths), strict=True))
    schedule = simulate(runs, seconds, workers)
    lower = max(schedule.work / workers, schedule.chain)
    assert lower <= schedule.makespan * (1 + 1e-9)
    assert schedule.makespan <= (schedule.work / workers + schedule.chain) * (1 + 1e-9)
    assert schedule.chain == pytest.approx(max(map(sum, durations)))
    if workers == 1:
        assert schedule.makespan == pytest.approx(schedule.work)


def test_the_paper_is_limited_by_its_work_and_then_by_its_longest_chain(tmp_path: Path) -> None:
    runs = grid.read(GRIDS / "paper.toml").runs
    seconds = {run: cost[0] for run, cost in expected_seconds(runs, fm.RunStore(tmp_path)).items() if cost}
    assert len(seconds) == len(runs) == 3360
    sizes = {workers: simulate(runs, seconds, workers) for workers in (1, 8, 64, 512)}
    assert sizes[1].makespan == pytest.approx(sum(seconds.values()))
    assert sizes[8].limit == WORK
    assert sizes[512].makespan >= longest_chain(runs, seconds)
    assert sizes[512].makespan < sizes[64].makespan < sizes[8].makespan
    costs = claim_costs(runs, seconds)
    assert costs["masking half of every mini-batch is the best strategy"][0] == 1440
    assert costs["masked fine-tuning keeps the performance"][0] == 2 * 160
    assert costs["erased texts are in distribution, and the methods have this order"][0] == 2 * 160
    # 1,600 ROAR steps of 40 plain trainings, and 160 measurements of as many trainings
    assert costs["areas are larger than those of Recursive ROAR"][0] == 1600 + 40 + 2 * 160


def test_needed_runs_go_back_to_the_first() -> None:
    runs = chain(0, 4)
    assert needed_runs([runs[2]]) == {*runs[:3]}


def test_the_cost_of_a_grid_is_printed(tmp_path: Path, capsys) -> None:
    show(GRIDS / "paper.toml", tmp_path)
    first, *lines = capsys.readouterr().out.splitlines()
    assert first.startswith("3360 runs to do: 14063:"), "hours, as in docs/cluster.md"
    assert any(line.split()[:1] == ["512"] and "longest chain of runs" in line for line in lines)
    small = tmp_path / "small.toml"
    small.write_text('tasks = ["bAbI-1"]\nmodels = ["embedded"]\nseeds = [0]\nstrategies = ["half/both"]\n')
    show(small, tmp_path)
    assert capsys.readouterr().out == "1 runs to do: 0:00:00 on one worker, 1 without estimate\n"
