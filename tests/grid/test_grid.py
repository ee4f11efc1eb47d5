"""A grid file → runs in the order of their needs, each done once, whatever fails or is killed on the way."""

from __future__ import annotations

import json
import tomllib
from functools import cache
from itertools import product
from pathlib import Path
from typing import get_args

import pytest
from jsonschema import Draft202012Validator, ValidationError, validate

import faithmeter as fm
from faithmeter import grid
from faithmeter.cli.grid import work
from faithmeter.cli.listing import listing
from faithmeter.cli.progress import RunLines, bars
from faithmeter.config import MeasureConfig, RoarConfig, Strategy, TrainConfig, Validation
from faithmeter.grid import execution
from faithmeter.grid.file import GridFile, StrategyPair
from faithmeter.runs.measured import training_record
from faithmeter.runs.run import current_inputs, input_config
from faithmeter.store.run_store import Busy, Unready
from records import train_result
from traces import manifest_values

GRIDS = Path(__file__).parents[2] / "grids"
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
    assert measure.config.methods == ("grad-l2", "loo-sign")
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


def read(tmp_path: Path, text: str) -> list[grid.Run]:
    (tmp_path / "grid.toml").write_text(text)
    return grid.read(tmp_path / "grid.toml").runs


MISTAKES = {
    'strategies = ["half/both"]\nseeds = [0]\nmodels = ["embedded"]': "no grid option 'tasks'; add it",
    SMALL.replace("seeds = [0, 1]", "seeds = 0"): "seeds is 0; expected a list",
    SMALL.replace("seeds = [0, 1]", "seeds = [true]"): r"seeds\[0\] is True; expected a whole number",
    SMALL.replace("bAbI-1", "bAbI-9"): "unknown task 'bAbI-9'",
    SMALL.replace("none/unmasked", "none"): r"unknown strategies\[1\] 'none'; did you mean 'none/",
    SMALL.replace("loo-sign", "lo-sign"): "unknown method 'lo-sign'; did you mean 'loo-sign'",
    SMALL.replace("epochs = 1", 'epochs = "one"'): r"\[train\]: epochs is 'one'; expected a whole number",
    SMALL.replace("epochs", "epoch"): r"\[train\]: unknown train option 'epoch'; did you mean 'epochs'",
    SMALL.replace("epochs = 1", "seed = 1"): r"\[train\]: seed cannot be set here; expected seeds = ",
    SMALL.replace("epochs = 1", 'validation = "both"'): r"validation cannot be set .* strategies = ",
    SMALL + "[task.RTE]\nepochs = 3": r"unknown task with a table \[task.NAME\] 'RTE'",
    SMALL + "[task]\nbAbI-1 = 3": r"task\[bAbI-1\] is 3; expected a table",
    SMALL + "[task.bAbI-1]\nepochs = -1": r"\[task.bAbI-1\]: epochs is -1; expected at least 0",
    SMALL.replace(
        "limit = 8", "limits = 8"
    ): r"\[measure\]: unknown measure option 'limits'; did you mean 'limit'",
    SMALL.replace("limit = 8", "limit = -8"): r"\[measure\]: limit is -8; expected at least 0",
    SMALL.replace("limit = 8", "step = 200"): r"\[measure\]: step is 200; expected at most 100",
    SMALL.replace('["grad-l2", "loo-sign"]', "[3]"): r"\[measure\]: methods\[0\] is 3; expected text",
    SMALL.replace(
        '["grad-l2", "loo-sign"]', "[]"
    ): r"\[measure\]: methods is \[\]; expected a list of 1 or more",
    SMALL + "[measure.without]\ngrad-l2 = 3": r"\[measure\]: without\[grad-l2\] is 3; expected a list",
    SMALL + '[measure.without]\ngrad-l2 = "bAbI-1"': r"grad-l2\] is 'bAbI-1'; expected a list",
    SMALL
    + '[measure.without]\ngrad-l2 = ["RTE"]': r"\[measure.without\] grad-l2: unknown task of this grid 'RTE'",
    SMALL + '[measure.without]\nbeam = ["bAbI-1"]': "beam: unknown method of this grid 'beam'",
    SMALL + '[measure.without]\nbeem = ["bAbI-1"]': "beem: unknown method 'beem'; did you mean 'beam'",
    SMALL + "methods = [": "is not TOML",
    SMALL.replace("[roar]", "[raor]"): "unknown grid option 'raor'; did you mean 'roar'",
    SMALL.replace('[roar]\nseeds = [1]\nmethods = ["grad-l2"]', "[roar]"): "no roar option 'methods'; add it",
    SMALL.replace("step = 50", "step = 0"): r"\[roar\]: step is 0; expected at least 1",
    SMALL.replace(
        "seeds = [1]", "seeds = [7]"
    ): r"\[roar\]: unknown seed of this grid '7'; expected one of 0, 1",
    "workers = -2\n" + SMALL: "workers is -2; expected at least 1",
    "workers = true\n" + SMALL: "workers is True; expected a whole number",
}


