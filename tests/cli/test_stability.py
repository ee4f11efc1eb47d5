"""`faithmeter check --stability`: rank agreement by method, and methods that rank by rounding are named."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import faithmeter as fm
from faithmeter.methods import METHODS, default_methods
from toy import WORDS, tiny


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stability")
    clf = tiny(dtype=torch.float32, labels=2)
    clf.model.save_pretrained(folder / "model")
    clf.tokenizer.save_pretrained(folder / "model")
    rows = [f"{' '.join(WORDS[n % 9 : n % 9 + 6])},LABEL_{n % 2}" for n in range(200)]
    (folder / "own.csv").write_text("\n".join(["text,label", *rows]))
    (folder / "own.toml").write_text('data = "own.csv"\ntext = "text"\nlabel = "label"\n')
    return folder


@pytest.fixture
def noise() -> Iterator[str]:
    """Register a method that ranks by the last bits of the embeddings."""

    @fm.method("noise")
    def noise(clf, batch, labels):
        """Score tokens by rounding error."""
        return (clf.embed(batch.input_ids).detach().sum(dim=-1) * 1e7).frac().double()

    yield "noise"
    METHODS.pop("noise")


def test_stable_methods_agree_and_noise_is_named(faithmeter, folder: Path, noise: str) -> None:
    command = ("check", folder / "model", "--task", folder / "own.toml", "--stability", "--limit", 6)
    outcome = faithmeter(*command, "-m", "loo-sign", "-m", noise)
    assert outcome.code == 0
    assert "rank agreement on 6 texts" in outcome.out
    assert "noise: its ranking is rounding noise (rank agreement" in outcome.err
    assert "loo-sign: its" not in outcome.err
    found = json.loads(faithmeter(*command, "-m", "loo-sign", "-m", noise, "--json").out)
    assert found["texts"] == 6
    assert {name: values["stable"] for name, values in found["methods"].items()} == {
        "loo-sign": True,
        noise: False,
    }
    assert set(found["methods"]["loo-sign"]["agreement"]) == {"float64", "batch size", "threads"}


def test_all_but_expensive_methods_are_compared_by_default(faithmeter, folder: Path) -> None:
    outcome = faithmeter(
        "check", folder / "model", "--task", folder / "own.toml", "--stability", "--limit", 2, "--json"
    )
    assert set(json.loads(outcome.out)["methods"]) == set(default_methods()) - {"random", "beam"}
    assert "beam is left out" in outcome.err


def test_methods_go_with_stability_only(faithmeter, folder: Path) -> None:
    outcome = faithmeter("check", folder / "model", "--task", folder / "own.toml", "-m", "loo-sign")
    assert outcome.code == 2
    assert "--method loo-sign goes with --stability" in outcome.err
