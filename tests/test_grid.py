"""A grid file → runs in the order of their needs, each done once, whatever fails or is killed on the way."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import faithmeter as fm
from faithmeter import grid, published, runs
from faithmeter.cli.grid import work
from faithmeter.cli.screen import bars
from faithmeter.config import MeasureConfig, RoarConfig, TrainConfig

GRIDS = Path(__file__).parent.parent / "grids"
SMALL = """
tasks = ["bAbI-1"]
models = ["embedded"]
seeds = [0, 1]
strategies = ["half/both", "none/unmasked"]
[train]
epochs = 1
limit = 64
[measure]
strategies = ["half/both"]
methods = ["grad-l2", "loo-sign"]
limit = 8
[roar]
seeds = [1]
methods = ["grad-l2"]
step = 50
"""


@pytest.fixture
def small(tmp_path: Path) -> list[grid.Run]:
    (tmp_path / "small.toml").write_text(SMALL)
    return grid.read(tmp_path / "small.toml").runs


def test_runs_come_after_what_they_need_and_none_comes_twice(small: list[grid.Run]) -> None:
    assert [run.config.kind for run in small] == ["train"] * 2 + ["measure"] + ["train"] * 2 + [
        "measure",
        *["roar"] * 4,
    ]
    for number, run in enumerate(small):
        assert run.after is None or run.after in small[:number]
    assert len(set(small)) == len(small)
    assert {run.trained.limit for run in small} == {64}
    measure = small[2]
    assert isinstance(measure.config, MeasureConfig)
    assert measure.config.methods == "grad-l2 loo-sign"
    assert measure.trained.strategy == "half"
    assert small[5].config.seed == 1, "random orders are drawn from the training's seed"


def test_each_step_of_roar_needs_the_one_before(small: list[grid.Run]) -> None:
    steps = [run for run in small if isinstance(run.config, RoarConfig)]
    assert [(run.config.method, run.config.percent) for run in steps] == [
        ("random", 50),
        ("random", 100),
        ("grad-l2", 50),
        ("grad-l2", 100),
    ]
    plain = TrainConfig(seed=1, strategy="none", validation="unmasked", epochs=1, limit=64)
    assert steps[0].after == steps[2].after == grid.Run(plain)
    assert steps[0].config.before == plain
    assert steps[1].config.before == steps[0].config
    assert RoarConfig(percent=100, step=30).before.percent == 90


def test_the_paper_has_all_its_runs() -> None:
    paper = grid.read(GRIDS / "paper.toml").runs
    kinds = [run.config.kind for run in paper]
    assert kinds.count("train") == 16 * 2 * 5 * 9
    assert kinds.count("measure") == 16 * 2 * 5 * 2
    assert kinds.count("roar") == 8 * 5 * (3 + 1) * 10
    beams = [run for run in paper if run.config.kind == "measure" and "beam" in run.config.methods]
    assert len(beams) == 12 * 2 * 5 * 2


@pytest.mark.parametrize("name", ["smoke", "real-small"])
def test_the_other_grids_can_be_read(name: str) -> None:
    assert grid.read(GRIDS / f"{name}.toml").runs


def test_published_times_are_added_up(tmp_path) -> None:
    paper = grid.read(GRIDS / "paper.toml").runs
    estimates = grid.seconds(paper, fm.RunStore(tmp_path))
    assert all(found is not None and found[1] == "published" for found in estimates.values())
    of = {run.name: found[0] for run, found in estimates.items() if found}
    assert of["train BoolQ roberta-base half/both seed 0"] == 51 * 60
    assert of["train BoolQ roberta-large half/both seed 0"] == 123 * 60
    # explaining, by the table of importance measures, and ten times evaluating (2 min) and checking (4 min)
    rows = published.table("walltime_importance_measures")
    times = rows[rows["dataset"] == "BoolQ"]["base_hhmm"].str.split(":")
    explained = sum(3600 * int(hours) + 60 * int(minutes) for hours, minutes in times)
    assert of["measure BoolQ roberta-base half/both seed 0"] == explained + 10 * (2 + 4) * 60


MISTAKES = {
    'strategies = ["half/both"]\nseeds = [0]\nmodels = ["embedded"]': "names no tasks",
    SMALL.replace("seeds = [0, 1]", "seeds = 0"): "seeds is 0; expected a list",
    SMALL.replace("bAbI-1", "bAbI-9"): "unknown task 'bAbI-9'",
    SMALL.replace("none/unmasked", "none"): "unknown validation",
    SMALL.replace("loo-sign", "lo-sign"): "unknown method 'lo-sign'; did you mean 'loo-sign'",
    SMALL.replace("epochs = 1", 'epochs = "one"'): "epochs is 'one'; expected a whole number",
    SMALL.replace("epochs", "epoch"): "unknown train option 'epoch'; did you mean 'epochs'",
    SMALL.replace("limit = 8", "limits = 8"): r"unknown entry of \[measure\]",
    SMALL + "methods = [": "cannot be read as a grid",
    SMALL.replace("[roar]", "[raor]"): "unknown entry .*'raor'; did you mean 'roar'",
    SMALL.replace('[roar]\nseeds = [1]\nmethods = ["grad-l2"]', "[roar]"): r"\[roar\] names no methods",
}


@pytest.mark.parametrize("text", MISTAKES, ids=MISTAKES.values())
def test_mistakes_in_the_file_are_told(tmp_path, text: str) -> None:
    (tmp_path / "grid.toml").write_text(text)
    with pytest.raises(fm.InputError, match=MISTAKES[text]):
        grid.read(tmp_path / "grid.toml")


def pretend(store: fm.RunStore, worked: list[str]) -> object:
    """Work that only writes records."""

    def done(run: grid.Run) -> None:
        worked.append(run.name)
        config = run.located(store)
        assert config is not None
        store.put(config, {"fingerprint": "f", "data": "d"})

    return done


def test_a_failure_is_recorded_and_the_rest_goes_on(small, tmp_path) -> None:
    store, worked, told = fm.RunStore(tmp_path / "runs"), [], {}
    good = pretend(store, worked)

    def bad(run: grid.Run) -> None:
        if run == small[3]:  # half/both of seed 1, which a measurement needs
            raise ZeroDivisionError("a division")
        good(run)  # type: ignore[operator]

    failed = grid.execute(small, store, bad, told.__setitem__)
    assert failed == [small[3], small[5]]
    assert told[small[3]] == "failed"
    assert told[small[5]] == "blocked"
    assert list(told.values()).count("finished") == len(small) - 2
    [file] = grid.failures(small, store).values()
    found = json.loads(file.read_text())
    assert found["error"] == "ZeroDivisionError: a division"
    assert "test_grid.py" in found["traceback"]
    worked.clear()
    assert grid.execute(small, store, good, told.__setitem__) == []
    assert worked == [small[3].name, small[5].name], "only what was not done"
    assert not grid.failures(small, store)


def test_a_run_that_another_process_has_is_waited_for(small, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(grid, "PATIENCE", 0.01)
    store, worked, attempts = fm.RunStore(tmp_path / "runs"), [], []
    good = pretend(store, worked)

    def busy_twice(run: grid.Run) -> None:
        attempts.append(run)
        if run == small[0] and attempts.count(run) < 3:
            raise grid.Busy("another process")
        good(run)  # type: ignore[operator]

    told: dict[grid.Run, str] = {}
    assert grid.execute(small, store, busy_twice, told.__setitem__) == []
    assert set(told) == set(small)
    assert sorted(worked) == sorted(run.name for run in small), "each once"
    assert worked.index(small[2].name) > worked.index(small[0].name)


def test_what_was_put_aside_is_done_again(small, tmp_path) -> None:
    store, worked = fm.RunStore(tmp_path / "runs"), []
    good = pretend(store, worked)
    grid.execute(small, store, good, lambda *_: None)
    record = store.folder(small[0].config) / "record.json"
    record.write_text(record.read_text().replace('"f"', '"g"'))
    worked.clear()
    with pytest.warns(UserWarning, match="put aside"):
        grid.execute(small, store, good, lambda *_: None)
    assert worked == [small[0].name], "its measurement is found again, as the same weights came out"


def test_a_small_grid_for_real(tmp_path) -> None:
    """Training, measurement and both kinds of ROAR steps on the embedded model, and nothing twice."""
    (tmp_path / "small.toml").write_text(SMALL.replace("[0, 1]", "[1]").replace("limit = 64", "limit = 32"))
    small, store = grid.read(tmp_path / "small.toml").runs, fm.RunStore(tmp_path / "runs")
    with bars() as progress:
        failed = grid.execute(small, store, lambda run: work(run, store, progress), lambda *_: None)
        assert failed == [], [json.loads(f.read_text()) for f in grid.failures(small, store).values()]
        again: list[str] = []
        grid.execute(small, store, again.append, lambda *_: None)
    assert again == []
    frames = store.frames()
    assert len(frames["roar"]) == 2 * 3
    one, other = (rows.sort_values("percent") for _, rows in frames["roar"].groupby("method"))
    assert list(one["value"])[::2] == list(other["value"])[::2], "plain, and wholly erased: the same data"
    assert set(frames["areas"]["method"]) == {"random", "grad-l2", "loo-sign"}
    assert all(found and found[1] == "measured here" for found in grid.seconds(small, store).values())
    inputs = pd.read_parquet(next((tmp_path / "runs").glob("measure-*/inputs.parquet")))
    first = inputs.iloc[0]
    words = [first["text"][a:b] for a, b in zip(first["starts"], first["ends"], strict=True)]
    assert "".join(words) == first["text"].replace(" ", "")
    assert runs.trained_as(store.folder(small[0].config)) == small[0].config
