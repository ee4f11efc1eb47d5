"""Every example runs, and so does the README's."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest

import faithmeter as fm
from faithmeter.methods import METHODS

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> Path:
    store = fm.RunStore(tmp_path_factory.mktemp("runs"))
    config = fm.TrainConfig(limit=64, epochs=1, learning_rate=1e-3)
    fm.train(config, store)
    return store.folder(config)


def test_measure_one_sentence(checkpoint: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "argv", ["", str(checkpoint), "Mary went to the garden.", "Where is Mary?"])
    runpy.run_path(str(ROOT / "examples/measure_one_sentence.py"))
    assert "random (mean of 50)" in capsys.readouterr().out


def test_pipeline(checkpoint: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "argv", ["", str(checkpoint), "Mary went to the garden.", "Where is Mary?"])
    runpy.run_path(str(ROOT / "examples/pipeline.py"))
    assert "p-value" in capsys.readouterr().out


def test_own_method(checkpoint: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "argv", ["", str(checkpoint)])
    runpy.run_path(str(ROOT / "examples/own_method.py"), run_name="__main__")
    assert "word-length(power=2)   ACU" in capsys.readouterr().out
    del METHODS["word-length"]


@pytest.mark.slow
def test_other_explainers(checkpoint: Path, monkeypatch, capsys) -> None:
    for library in ("captum", "shap", "interpreto"):
        pytest.importorskip(library)
    monkeypatch.setattr(sys, "argv", ["", str(checkpoint)])
    result = runpy.run_path(str(ROOT / "examples/other_explainers.py"))["result"]
    printed = capsys.readouterr().out
    for name in ("captum-lig", "shap-permutation", "interpreto-occlusion", "attention-rollout", "capitals"):
        assert name in printed
    for name in ("captum-occlusion", "interpreto-occlusion"):
        assert result.acu(name) == pytest.approx(result.acu("loo-sign"), abs=1e-6)


def test_own_task(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "argv", ["", str(tmp_path)])
    runpy.run_path(str(ROOT / "examples/own_task.py"))
    assert "masked 100: accuracy" in capsys.readouterr().out


def test_the_example_of_the_readme(checkpoint: Path, monkeypatch, capsys) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    [code] = [block for block in blocks if "fm.erase(" in block]
    short = re.sub(r'fm\.load\(".*?"\)', f"fm.load({str(checkpoint)!r})", code).replace(
        "limit=100", "limit=10"
    )
    exec(compile(short, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "100 [CLS] [MASK]" in printed
    assert "grad-l2" in printed
    assert "Yes: " in printed or "No: " in printed, "the answer for one text"