@pytest.mark.parametrize("text", MISTAKES, ids=MISTAKES.values())
def test_mistakes_in_the_file_are_told(tmp_path, text: str) -> None:
    with pytest.raises(fm.InputError, match=rf"grid\.toml.*{MISTAKES[text]}"):
        read(tmp_path, text)


def test_a_task_without_methods_is_not_measured(tmp_path) -> None:
    """No methods at all means the defaults. `beam` takes out every beam, one with options only that one."""
    two = SMALL.replace('["bAbI-1"]', '["bAbI-1", "bAbI-2"]').replace('["grad-l2", "loo-sign"]', "METHODS")
    all_beams = two.replace("METHODS", '["beam(width=2)", "beam"]') + '[measure.without]\nbeam = ["bAbI-2"]'
    measured = [run for run in read(tmp_path, all_beams) if run.config.kind == "measure"]
    assert {(run.trained.task, run.config.methods) for run in measured} == {
        ("bAbI-1", ("beam(width=2)", "beam"))
    }
    one_beam = all_beams.replace("beam = [", '"beam(width=2)" = [')
    measured = [run for run in read(tmp_path, one_beam) if run.trained.task == "bAbI-2"]
    assert {run.config.methods for run in measured if run.config.kind == "measure"} == {("beam",)}


read_inputs = cache(current_inputs)


def result_of(run: grid.Run) -> dict[str, object]:
    if run.config.kind == "measure":
        return manifest_values(run.trained, {})
    inputs = read_inputs(input_config(run.trained))
    own = {"plain": 0.9, "previous": "f"} if run.config.kind == "roar" else {}
    return train_result(splits=inputs["splits"], encoder=inputs["encoder"], **own)


def pretend(store: fm.RunStore, worked: list[str]) -> object:
    """Work that only writes records."""

    def done(run: grid.Run) -> None:
        worked.append(run.name)
        config = run.located(store)
        assert config is not None
        store.put(config, result_of(run))

    return done


