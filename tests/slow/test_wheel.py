"""Wheel and sdist, in a clean environment without the repository: the smallest whole thing, and the tests."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path
from zipfile import ZipFile

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
SMOKE = """
import sys
import faithmeter as fm
assert "torch" not in sys.modules
assert "site-packages" in fm.__file__, fm.__file__
config = fm.TrainConfig(limit=32, epochs=1, learning_rate=1e-3)
record = fm.train(config, fm.RunStore("runs"))
clf = fm.load(fm.RunStore("runs").folder(config))
text = fm.explain_text(clf, "Mary went to the garden.", pair="Where is Mary?", verify=False)
print(len(record.test), len(text.tokens))
"""


def run(folder: Path, *command: object) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [*map(str, command)], cwd=folder, capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with wheel and sdist: `$FAITHMETER_DIST` or, without it, one that is built now."""
    if given := os.environ.get("FAITHMETER_DIST"):
        return Path(given)
    folder = tmp_path_factory.mktemp("dist")
    run(folder, sys.executable, "-m", "build", "--outdir", folder, ROOT)
    return folder


@pytest.fixture(scope="module")
def clean(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with nothing but the wheel and what it requires."""
    folder = tmp_path_factory.mktemp("clean")
    run(folder, sys.executable, "-m", "venv", folder)
    wheel = next(built.glob("*.whl"))
    run(folder, folder / "bin/pip", "install", "--quiet", "-c", ROOT / "constraints.txt", f"{wheel}[all]")
    return folder / "bin"


def test_the_wheel_works_in_a_clean_environment(built: Path, clean: Path, tmp_path: Path) -> None:
    assert run(tmp_path, clean / "python", "-c", SMOKE).split() == ["12", "6"]
    verb = clean / "faithmeter"
    assert "Begin with: faithmeter demo" in run(tmp_path, verb, "--help")
    checkpoint = next((tmp_path / "runs").glob("train-*"))
    run(tmp_path, verb, "measure", checkpoint, "-m", "loo-sign", "--limit", 20)
    run(tmp_path, verb, "report")
    assert (tmp_path / "report_files/tables/faithfulness.tex").exists()
    assert (tmp_path / "report_files/figures/pvalues-crossfit.pdf").exists()
    assert "Faithfulness report" in (tmp_path / "report.html").read_text(encoding="utf-8")
    run(tmp_path, verb, "report", "--gallery", "site", "--page-only")
    assert (tmp_path / "site/runs/report.html").exists()
    run(tmp_path, verb, "report", "--model-card", checkpoint)
    assert "## Faithfulness" in (checkpoint / "README.md").read_text(encoding="utf-8")
    with ZipFile(next(built.glob("*.whl"))) as files:
        assert "faithmeter/serve/static/index.html" in files.namelist()


def test_the_tests_of_the_sdist_pass_on_the_wheel(built: Path, clean: Path, tmp_path: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    wheel = next(built.glob("*.whl"))
    run(source, clean / "pip", "install", "--quiet", "-c", source / "constraints.txt", f"{wheel}[dev]")
    where = run(tmp_path, clean / "python", "-c", "import faithmeter; print(faithmeter.__file__)")
    assert where.startswith(str(clean.parent)), "the tests import the wheel, not the sources beside them"
    assert " passed" in run(source, clean / "python", "-m", "pytest", "-q", "-n", "2")
