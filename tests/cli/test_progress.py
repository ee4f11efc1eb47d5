"""Progress in a log file: a line every ten per cent, with the time of the work itself."""

from __future__ import annotations

import pytest

from faithmeter.cli import progress
from faithmeter.cli.screen import note, volume


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(progress.time, "perf_counter", lambda: now[0])
    return now


def test_a_log_file_gets_a_line_every_ten_percent(capsys, clock) -> None:
    with progress.bars() as bars:
        bar = bars.add_task("loo-sign", total=50, note="")
        for _ in range(50):
            bars.update(bar, advance=1, spent=3.0)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 10
    assert lines[0] == "loo-sign: 5 of 50 (10 %), 0:00:03, 0:00:27 left"
    assert lines[-1] == "loo-sign: 50 of 50 (100 %), 0:00:03"


def test_long_work_without_progress_gets_a_line_a_minute(capsys, clock) -> None:
    with progress.bars() as bars:
        bar = bars.add_task("beam", total=64, note="working")
        for second in range(0, 200, 10):
            clock[0] = float(second)
            bars.update(bar, advance=0, spent=float(second))
    lines = capsys.readouterr().err.splitlines()
    assert lines == [f"beam: 0 of 64 (0 %), 0:0{minutes}:00, working" for minutes in (1, 2, 3)]


def test_a_phase_that_stops_early_is_over_when_the_next_one_begins(capsys, clock) -> None:
    with progress.bars() as bars:
        overall = progress.Overall(bars, "audit", in_order=True)
        overall.plan({"check": 10, "adaptation": 70, "loo-sign": 20})
        for phase, done, total in (("check", 5, 5), ("adaptation", 1, 5), ("loo-sign", 1, 2)):
            overall.show(phase, done, total)
        overall.show("check", 1, 5)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(",")[0] for line in lines] == ["audit: 10 %", "audit: 24 %", "audit: 90 %"]


def test_quiet_prints_no_progress(capsys, monkeypatch) -> None:
    monkeypatch.setattr(volume, "quiet", True)
    note("a remark")
    with progress.bars() as bars:
        bars.update(bars.add_task("beam", total=1, note=""), advance=1)
    assert capsys.readouterr().err == ""


def test_time_belongs_to_the_task_that_just_worked(clock) -> None:
    stopwatch = progress.Clock()
    spent = []
    for now, name in ((2.0, "a"), (5.0, "b"), (6.0, "a")):
        clock[0] = now
        spent.append(stopwatch.spend(name))
    assert spent == [2.0, 3.0, 3.0]


def test_bounds_are_told_cheapest_first(capsys, monkeypatch) -> None:
    from faithmeter.cli.screen import print_bounds
    from faithmeter.measuring.costs import Bounds

    monkeypatch.setattr(volume, "quiet", False)
    print_bounds(Bounds(5, {"check": 50, "loo-sign": 1200, "grad-l2": 100}))
    [told] = capsys.readouterr().err.splitlines()
    assert told == "5 texts, evaluations at most, judged by the first: check 50, grad-l2 100, loo-sign 1,200"


def test_the_time_of_a_finished_bar_stands_still(clock) -> None:
    bars = progress.Progress(get_time=lambda: clock[0], disable=True)
    bar = bars.add_task("test", total=2, note="")
    clock[0] = 5.0
    bars.update(bar, completed=2)
    clock[0] = 60.0
    assert progress.describe_time(bars.tasks[0]) == "0:00:05"


def test_every_verb_can_be_quiet_or_verbose(faithmeter, monkeypatch) -> None:
    monkeypatch.setattr(volume, "quiet", False)
    monkeypatch.setattr(volume, "verbose", False)
    for option in ("--quiet", "--verbose"):
        outcome = faithmeter("list", "methods", option)
        assert outcome.code == 0
        assert "loo-sign" in outcome.out
        assert (volume.quiet, volume.verbose) == (option == "--quiet", option == "--verbose")
    assert "Traceback" in faithmeter("list", "nothing", "--verbose").err
