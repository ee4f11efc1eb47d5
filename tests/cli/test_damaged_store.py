"""Stores that were damaged, or written by another version, at the verbs that read them."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import RobertaForSequenceClassification as Model

import faithmeter as package
from faithmeter.store import identity, run_store
from toy import WORDS, tiny

COLUMNS = ("--text", "review", "--label", "stars")
MEASURE = ("-m", "grad-l2", "--limit", "12", "--json")


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store of a training and its measurement."""
    from faithmeter.cli import measure as measuring
    from faithmeter.cli import train as training
    from faithmeter.config import MeasureConfig, TrainConfig

    folder, rng = tmp_path_factory.mktemp("damaged") / "pristine", random.Random(0)
    clf = tiny(dtype=torch.float32, labels=2)
    clf.model.save_pretrained(folder / "model")
    clf.tokenizer.save_pretrained(folder / "model")
    rows = (f"{' '.join(rng.choices(WORDS, k=6))},{'ab'[number % 2]}" for number in range(220))
    (folder / "reviews.csv").write_text("\n".join(["review,stars", *rows]))
    data = {"data": str(folder / "reviews.csv"), "text": "review", "label": "stars"}
    config = TrainConfig(**data, model=str(folder / "model"), epochs=1, limit=40)
    training.run(config, folder / "runs")
    [checkpoint] = folder.glob("runs/train-*")
    measuring.run(str(checkpoint), MeasureConfig(methods=("grad-l2",), limit=12), folder / "runs", None)
    return folder


