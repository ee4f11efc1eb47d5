"""One measurement by several actors: traces and result are those of one process, whatever is lost."""

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
from faithmeter.runs import cluster, shards
from faithmeter.runs.join import compute_here
from faithmeter.runs.measurements import Conduct, measure_checkpoint
from faithmeter.runs.shards import MAX_LOSSES, Source, compute_on_ray
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


def test_actors_give_the_result_of_one_process_even_if_they_are_lost(checkpoint, tmp_path, monkeypatch):
    whole = measure(checkpoint, tmp_path / "one", shared=False)
    calls: list[str] = []

    def lost(method: object, _: object) -> bool:
        calls.append(getattr(method, "__name__", ""))
        return calls.count("erase") == 1 and calls[-1] == "erase"  # the first slice, once

    fake_ray.install(monkeypatch, lost=lost)
    shared = measure(checkpoint, tmp_path / "many", shared=True)
    pd.testing.assert_frame_equal(whole, shared, check_exact=True)
    assert calls.count("erase") == 3, "two slices, and one of them again"
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
    fake_ray.install(monkeypatch, lost=lambda method, _: calls.append(method.__name__) is not None)
    measure(checkpoint, tmp_path / "runs", shared=True)
    assert calls.count("erase") == 2, "one method on two slices"


def test_a_slice_that_ends_every_actor_is_told(checkpoint, tmp_path, monkeypatch) -> None:
    fake_ray.install(monkeypatch, lost=lambda method, _: method.__name__ == "erase")
    with pytest.raises(
        fm.InputError, match=rf"text \d+ ended {MAX_LOSSES + 1} workers: the actor died; give"
    ):
        measure(checkpoint, tmp_path / "runs", shared=True)


class OutOfMemoryError(fake_ray.RayError):
    """As Ray's: the error of a worker that was ended, but no RayActorError."""


class CreationError(fake_ray.RayActorError):
    actor_init_failed = True


def failing(errors: list[Exception]) -> Any:
    """An actor's loading that fails with each of the errors, one after the other, and then succeeds."""

    def ready() -> str:
        if errors:
            raise errors.pop(0)
        return "same"

    def spawn() -> SimpleNamespace:
        call = SimpleNamespace(remote=lambda: fake_ray.Ref(ready, ()))
        erase = SimpleNamespace(remote=lambda part: fake_ray.Ref(lambda: "frame", ()))
        return SimpleNamespace(ready=call, erase=erase)

    return spawn


def parts(count: int) -> list[Any]:
    return [SimpleNamespace(batch=SimpleNamespace(index=[number])) for number in range(count)]


def test_any_loss_of_an_actor_is_repaired(monkeypatch) -> None:
    fake_ray.install(monkeypatch)
    spawn = failing([OutOfMemoryError("memory monitor"), fake_ray.RayError("object lost")])
    erased = [*shards._erased(spawn, parts(3), Source("model"), "same", print)]
    assert sorted(part.batch.index[0] for part, _ in erased) == [0, 1, 2]


def test_each_place_may_lose_actors_while_it_loads_the_model(monkeypatch) -> None:
    fake_ray.install(monkeypatch, cpus=4)
    ray = fake_ray.sys.modules["ray"]
    monkeypatch.setattr(ray, "wait", lambda refs, timeout: (refs, []))
    spawn = failing([OutOfMemoryError("memory monitor") for _ in range(4 * MAX_LOSSES)])
    assert len([*shards._erased(spawn, parts(4), Source("model"), "same", print)]) == 4
    spawn = failing([OutOfMemoryError("memory monitor") for _ in range(4 * MAX_LOSSES + 1)])
    with pytest.raises(fm.InputError, match="loading the model ended 13 workers: memory monitor; give each"):
        [*shards._erased(spawn, parts(4), Source("model"), "same", print)]


def test_an_actor_that_cannot_load_the_model_is_told_at_once(monkeypatch) -> None:
    fake_ray.install(monkeypatch)
    errors: list[Exception] = [
        CreationError(
            "The actor died\n  File ...\nfaithmeter.errors.InputError: device is cuda; expected cpu"
        )
        for _ in range(9)
    ]
    with pytest.raises(fm.InputError, match=r"^a worker cannot load model: device is cuda; expected cpu$"):
        [*shards._erased(failing(errors), parts(1), Source("model"), "same", print)]
    assert len(errors) == 8


def test_waiting_for_a_node_is_remarked_once(monkeypatch) -> None:
    ray = fake_ray.install(monkeypatch, cpus=0)
    clock, remarks = [0.0], list[str]()

    def wait(refs: list[Any], timeout: float) -> tuple[list[Any], list[Any]]:
        clock[0] += timeout
        return (refs, []) if clock[0] > 3 * cluster.REMARK_SECONDS else ([], refs)

    monkeypatch.setattr(ray, "wait", wait)
    monkeypatch.setattr(cluster.time, "monotonic", lambda: clock[0])
    assert len([*shards._erased(failing([]), parts(1), Source("model"), "same", remarks.append)]) == 1
    assert remarks == [
        "no node of the cluster can hold a worker, which needs 1 CPUs and 0 GPUs; waiting for one"
    ]
