"""A first explanation loads transformers' models without what only training and compilation need."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from faithmeter.cli import app, lean
from faithmeter.errors import InputError
from toy import tiny

UNUSED = ["accelerate", "altair", "datasets", "pandas", "scipy.special", "sklearn", "torch._dynamo"]
UNUSED += ["torch._inductor", "torch.distributed.tensor"]
SESSION = f"""
import sys
from faithmeter.cli import main

sys.argv = ["faithmeter", "explain", "model", "the film was good", "--json", "--no-verify"]
try:
    main()
except SystemExit as stop:
    assert not stop.code, stop.code
print([name for name in {UNUSED} if name in sys.modules])
import torch  # afterwards everything is there
assert torch.compile(lambda x: x + 1, backend="eager")(torch.ones(1)) == 2
import transformers
assert transformers.utils.is_torch_distributed_available() == torch.distributed.is_available()
"""


def save(folder: Path) -> None:
    clf = tiny()
    clf.model.save_pretrained(folder)
    clf.tokenizer.save_pretrained(folder)


def test_an_explanation_is_the_same_without_what_it_does_not_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path / "model")
    done = subprocess.run(
        [sys.executable, "-c", SESSION], capture_output=True, text=True, cwd=tmp_path, env={**os.environ}
    )
    assert done.returncode == 0, done.stderr
    explanation, loaded = done.stdout.splitlines()
    assert loaded == "[]"
    import torch._dynamo  # noqa: F401  here, the model is loaded with everything

    monkeypatch.chdir(tmp_path)
    full = CliRunner().invoke(app, ["explain", "model", "the film was good", "--json", "--no-verify"])
    assert json.loads(explanation) == json.loads(full.stdout)


def test_a_model_that_needs_the_compiler_is_loaded_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def load(checkpoint: str, **_: Any) -> str:
        calls.append(type(sys.modules[lean.COMPILER]).__name__ if lean.COMPILER in sys.modules else "none")
        if len(calls) == 1:
            raise TypeError("the stand-in has no such thing")
        return checkpoint

    monkeypatch.setattr("faithmeter.models.loading.load", load)
    for name in [name for name in sys.modules if name.startswith(lean.COMPILER)]:
        monkeypatch.delitem(sys.modules, name)
    assert lean.load_lean("model") == "model"
    assert calls == ["_Compiler", "none"]


def test_an_error_of_the_user_is_raised_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no folder"):
        lean.load_lean(str(tmp_path / "nowhere" / "model"))