@pytest.fixture
def checkpoint(pristine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The checkpoint in a copy of the store, which may be damaged, beneath the working directory."""
    shutil.copytree(pristine / "runs", tmp_path / "runs")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    [checkpoint] = Path().glob("runs/train-*")
    return checkpoint


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def numbers(result: dict[str, Any]) -> Any:
    return {name: (one["curve"], one["p"]) for name, one in result["methods"].items()}


@pytest.mark.parametrize("kind", ["train", "measure"])
def test_a_list_that_lacks_a_damaged_run_says_so_each_time(faithmeter, checkpoint: Path, kind: str) -> None:
    whole = json.loads(faithmeter("list", "runs", "--json").out)
    [folder] = Path().glob(f"runs/{kind}-*")
    record = folder / {"train": "record.json", "measure": "manifest.json"}[kind]
    flip(record)
    first = faithmeter("list", "runs", "--json")
    assert "warning: " in first.err
    assert str(record) in first.err
    for _ in range(2):
        again = faithmeter("list", "runs", "--json")
        assert again.out == first.out
        assert "warning: runs/quarantine holds 1 damaged files or runs, which are not listed" in again.err
    listed = {run["folder"] for run in json.loads(first.out)}
    assert listed == {run["folder"] for run in whole} - {str(record.parent)}


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "config.json", "record.json"])
@pytest.mark.parametrize("verb", ["serve", "measure", "explain"])
def test_a_damaged_checkpoint_is_refused(
    faithmeter, checkpoint: Path, monkeypatch: pytest.MonkeyPatch, verb: str, name: str
) -> None:
    monkeypatch.setattr("faithmeter.serve.server.run_server", lambda *_: pytest.fail("it was served"))
    flip(checkpoint / name)
    more = {"serve": ("--port", 0), "measure": MEASURE, "explain": ("the film",)}[verb]
    outcome = faithmeter(verb, checkpoint, *more)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.splitlines()[-1].startswith("error: ")
    # a flipped bit in a record may hit the syntax of JSON, which is another reason to refuse it
    reasons = ("is not as it was written", "is not readable")
    assert any(f"{checkpoint / name} {reason}" in outcome.err for reason in reasons)


def test_a_damaged_check_is_fitted_again_for_the_page(
    faithmeter, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[Any] = []
    monkeypatch.setattr("faithmeter.serve.server.run_server", lambda app, _: served.append(app))
    assert faithmeter("serve", checkpoint, "--port", 0).code == 0
    [test] = checkpoint.glob("masf-crossfit-*")
    flip(test)
    outcome = faithmeter("serve", checkpoint, "--port", 0)
    assert outcome.code == 0, outcome.err
    assert "warning: " in outcome.err
    assert "it is not used" in outcome.err
    before, after = (app.state.admission.model.tests["crossfit"] for app in served)
    assert (before.statistics_ == after.statistics_).all()
    for app in served:
        app.state.admission.close()


def test_a_measurement_under_way_does_not_go_on_with_a_damaged_checkpoint(
    faithmeter, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = numbers(json.loads(faithmeter("measure", checkpoint, *MEASURE).out))
    more = ("-m", "loo-sign", *MEASURE)
    forward, calls = Model.forward, iter(range(3))

    def interrupt(self: Model, *values: Any, **options: Any) -> Any:
        if next(calls, None) is None:
            raise KeyboardInterrupt
        return forward(self, *values, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Model, "forward", interrupt)
        assert faithmeter("measure", checkpoint, *more).code == 130
    shutil.copytree(checkpoint, "copy")
    flip(checkpoint / "model.safetensors")
    refused = faithmeter("measure", checkpoint, *more)
    assert refused.code == 2
    assert "model.safetensors is not as it was written" in refused.err
    shutil.copytree("copy", checkpoint)
    resumed = numbers(json.loads(faithmeter("measure", checkpoint, *more).out))
    assert {name: resumed[name] for name in whole} == whole


@pytest.fixture
def count(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Return a function that tells how many batches were evaluated since it was called last."""
    evaluated = 0
    forward = Model.forward

    def counted(self: Model, *values: Any, **options: Any) -> Any:
        nonlocal evaluated
        evaluated += 1
        return forward(self, *values, **options)

    def since() -> int:
        nonlocal evaluated
        evaluated, before = 0, evaluated
        return before

    monkeypatch.setattr(Model, "forward", counted)
    return since


def test_a_machine_with_other_packages_reads_what_is_there(
    faithmeter, checkpoint: Path, monkeypatch: pytest.MonkeyPatch, count: Callable[[], int]
) -> None:
    first = faithmeter("measure", checkpoint, *MEASURE)
    count()
    others = {"versions": {"torch": "99.0"}, "python": "9.9"}
    monkeypatch.setattr(run_store, "environment", lambda: others)
    again = faithmeter("measure", checkpoint, *MEASURE)
    assert numbers(json.loads(again.out)) == numbers(json.loads(first.out))
    assert count() == 0, "no text is read again"
    [manifest] = Path().glob("runs/measure-*/manifest.json")
    assert "99.0" not in manifest.read_text(), "it tells what made the numbers"


def test_another_version_of_faithmeter_measures_anew(
    faithmeter, checkpoint: Path, monkeypatch: pytest.MonkeyPatch, count: Callable[[], int]
) -> None:
    """Its methods may do something else, so traces of the old one must not answer for it."""
    first = faithmeter("measure", checkpoint, *MEASURE)
    count()
    monkeypatch.setattr(package, "__version__", "99.0", raising=False)
    again = faithmeter("measure", checkpoint, *MEASURE)
    assert count() > 0
    assert numbers(json.loads(again.out)) == numbers(json.loads(first.out))


def test_another_format_of_traces_is_measured_anew(
    faithmeter, checkpoint: Path, monkeypatch: pytest.MonkeyPatch, count: Callable[[], int]
) -> None:
    first = faithmeter("measure", checkpoint, *MEASURE)
    count()
    monkeypatch.setattr(identity, "TRACE_FORMAT", identity.TRACE_FORMAT + 1)
    again = faithmeter("measure", checkpoint, *MEASURE)
    assert again.code == 0, again.err
    assert count() > 0
    assert numbers(json.loads(again.out)) == numbers(json.loads(first.out))


def test_a_record_of_another_format_is_refused_and_left_out_of_lists(faithmeter, checkpoint: Path) -> None:
    from faithmeter.files import write_sealed_json

    record = checkpoint / "record.json"
    write_sealed_json(record, {**json.loads(record.read_text()), "format": 99})
    for verb, more in (("measure", MEASURE), ("serve", ("--port", 0)), ("check", ())):
        outcome = faithmeter(verb, checkpoint, *more)
        assert (outcome.code, outcome.out) == (2, "")
        assert "this version of faithmeter reads format" in outcome.err.splitlines()[-1]
    for _ in range(2):
        listed = faithmeter("list", "runs", "--json")
        assert f"{record} is a record of" in listed.err
        assert str(checkpoint) not in {run["folder"] for run in json.loads(listed.out)}
