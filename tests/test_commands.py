"""Every `faithmeter` command of the documents is understood; those of README and tutorial are run."""

from __future__ import annotations

import csv
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from faithmeter.data import stories

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PARSED_ONLY = ("serve", "--data-dir", "--add-mask-token")
"""Words of commands that wait for a visitor, or need files or a model that only the reader has."""
SHORTER = {
    **dict.fromkeys(("train", "adapt"), ("--limit", "96", "--epochs", "1")),
    "audit": ("--limit", "12", "--epochs", "1", "-m", "grad-l2"),
}
"""Options that make a verb quick; the last of two equal options counts."""


def commands(path: Path) -> list[list[str]]:
    """Arguments of all `faithmeter` commands in the code blocks of a document."""
    blocks = re.findall(r"^```bash\n(.*?)^```", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("faithmeter ")]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_commands_of_a_document_are_understood(path: Path, faithmeter) -> None:
    for arguments in commands(path):
        if arguments[0] == "--import":
            arguments = arguments[2:]
        outcome = faithmeter(*arguments, "--help")
        assert outcome.code == 0, f"faithmeter {shlex.join(arguments)}: {outcome.err}"


def test_a_wrong_option_is_not_understood(faithmeter) -> None:
    assert faithmeter("measure", "CHECKPOINT", "--metods", "loo-sign", "--help").code == 2


def test_readme_and_workflows_name_targets_of_make() -> None:
    readme, makefile = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "Makefile"))
    named = set(re.findall(r"(?:^|`)make ([\w-]+)", readme, re.MULTILINE))
    assert {"demo", "test", "docs"} <= named
    for path in (ROOT / ".github/workflows").glob("*.yml"):  # not in the sdist
        steps = [step for job in yaml.safe_load(path.read_text())["jobs"].values() for step in job["steps"]]
        named |= {target for step in steps for target in re.findall(r"^make ([\w-]+)", step.get("run", ""))}
    assert named <= set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    """A folder with what a reader has: files of reviews, here stories, and a classifier."""
    import torch
    from transformers import AutoModelForSequenceClassification

    from faithmeter.models.loading import load_tokenizer, resolve

    monkeypatch.chdir(tmp_path)
    (tmp_path / "grids").symlink_to(ROOT / "grids")
    rows = [(q.paragraph, q.question, q.answer) for s in stories.generate(1, 600, seed=0) for q in s]
    for name in ("reviews.csv", "texts.csv", "stories.csv"):
        with open(name, "w", newline="") as file:
            csv.writer(file).writerows([("review", "context", "stars"), *rows])
    places = dict(enumerate(sorted({answer for *_, answer in rows})))
    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_pretrained(resolve("embedded"), id2label=places)
    model.save_pretrained("my-classifier")
    load_tokenizer("embedded").save_pretrained("my-classifier")
    return tmp_path


def complete(arguments: list[str], folder: Path) -> list[str]:
    """Replace what stands for the reader's own files, and make the command short."""
    own: dict[str, Any] = {"roberta-base": "embedded", "CHECKPOINT": "runs/train-reviews*", "200": "12"}
    arguments = [own.get(argument, argument) for argument in arguments]
    arguments = [
        str(_only(argument, folder)) if argument.startswith("runs/") else argument for argument in arguments
    ]
    if arguments[0] in ("measure", "check") and "--limit" not in arguments:
        arguments += ["--limit", "12"] if arguments[0] == "measure" else []
    return [*arguments, *SHORTER.get(arguments[0], ())]


def _only(pattern: str, folder: Path) -> Path:
    """The one folder that a shell would put in place of the pattern, though the demo ran before."""
    (folder / "runs/train-bAbI-1-half-0-0123456789abcdef").mkdir(parents=True, exist_ok=True)
    (match,) = folder.glob(pattern)
    return match


@pytest.mark.slow
@pytest.mark.parametrize("name", ["README.md", "docs/tutorial.md"])
def test_commands_of_a_document_run(name: str, folder: Path, faithmeter) -> None:
    path = ROOT / name
    for code in re.findall(
        r"^```python\n(.*?)^```", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    ):
        if name != "README.md":  # that of the README has a test of its own
            exec(compile(code, name, "exec"), {})
    for arguments in commands(path):
        if set(PARSED_ONLY) & set(arguments) or ("reviews.csv" in arguments and name != "README.md"):
            continue
        arguments = complete(arguments, folder)
        outcome = faithmeter(*arguments)
        allowed = (0, 1) if "--require" in arguments else (0,)
        assert outcome.code in allowed, f"faithmeter {shlex.join(arguments)}: {outcome.err}"
    assert (folder / "report.html").is_file()
