"""One measurement by several actors: the chunks and the result are those of one process, whatever is lost."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import faithmeter as fm
import fake_ray
from faithmeter.config import MeasureConfig
from faithmeter.runs import run
from faithmeter.runs.shards import MAX_LOSSES, Source, fill_chunks
from faithmeter.runs.store import RunStore

TEXTS = 70
"""More than one chunk."""


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = RunStore(tmp_path_factory.mktemp("shards"))
    config = fm.TrainConfig(limit=32, epochs=1)
    fm.train(config, store)
    return store.folder(config)


def measure(checkpoint: Path, store: Path, *, shared: bool) -> pd.DataFrame:
    config = MeasureConfig(methods=("grad-l2",), limit=TEXTS, step=50)
    fill = (lambda *chunks: fill_chunks(Source(str(checkpoint)), *chunks)) if shared else None
    return run.measure(checkpoint, config, RunStore(store), fill=fill).frame


def test_actors_give_the_result_of_one_process_even_if_they_are_lost(checkpoint, tmp_path, monkeypatch):
    whole = measure(checkpoint, tmp_path / "one", shared=False)
    calls: list[str] = []

    def lost(method: object, _: object) -> bool:
        calls.append(getattr(method, "__name__", ""))
        return calls.count("erase") == 1 and calls[-1] == "erase"  # the first chunk, once

    fake_ray.install(monkeypatch, lost=lost)
    shared = measure(checkpoint, tmp_path / "many", shared=True)
    pd.testing.assert_frame_equal(whole, shared, check_exact=True)
    assert calls.count("erase") == 3, "two chunks, and one of them again"
    names = [
        sorted(path.name for path in tmp_path.glob(f"{name}/chunks/*/*.parquet")) for name in ("one", "many")
    ]
    assert names[0] == names[1] == ["0-63.parquet", "64-69.parquet"]


def test_chunks_that_are_there_are_not_computed_again(checkpoint, tmp_path, monkeypatch) -> None:
    measure(checkpoint, tmp_path / "runs", shared=False)
    (record,) = tmp_path.glob("runs/measure-*/record.json")
    record.unlink()
    next(tmp_path.glob("runs/chunks/*/64-69.parquet")).unlink()
    calls: list[str] = []
    fake_ray.install(monkeypatch, lost=lambda method, _: calls.append(method.__name__) is not None)
    measure(checkpoint, tmp_path / "runs", shared=True)
    assert calls.count("erase") == 1


def test_a_chunk_that_ends_every_actor_is_told(checkpoint, tmp_path, monkeypatch) -> None:
    fake_ray.install(monkeypatch, lost=lambda method, _: method.__name__ == "erase")
    with pytest.raises(
        fm.InputError, match=rf"text \d+ ended {MAX_LOSSES + 1} workers: the actor died; give"
    ):
        measure(checkpoint, tmp_path / "runs", shared=True)