@pytest.fixture
def same_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretended records hold no real digests: their inputs count as unchanged."""
    monkeypatch.setattr(execution, "changed_inputs", lambda *_: "")


@pytest.mark.usefixtures("same_inputs")
def test_a_failure_is_recorded_and_the_rest_goes_on(small, tmp_path) -> None:
    store, worked, told = fm.RunStore(tmp_path / "runs"), [], {}
    good = pretend(store, worked)

    def bad(run: grid.Run) -> None:
        if run == small[3]:  # half/both of seed 1, which a measurement needs
            raise ZeroDivisionError("a division")
        good(run)  # type: ignore[operator]

    failed = grid.execute(small, store, bad, told.__setitem__)
    assert failed == {
        small[3]: "ZeroDivisionError: a division",
        small[5]: "needs train bAbI-1 embedded half/both seed 1",
    }
    assert told[small[3]] == "failed"
    assert told[small[5]] == "blocked"
    assert list(told.values()).count("finished") == len(small) - 2
    file = grid.failure_file(small[3], store)
    assert list(file.parent.iterdir()) == [file]
    found = json.loads(file.read_text())
    assert found["error"] == "ZeroDivisionError: a division"
    assert "test_grid.py" in found["traceback"]
    worked.clear()
    assert grid.execute(small, store, good, told.__setitem__) == {}
    assert worked == [small[3].name, small[5].name], "only what was not done"
    assert not file.exists()


@pytest.mark.usefixtures("same_inputs")
def test_a_failure_of_a_run_that_is_done_by_now_is_forgotten(small, tmp_path) -> None:
    store = fm.RunStore(tmp_path / "runs")
    file = grid.failure_file(small[0], store)
    file.parent.mkdir(parents=True)
    file.write_text("{}")
    pretend(store, [])(small[0])  # by another process
    assert grid.execute(small[:1], store, pretend(store, []), lambda *_: None) == {}
    assert not file.exists()


def test_a_failed_run_is_tried_once_in_a_call_and_again_in_the_next(small, tmp_path) -> None:
    store, tried, told = fm.RunStore(tmp_path / "runs"), [], []

    def bad(run: grid.Run) -> None:
        tried.append(run)
        raise ZeroDivisionError

    for call in ("one", "one", "two"):
        failed = grid.execute(small[:1], store, bad, lambda run, outcome: told.append(outcome), call=call)
        assert failed == {small[0]: "ZeroDivisionError: "}
    assert told == ["failed", "skipped", "failed"]
    assert len(tried) == 2


def test_a_full_disk_stops_nothing_but_what_cannot_be_done(small, tmp_path, monkeypatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(grid.execution, "write_json", full)
    failed = grid.execute(small[:2], fm.RunStore(tmp_path / "runs"), full, lambda *_: None)
    assert [*failed] == small[:2]
    assert "traceback could not be written: OSError: [Errno 28] No space left" in failed[small[0]]
    monkeypatch.setattr(fm.RunStore, "lock", full)
    failed = grid.execute(small[:1], fm.RunStore(tmp_path / "runs"), full, lambda *_: None)
    assert failed == {small[0]: "OSError: [Errno 28] No space left on device"}


def test_a_run_that_another_process_has_is_waited_for(small, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(grid.execution, "RETRY_SECONDS", 0.01)
    store, worked, attempts = fm.RunStore(tmp_path / "runs"), [], []
    good = pretend(store, worked)

    def busy_twice(run: grid.Run) -> None:
        attempts.append(run)
        if run == small[0] and attempts.count(run) < 3:
            raise Busy("another process")
        good(run)  # type: ignore[operator]

    told: dict[grid.Run, str] = {}
    assert grid.execute(small, store, busy_twice, told.__setitem__) == {}
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


@pytest.mark.usefixtures("same_inputs")
def test_what_rotted_under_a_run_that_builds_on_it_is_done_again(small, tmp_path) -> None:
    """The record of the training is whole, and only its weights are not: who reads them finds out."""
    store, worked = fm.RunStore(tmp_path / "runs"), []
    good = pretend(store, worked)

    def careful(run: grid.Run) -> None:
        if run.after is not None and store.get(run.after.config) is None:
            raise Unready("put aside just now")
        (store.folder(run.config) / "weights").parent.mkdir(parents=True, exist_ok=True)
        (store.folder(run.config) / "weights").write_text("good")
        good(run)  # type: ignore[operator]

    first = small[:2]
    assert grid.execute(first, store, careful, lambda *_: None) == {}
    (store.folder(small[0].config) / "weights").write_text("evil")
    with pytest.warns(UserWarning, match="weights is not as it was written; put aside"):
        assert grid.execute(small[:3], store, careful, lambda *_: None) == {}
    assert worked == [run.name for run in (small[0], small[1], small[0], small[2])]


def test_a_small_grid_for_real(tmp_path) -> None:
    """Training, measurement and both kinds of ROAR steps on the embedded model, and nothing twice."""
    (tmp_path / "small.toml").write_text(SMALL.replace("[0, 1]", "[1]").replace("limit = 64", "limit = 32"))
    small, store = grid.read(tmp_path / "small.toml").runs, fm.RunStore(tmp_path / "runs")
    with bars() as progress:
        lines = RunLines(progress, len(small), tmp_path / "grid.log")
        failed = grid.execute(small, store, lambda run: work(run, store, lines), lambda *_: None)
        assert failed == {}
        again: list[str] = []
        grid.execute(small, store, again.append, lambda *_: None)
    assert again == []
    frames = store.frames()
    assert len(frames["roar"]) == 2 * 3
    one, other = (rows.sort_values("percent") for _, rows in frames["roar"].groupby("method"))
    assert list(one["value"])[::2] == list(other["value"])[::2], "plain, and wholly erased: the same data"
    assert set(frames["areas"]["method"]) == {"random", "grad-l2", "loo-sign"}
    first = store.results()[0].runs[0].texts.iloc[0]
    words = [first["text"][a:b] for a, b in zip(first["starts"], first["ends"], strict=True)]
    assert "".join(words) == first["text"].replace(" ", "")
    record = training_record(store.folder(small[0].config))
    assert record is not None
    assert record.config == small[0].config


def test_editors_find_the_schema_that_the_program_prints(capsys) -> None:
    listing("schema", "grid")
    assert json.loads(capsys.readouterr().out) == json.loads((GRIDS / "grid.schema.json").read_text())
    for file in GRIDS.rglob("*.toml"):
        place = "./" if file.parent == GRIDS else "../"
        assert file.read_text().startswith(f"#:schema {place}grid.schema.json\n"), "as taplo reads it"
        validate(tomllib.loads(file.read_text()), GridFile.model_json_schema())
    with pytest.raises(ValidationError, match="epoch"):
        validate(tomllib.loads(SMALL.replace("epochs", "epoch")), GridFile.model_json_schema())


def test_strategies_of_a_grid_are_all_those_of_a_training() -> None:
    pairs = product(get_args(Strategy), get_args(Validation))
    assert list(get_args(StrategyPair)) == ["/".join(pair) for pair in pairs]


@pytest.mark.parametrize("name", ["task", "record", "train", "measure"])
def test_other_schemas_are_printed(capsys, name: str) -> None:
    listing("schema", name)
    Draft202012Validator.check_schema(json.loads(capsys.readouterr().out))
