"""Borders of the command line: encodings, control characters, files that cannot be written, imported code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import torch

from faithmeter.cli import VERBS
from faithmeter.errors import escape_controls
from toy import tiny

HOSTILE = "the \x1b]0;owned\x07 film \x9b31m was\x00 good\x7f \u202e fun"
UNSAFE = set("\x1b\x07\x9b\x00\x7f\u202e")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("borders") / "model"
    clf = tiny(dtype=torch.float32)
    clf.model.save_pretrained(folder)
    clf.tokenizer.save_pretrained(folder)
    return folder


def test_the_version_is_that_of_the_package(faithmeter) -> None:
    assert faithmeter("--version").out == f"faithmeter {version('faithmeter')}\n"


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_h_is_help_and_flags_have_no_type(faithmeter, verb: str) -> None:
    outcome = faithmeter(*filter(None, [verb]), "-h")
    assert (outcome.code, outcome.err) == (0, "")
    assert "--help" in outcome.out
    assert "<bool>" not in outcome.out


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "serve"])
def test_output_options_stand_in_their_group_of_the_help(faithmeter, verb: str) -> None:
    panels = faithmeter(verb, "-h").out.split("╭─ ")
    [output] = (panel for panel in panels if panel.startswith("Output "))
    for option in ("--json", "--quiet", "--html" if verb == "explain" else "--output"):
        assert option in output


def test_completion_is_offered_in_the_help(faithmeter) -> None:
    assert "--install-completion" in faithmeter("-h").out


def test_control_characters_never_reach_the_terminal(faithmeter, checkpoint, tmp_path) -> None:
    for arguments in (
        (HOSTILE,),
        ("a film", "--class", HOSTILE),
        ("a film", "-m", HOSTILE),
        ("a film", "--file", HOSTILE),
    ):
        outcome = faithmeter("explain", checkpoint, *arguments)
        assert outcome.code == (0 if arguments == (HOSTILE,) else 2)
        assert not UNSAFE & set(outcome.out + outcome.err), arguments
    data = tmp_path / "data.csv"
    data.write_text(
        "text,label\n" + "".join(f"{HOSTILE.replace(chr(0), '')} {n},{n % 2}\x1b[2J\n" for n in range(30))
    )
    (tmp_path / "own.toml").write_text('data = "data.csv"\ntext = "text"\nlabel = "label"\n')
    outcome = faithmeter("list", "tasks", tmp_path / "own.toml")
    assert outcome.code == 0
    assert not UNSAFE & set(outcome.out + outcome.err)


def test_escaping_keeps_what_scripts_and_emoji_need() -> None:
    kept = "naïve שלום \u200f 👩‍🚀 日本\n\tb"
    assert escape_controls(kept) == kept
    assert escape_controls("a\x1b[31m\x9b\r\u202e\ud800") == r"a\x1b[31m\x9b\r\u202e\ud800"
    assert escape_controls("a\nb", keep="") == r"a\nb"


BOTH_FORMS = """
import sys
from faithmeter import cli
try:
    cli.main()
except SystemExit as stop:
    if stop.code:
        raise
print(end="\\0", flush=True)
sys.argv.append("--json")
cli.main()
"""
"""Program that shows a result and then prints it as JSON, in one process, as importing takes seconds."""


@pytest.mark.parametrize(
    "encoding", ["ascii", *(pytest.param(name, marks=pytest.mark.slow) for name in ("latin-1", "utf-8"))]
)
def test_any_terminal_can_show_a_result(checkpoint, encoding: str) -> None:
    environment = {**os.environ, "LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": encoding}
    command = [sys.executable, "-c", BOTH_FORMS, "explain", str(checkpoint), "good — film 😀"]
    result = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert result.returncode == 0, result.stderr
    shown, as_json = result.stdout.decode(encoding).split("\0")
    assert "prediction" in shown
    assert json.loads(as_json)[0]["text"] == "good — film 😀"


def test_arguments_that_are_not_utf8_get_one_line(checkpoint) -> None:
    command = [sys.executable, "-m", "faithmeter", "explain", str(checkpoint), b"caf\xe9"]
    result = subprocess.run(command, capture_output=True, check=False)
    assert result.returncode == 2
    assert result.stderr.decode().splitlines() == [
        r"error: argument 3 ('caf\udce9') is not UTF-8; convert it, for example with iconv"
    ]


def test_a_lone_surrogate_in_a_file_gets_one_line(faithmeter, checkpoint, tmp_path) -> None:
    (tmp_path / "texts.jsonl").write_text('{"text": "a film"}\n{"text": "half \\ud83d of an emoji"}\n')
    outcome = faithmeter("explain", checkpoint, "--file", tmp_path / "texts.jsonl")
    assert (outcome.code, outcome.out) == (2, "")
    assert "texts.jsonl, line 2: " in outcome.err
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize("ending", ["sys.exit(0)", "sys.exit()", "raise SystemExit('bye')"])
def test_an_imported_file_cannot_end_the_program_with_success(faithmeter, tmp_path, ending: str) -> None:
    (tmp_path / "own.py").write_text(f"import sys\n{ending}\n")
    outcome = faithmeter("--import", tmp_path / "own.py", "list", "tasks")
    assert (outcome.code, outcome.out) == (2, "")
    assert "it ends the program by sys.exit(" in outcome.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("train", "--task", "bAbI-1", "--limit", "32", "--epochs", "1", "-o", "file/runs"),
        ("train", "--task", "bAbI-1", "--limit", "32", "--epochs", "1", "-o", "n" * 300),
        ("explain", "MODEL", "a film", "--html", "file/page.html"),
        ("explain", "MODEL", "a film", "--html", "/proc/page.html"),
        ("report", "store", "-o", "file/report.html"),
    ],
)
def test_a_place_that_cannot_be_written_gets_one_line(
    faithmeter, checkpoint, tmp_path, monkeypatch, arguments: tuple[str, ...]
) -> None:
    import fixtures_report
    from faithmeter.store.run_store import RunStore

    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    if arguments[0] == "report":
        fixtures_report.train(RunStore(Path("store")))
    outcome = faithmeter(*(str(checkpoint) if argument == "MODEL" else argument for argument in arguments))
    assert outcome.code == 2
    assert "Traceback" not in outcome.err
    errors = [line for line in outcome.err.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert outcome.err.rstrip().endswith(errors[0])


@pytest.mark.parametrize("option", [("-o", "zz"), ("--page-only",)])
def test_options_of_the_page_do_not_go_with_a_model_card(
    faithmeter, tmp_path, option: tuple[str, ...]
) -> None:
    outcome = faithmeter("report", tmp_path, "--model-card", tmp_path / "checkpoint", *option)
    assert outcome.code == 2
    assert "--model-card writes " in outcome.err
    assert "leave" in outcome.err
    assert not list(tmp_path.iterdir())
