"""The file list is the data's way: a module imports only modules above it."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import faithmeter
from faithmeter.errors import EXTRAS

ROOT = Path(faithmeter.__file__).parent
ORDER = list(faithmeter.LAYERS)


def module_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


ENTRY_POINTS = ("__init__", "__main__")
FILES = [path for path in sorted(ROOT.rglob("*.py")) if module_of(path) not in ENTRY_POINTS]


def imported(path: Path) -> set[str]:
    """The top-level modules of this package that a file imports, by relative imports."""
    depth = len(path.relative_to(ROOT).parts)
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level == depth:
            found |= {node.module.split(".")[0]} if node.module else {alias.name for alias in node.names}
    return found - {"__version__"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_only_those_above_it(path: Path) -> None:
    assert module_of(path) in ORDER, "a new module needs its place in the order"
    here = ORDER.index(module_of(path))
    for name in imported(path):
        assert ORDER.index(name) < here, f"{module_of(path)} must not import {name}"


def test_only_commands_and_grids_know_the_paper() -> None:
    """A user without the paper's tasks meets none of what the replication needs."""
    users = {module_of(path) for path in FILES if "paper" in imported(path)} - {"paper"}
    assert users == {"cli", "grid"}


MARKUP = re.compile(
    r"</?(a|article|body|div|h[1-6]|head|html|li|main|ol|p|pre|section|span|style|svg|t[adhr]|table|ul)\b[^<]*>"
)
BELOW = [path for path in FILES if module_of(path) not in ("report", "serve", "paper")]


@pytest.mark.parametrize("path", BELOW, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_report_renders(path: Path) -> None:
    """No markup, and nothing of rich or jinja but in the command line."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    assert not [text for text in texts if isinstance(text, str) and MARKUP.search(text)]
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    lazy = {node for part in ast.walk(tree) if isinstance(part, ast.If) for node in ast.walk(part)}
    modules = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node not in lazy]
    names |= {node.module or "" for node in modules}
    forbidden = {"altair", "jinja2", "markupsafe", "vl_convert"}
    forbidden |= set() if module_of(path) == "cli" else {"rich"}
    assert not forbidden & {name.split(".")[0] for name in names}


@pytest.mark.parametrize("module", ["faithmeter", "faithmeter.cli", "faithmeter.data"])
def test_importing_brings_nothing_heavy(module: str) -> None:
    heavy = ["torch", "transformers", "datasets", "pandas", "pyarrow", "scipy", "sklearn"]
    heavy += [] if module == "faithmeter.data" else ["numpy"]
    check = f"import {module}, sys; print([m for m in {heavy} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


PURE = [path for path in FILES if module_of(path) in ("stats", "verdict")]
IMPURE = {"torch", "pandas", "jinja2", "rich", "transformers", "datasets", "altair"}


def roots(path: Path) -> set[str]:
    """The packages that a file imports from anywhere, also inside functions and for types only."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(str(node.module).split(".")[0])
    return found


@pytest.mark.parametrize("path", PURE, ids=lambda path: str(path.relative_to(ROOT)))
def test_statistics_and_verdicts_know_neither_tensors_nor_frames_nor_html(path: Path) -> None:
    assert not roots(path) & IMPURE


def test_statistics_and_verdicts_load_nothing_of_the_kind() -> None:
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in PURE]
    modules = ", ".join(f"faithmeter.{name.removesuffix('.__init__')}" for name in names)
    heavy = sorted(IMPURE | {"sklearn", "pyarrow"})
    check = f"import {modules}, sys; print([name for name in {heavy} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


SESSION = """
import sys
from pathlib import Path

import torch

torch.set_num_threads(1)
from toy import tiny  # not what is measured, and only torch and transformers
assert not set(HEAVY) & set(sys.modules)

clf = tiny(dtype=torch.float32)
clf.model.save_pretrained("model")
clf.tokenizer.save_pretrained("model")
sys.argv = ["faithmeter", "explain", "model", "the film was good"]
from faithmeter.cli import main
try:
    main()
except SystemExit as stop:
    assert not stop.code, stop.code

import faithmeter as fm
assert "acu" in fm.pipeline("model", orders=19)("the film was good")

from faithmeter.serve.admission import ServedModel
from faithmeter.serve.app import create_app
create_app(ServedModel(fm.load("model"), "model"))
print("loaded:", sorted(set(HEAVY) & set(sys.modules)))
"""
HEAVY = ["altair", "datasets", "pandas", "scipy.stats", "sklearn"]
"""Libraries that no explanation needs; `accelerate` is imported by transformers itself."""


def test_explaining_and_serving_load_no_library_that_only_other_work_needs(tmp_path: Path) -> None:
    code = SESSION.replace("HEAVY", repr(HEAVY))
    paths = os.pathsep.join([str(Path(__file__).parent), str(ROOT.parent)])
    environment = {**os.environ, "PYTHONPATH": paths}
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=environment
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == "loaded: []"


BASE = """
import sys
sys.modules.update(dict.fromkeys(EXTRAS))  # None: an import fails, as if nothing were installed

import torch
import faithmeter as fm

torch.set_num_threads(1)
from toy import WORDS, tiny

clf = tiny(dtype=torch.float32, labels=2)
rows = [f"{' '.join(WORDS[row % 9 : row % 9 + 5])},{'ab'[row % 2]}" for row in range(60)]
open("rows.csv", "w").write("\\n".join(["text,label", *rows]))
task = fm.own_task("rows.csv", text="text", label="label")
result = fm.measure(clf, task, ["loo-sign", "grad-l2"], limit=4)
assert {"random", "loo-sign"} <= {*result.to_dict()["methods"]}
assert fm.explain_text(clf, "the film was good", verify=False).words
clf.model.save_pretrained("model")
clf.tokenizer.save_pretrained("model")
from faithmeter.config import MeasureConfig
from faithmeter.runs.measured import Origin
from faithmeter.runs.measurements import measure_checkpoint
config = MeasureConfig(methods=("grad-l2",), limit=4)
every = fm.own_task("rows.csv", text="text", label="label", all_test=True)
assert measure_checkpoint("model", config, fm.RunStore("runs"), Origin(own=every)).texts == 4
try:
    fm.train(fm.TrainConfig(limit=32, epochs=1), fm.RunStore("runs"))
except fm.InputError as error:
    print(error)
"""


def test_measuring_in_python_needs_no_extra_and_training_names_its_own(tmp_path: Path) -> None:
    paths = os.pathsep.join([str(Path(__file__).parent), str(ROOT.parent)])
    result = subprocess.run(
        [sys.executable, "-c", BASE.replace("EXTRAS", repr([*EXTRAS]))],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert result.returncode == 0, result.stderr
    assert "needs accelerate, which is not installed: pip install 'faithmeter[train]'" in result.stdout


def test_help_answers_faster_than_torch_can_be_imported() -> None:
    """A ratio of two things in one run: `--help` is about 0.5 s where importing torch takes 2 s."""

    def seconds(*arguments: str) -> float:
        start = os.times()
        subprocess.run([sys.executable, *arguments], capture_output=True, check=True)
        end = os.times()  # of the processor, so that other programs do not matter
        return end.children_user + end.children_system - start.children_user - start.children_system

    assert seconds("-m", "faithmeter", "--help") < seconds("-c", "import torch")


def test_every_public_name_is_there() -> None:
    for name in faithmeter.__all__:
        assert getattr(faithmeter, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = faithmeter.nothing
