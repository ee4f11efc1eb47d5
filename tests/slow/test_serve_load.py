"""The real server: many clients for half a minute, a long fuzzing of its API, and how it stops."""

from __future__ import annotations

import asyncio
import itertools
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil
import pytest

import faithmeter as fm
from faithmeter.serve import Limits
from faithmeter.serve.app import create_app
from serving import OPERATIONS, fuzz, served

pytestmark = pytest.mark.slow

CLIENTS, SECONDS = 50, 30
AT_ONCE = 0.15
GROWTH = 2**28
"""Bytes: what two lanes may remember, and as much again."""


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The embedded model with a classifier for the stories on top: as large as that of the demo."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    embedded, folder = Path(fm.__file__).parent / "models/embedded", tmp_path_factory.mktemp("model")
    labels = dict(enumerate(fm.task("bAbI-1").labels))
    AutoModelForSequenceClassification.from_pretrained(embedded, id2label=labels).save_pretrained(folder)
    AutoTokenizer.from_pretrained(embedded).save_pretrained(folder)
    return folder


@contextmanager
def server(checkpoint: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    call = [sys.executable, "-m", "faithmeter", "serve", checkpoint, "--task", "bAbI-1", "--port", "0"]
    with subprocess.Popen(call, stderr=subprocess.PIPE, text=True) as process:
        try:
            said = ""
            while not (found := re.search(r"http://localhost:\d+", said)):
                line = process.stderr.readline()
                assert line, f"the server ended: {said}"
                said += line
            yield found[0], process
        finally:
            process.kill()


async def client(address: str, number: int, until: float, seconds: list[tuple[str, float]]) -> None:
    rng = random.Random(number)
    places = ["garden", "office", "kitchen"]
    async with httpx.AsyncClient(base_url=address, timeout=60) as http:
        while time.monotonic() < until:
            text = " ".join(f"Mary went to the {rng.choice(places)}." for _ in range(rng.randint(1, 6)))
            body: dict[str, Any] = {"text": text, "pair": "Where is Mary?"}
            what = rng.choices(["probe", "explain", "measure"], [90, 8, 2])[0]
            if what == "probe":
                body["masked"] = rng.sample(range(5), 2)
            begun = time.perf_counter()
            response = await http.post(f"/api/{what}", json=body)
            seconds.append((what, time.perf_counter() - begun))
            assert response.status_code == 200, response.text


def test_fifty_clients_for_half_a_minute(checkpoint: Path) -> None:
    async def all_clients(address: str) -> list[tuple[str, float]]:
        seconds: list[tuple[str, float]] = []
        until = time.monotonic() + SECONDS
        await asyncio.gather(*(client(address, number, until, seconds) for number in range(CLIENTS)))
        return seconds

    with server(checkpoint) as (address, process):
        memory = psutil.Process(process.pid).memory_info
        before = memory().rss
        seconds = asyncio.run(all_clients(address))
        after = memory().rss
    for what in ("probe", "explain", "measure"):
        found = [duration for name, duration in seconds if name == what]
        print(what, len(found), "p50, p95:", *np.quantile(found, [0.5, 0.95]).round(3))
    print("resident MB before and after:", before // 2**20, after // 2**20)
    assert len(seconds) > CLIENTS
    assert after - before < GROWTH


def test_masking_a_word_is_answered_at_once(checkpoint: Path) -> None:
    """The median, as others may be using this machine as well."""
    text = "Mary went to the garden. John moved to the office. Sandra went back to the kitchen."
    with server(checkpoint) as (address, _), httpx.Client(base_url=address, timeout=60) as http:
        seconds = []
        for masks in itertools.islice(itertools.combinations(range(18), 3), 200):
            begun = time.perf_counter()
            http.post("/api/probe", json={"text": text, "masked": masks}).raise_for_status()
            seconds.append(time.perf_counter() - begun)
    print("masking a word, p50, p95:", *np.quantile(seconds, [0.5, 0.95]).round(4))
    assert np.median(seconds) < AT_ONCE


def test_ctrl_c_stops_it_at_once_though_work_is_going_on(checkpoint: Path) -> None:
    with server(checkpoint) as (address, process):
        body = {"text": "Mary went to the garden. " * 15, "methods": ["beam"]}
        stream = {"Accept": "application/x-ndjson"}
        with httpx.stream("POST", f"{address}/api/measure", json=body, headers=stream, timeout=60) as answer:
            next(answer.iter_lines())
            begun = time.monotonic()
            process.send_signal(signal.SIGINT)
            rest = process.stderr.read()
        assert process.wait(timeout=20) == 0
        assert time.monotonic() - begun < 15
        assert "Traceback" not in rest
        assert rest.strip().endswith("stopped")


@pytest.mark.parametrize(("path", "verb"), OPERATIONS)
def test_long_fuzzing_finds_no_server_error(path: str, verb: str) -> None:
    app = create_app(served(), limits=Limits(max_words=60, max_evaluations=2000), hosts=["testserver"])
    for mode in ("positive", "negative") if verb == "POST" else ("positive",):
        fuzz(app, path, verb, mode, examples=200)
    app.state.admission.close()
