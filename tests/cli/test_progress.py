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


def test_a_forecast_tells_estimates_from_upper_bounds(capsys, monkeypatch) -> None:
    from faithmeter.cli.results import print_forecast
    from faithmeter.faithfulness.forecast import Forecast

    monkeypatch.setattr(volume, "quiet", False)
    evaluations = {"check": 50, "grad-l2": 100, "beam": 900}
    seconds = {"check": 4.0, "grad-l2": 12.0, "beam": 160.0}
    print_forecast(Forecast(5, evaluations, seconds))
    lines = [" ".join(line.split()) for line in capsys.readouterr().err.splitlines()]
    assert {"check 50 about 4 s", "grad-l2 100 about 10 s", "all 1,050 about 3 min"} <= {*lines}
    print_forecast(Forecast(5, evaluations, seconds, at_most=frozenset({"beam"})))
    lines = [" ".join(line.split()) for line in capsys.readouterr().err.splitlines()]
    assert {"grad-l2 100 about 10 s", "beam 900 at most 3 min", "all 1,050 at most 3 min"} <= {*lines}


def test_the_time_of_a_finished_bar_stands_still(clock) -> None:
    bars = progress.Progress(get_time=lambda: clock[0], disable=True)
    bar = bars.add_task("test", total=2, note="")
    clock[0] = 5.0
    bars.update(bar, completed=2)
    clock[0] = 60.0
    assert progress.describe_time(bars.tasks[0]) == "0:00:05"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "1 s"), (8.4, "8 s"), (47, "50 s"), (80, "80 s"), (600, "10 min"), (9000, "2.5 h")],
)
def test_durations_are_rough(seconds: float, text: str) -> None:
    from faithmeter.cli.results import format_duration

    assert format_duration(seconds) == text


def test_every_verb_can_be_quiet_or_verbose(faithmeter, monkeypatch) -> None:
    monkeypatch.setattr(volume, "quiet", False)
    monkeypatch.setattr(volume, "verbose", False)
    for option in ("--quiet", "--verbose"):
        outcome = faithmeter("list", "methods", option)
        assert outcome.code == 0
        assert "loo-sign" in outcome.out
        assert (volume.quiet, volume.verbose) == (option == "--quiet", option == "--verbose")
    assert "Traceback" in faithmeter("list", "nothing", "--verbose").err
