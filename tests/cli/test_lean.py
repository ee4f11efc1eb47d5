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
from faithmeter.models import loading
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


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder like that of a model, in a process that has not imported the compiler."""
    (tmp_path / "config.json").touch()
    for name in [name for name in sys.modules if name.startswith(lean.COMPILER)]:
        monkeypatch.delitem(sys.modules, name)
    return tmp_path


def watch_loads(monkeypatch: pytest.MonkeyPatch, *failures: Exception) -> list[bool]:
    """Record whether each load met the stand-in; the first ones fail as `load` does."""
    calls: list[bool] = []

    def load(checkpoint: str, **_: Any) -> str:
        calls.append(lean.COMPILER in sys.modules)
        if len(calls) <= len(failures):
            with loading.reading("model", checkpoint):
                raise failures[len(calls) - 1]
        return checkpoint

    monkeypatch.setattr(loading, "load", load)
    return calls


@pytest.mark.parametrize("failure", [TypeError("no such thing"), InputError("no such thing")])
def test_a_model_that_fails_without_the_compiler_is_loaded_in_full(
    folder: Path, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    calls = watch_loads(monkeypatch, failure)
    assert lean.load_lean(str(folder)) == str(folder)
    assert calls == [True, False]


def test_adapters_and_names_on_the_hub_are_loaded_in_full(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = watch_loads(monkeypatch)
    (folder / "adapter_config.json").touch()
    for checkpoint in (str(folder), "owner/name"):
        assert lean.load_lean(checkpoint) == checkpoint
    assert calls == [False, False]


def test_an_error_of_the_user_is_that_of_the_full_attempt(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = watch_loads(monkeypatch, InputError("first"), InputError("second"))
    with pytest.raises(InputError, match="second"):
        lean.load_lean(str(folder))
    assert calls == [True, False]
