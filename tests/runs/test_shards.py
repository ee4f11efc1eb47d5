"""One measurement by several workers: traces and result are those of one process, whatever is lost."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

import faithmeter as fm
import fake_ray
from faithmeter.config import MeasureConfig
from faithmeter.models import loading
from faithmeter.runs import cluster, shards
from faithmeter.runs.cluster import LOSSES
from faithmeter.runs.join import compute_here
from faithmeter.runs.measurements import Conduct, measure_checkpoint
from faithmeter.runs.shards import Shared, Source, compute_on_ray
from faithmeter.store.run_store import RunStore

TEXTS = 70
"""More than one slice."""


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = RunStore(tmp_path_factory.mktemp("shards"))
    config = fm.TrainConfig(limit=32, epochs=1)
    fm.train(config, store)
    return store.folder(config)


def measure(checkpoint: Path, store: Path, *, shared: bool) -> pd.DataFrame:
    config = MeasureConfig(methods=("grad-l2",), limit=TEXTS, step=50)
    compute = partial(compute_on_ray, Source(str(checkpoint))) if shared else compute_here
    return measure_checkpoint(checkpoint, config, RunStore(store), conduct=Conduct(compute=compute)).frame


def test_workers_give_the_result_of_one_process_even_if_they_are_lost(checkpoint, tmp_path, monkeypatch):
    whole = measure(checkpoint, tmp_path / "one", shared=False)
    calls: list[str] = []

    def lost(function: Any, _: object) -> bool:
        calls.append(function.__name__)
        return calls.count("erase_slice") in (1, 2) and calls[-1] == "erase_slice"  # the first slice, twice

    fake_ray.install(monkeypatch, lost=lost)
    shared = measure(checkpoint, tmp_path / "many", shared=True)
    pd.testing.assert_frame_equal(whole, shared, check_exact=True)
    assert calls.count("erase_slice") == 4, "two slices, and one of them twice again"
    names = [
        sorted(path.name for path in tmp_path.glob(f"{name}/traces/*/grad-l2-*/[0-9]*.parquet"))
        for name in ("one", "many")
    ]
    assert names[0] == names[1] == ["0-70.parquet"]


def test_slices_that_are_there_are_not_computed_again(checkpoint, tmp_path, monkeypatch) -> None:
    measure(checkpoint, tmp_path / "runs", shared=False)
    for file in tmp_path.glob("runs/traces/*/grad-l2-*/0-70.parquet"):
        file.unlink()
    calls: list[str] = []
    fake_ray.install(monkeypatch, lost=lambda function, _: calls.append(function.__name__) is not None)
    measure(checkpoint, tmp_path / "runs", shared=True)
    assert calls.count("erase_slice") == 2, "one method on two slices"


def test_a_worker_loads_the_model_once(checkpoint, tmp_path, monkeypatch) -> None:
    fake_ray.install(monkeypatch)
    loaded: list[Shared] = []
    monkeypatch.setattr(
        Shared, "load", lambda shared, load=Shared.load: (loaded.append(shared), load(shared))[1]
    )
    measure(checkpoint, tmp_path / "runs", shared=True)
    measure(checkpoint, tmp_path / "again", shared=True)
    assert len(loaded) == 2, "one for each measurement, not for each slice"


def test_a_slice_that_ends_every_worker_is_told(checkpoint, tmp_path, monkeypatch) -> None:
    fake_ray.install(monkeypatch, lost=lambda function, _: function.__name__ == "erase_slice")
    with pytest.raises(
        fm.InputError, match=rf"text \d+ ended {LOSSES + 1} workers: the worker died; give each more memory"
    ):
        measure(checkpoint, tmp_path / "runs", shared=True)


def test_a_worker_that_cannot_load_the_model_is_told_at_once(checkpoint, tmp_path, monkeypatch) -> None:
    def load(*_: object, **__: object) -> None:
        raise fm.InputError("device is cuda; expected cpu")

    calls: list[str] = []
    fake_ray.install(monkeypatch, lost=lambda function, _: calls.append(function.__name__) is not None)
    monkeypatch.setattr(loading, "load", load)
    source = Source("model")
    with pytest.raises(fm.InputError, match=r"^a worker cannot load model: device is cuda; expected cpu$"):
        [*compute_on_ray(source, work(), parts(1), lambda *_: None)]
    assert calls.count("erase_slice") == 1


def test_another_model_on_a_node_is_told(checkpoint, monkeypatch) -> None:
    fake_ray.install(monkeypatch)
    with pytest.raises(
        fm.InputError, match=r"has the fingerprint \w+ on a node, mine here; copy the checkpoint"
    ):
        [*compute_on_ray(Source(str(checkpoint)), work(), parts(1), lambda *_: None)]


def test_waiting_for_a_node_is_remarked_once(monkeypatch) -> None:
    ray = fake_ray.install(monkeypatch, cpus=0)
    clock, remarks = [0.0], list[str]()

    def wait(refs: list[Any], timeout: float) -> tuple[list[Any], list[Any]]:
        clock[0] += timeout
        return (refs, []) if clock[0] > 3 * cluster.REMARK_SECONDS else ([], refs)

    monkeypatch.setattr(ray, "wait", wait)
    monkeypatch.setattr(cluster.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(shards, "erase_slice", lambda shared, part: {})
    assert len([*compute_on_ray(Source("model"), work(), parts(1), lambda *_: None, remarks.append)]) == 1
    assert remarks == [
        "no node of the cluster can hold a worker, which needs 1 CPUs and 0 GPUs; waiting for one"
    ]


def work() -> Any:
    """What slices share; only the fingerprint of the model is asked here."""
    return SimpleNamespace(evaluator=SimpleNamespace(fingerprint="mine"), methods={})


def parts(count: int) -> list[Any]:
    return [SimpleNamespace(batch=[number]) for number in range(count)]
