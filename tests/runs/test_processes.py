"""Processes of one training: their progress and errors reach the command, whatever else they print."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import faithmeter as fm
from faithmeter.runs import processes
from faithmeter.training import LABELS_ONLY, Session, finetuning
from faithmeter.training.trainer import StepReport


class Launcher:
    """Processes that print some lines, write a result and end."""

    lines: list[str]
    result: dict[str, Any]
    returncode = 0

    def __init__(self, command: list[str], **_: Any) -> None:
        self.stdout = [f"{line}\n" for line in self.lines]
        Path(command[-1], processes.RESULT).write_text(json.dumps(self.result))

    def wait(self) -> None: ...

    def terminate(self) -> None: ...


def train_together(folder: Path, monkeypatch: pytest.MonkeyPatch, lines: list[str], **result: Any) -> Any:
    monkeypatch.setattr(
        processes.subprocess, "Popen", type("Fake", (Launcher,), {"lines": lines, "result": result})
    )
    steps: list[tuple[int, int, str]] = []
    report = StepReport(lambda *step: steps.append(step))
    processes.finetune_together(
        fm.TrainConfig(), folder, LABELS_ONLY, Session(callbacks=[report], processes=2)
    )
    return steps


def test_lines_of_libraries_are_no_progress(tmp_path, monkeypatch) -> None:
    lines = ["[Gloo] Rank 0 is connected to 1 peer ranks", f'{processes.PROGRESS}[1, 2, "epoch 1"]', "[1]"]
    assert train_together(tmp_path, monkeypatch, lines) == [(1, 2, "epoch 1")]


def test_the_error_of_a_process_is_told(tmp_path, monkeypatch) -> None:
    with pytest.raises(fm.InputError, match=r"^no data here$"):
        train_together(tmp_path, monkeypatch, [], error="no data here")


@pytest.mark.parametrize("rank", ["0", "1"])
def test_every_process_that_fails_says_why_and_ends_with_an_error(tmp_path, monkeypatch, rank: str) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise fm.InputError("no data here")

    monkeypatch.setenv("RANK", rank)
    monkeypatch.setattr(processes, "end_with_parent", lambda: None)
    monkeypatch.setattr(finetuning, "finetune", fail)
    config = fm.TrainConfig()
    order = {"kind": config.kind, "config": config.to_dict(), "resume": False, "erased": None, "previous": ""}
    (tmp_path / processes.ORDER).write_text(json.dumps(order))
    with pytest.raises(SystemExit) as stop:
        processes.main(tmp_path)
    assert stop.value.code == 1
    assert json.loads((tmp_path / processes.RESULT).read_text()) == {processes.ERROR: "no data here"}


@pytest.mark.parametrize(("rank", "lines"), [("0", 1), ("1", 0)])
def test_the_first_process_reports_progress_and_the_result(
    tmp_path, monkeypatch, capsys, rank: str, lines: int
) -> None:
    def succeed(*given: Any) -> dict[str, Any]:
        *_, session = given
        for callback in session.callbacks:
            callback.show(1, 2, "epoch 1")
        return {"best_epoch": 1}

    monkeypatch.setenv("RANK", rank)
    monkeypatch.setattr(processes, "end_with_parent", lambda: None)
    monkeypatch.setattr(finetuning, "finetune", succeed)
    config = fm.TrainConfig()
    order = {"kind": config.kind, "config": config.to_dict(), "resume": False, "erased": None, "previous": ""}
    (tmp_path / processes.ORDER).write_text(json.dumps(order))
    processes.main(tmp_path)
    assert capsys.readouterr().out == f'{processes.PROGRESS}[1, 2, "epoch 1"]\n' * lines
    assert (tmp_path / processes.RESULT).exists() == (rank == "0")
