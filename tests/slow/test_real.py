"""A real encoder on a small real TSV, through the verbs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
SHARED = Path(os.environ.get("FAITHMETER_SHARED", Path(__file__).parents[3] / "shared"))
GRANITE = SHARED / "models" / "granite-embedding-30m-english-roberta"


def faithmeter(*arguments: object) -> str:
    call = [sys.executable, "-m", "faithmeter", *map(str, arguments)]
    return subprocess.run(call, capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(not GRANITE.exists(), reason=f"needs the encoder in {GRANITE}; set FAITHMETER_SHARED")
def test_granite_trains_on_a_small_tsv_and_is_measured(tmp_path) -> None:
    lines = (SHARED / "data" / "SST-2" / "train.tsv").read_text(encoding="utf-8").splitlines()
    (tmp_path / "small.tsv").write_text("\n".join(lines[:401]), encoding="utf-8")
    own = ("--data", tmp_path / "small.tsv", "--text", "sentence", "--label", "label")
    runs = ("-o", tmp_path / "runs")
    record = json.loads(faithmeter("train", *own, "--model", GRANITE, "--epochs", 2, *runs, "--json"))
    assert record["rows"] == {"train": 320, "validation": 40, "test": 40}
    assert record["epochs"][1]["train_loss"] < record["epochs"][0]["train_loss"]
    checkpoint = next((tmp_path / "runs").glob("train-*"))
    measured = json.loads(faithmeter("measure", checkpoint, "-m", "loo-sign", "--limit", 20, *runs, "--json"))
    assert set(measured["methods"]) == {"random", "loo-sign"}
    found = json.loads(faithmeter("explain", checkpoint, "an unforgettable film", "--json"))
    assert [word["text"] for word in found[0]["words"]] == ["an", "unforgettable", "film"]
