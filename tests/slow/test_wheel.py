"""The wheel, installed into a clean environment, does the smallest whole thing."""

from __future__ import annotations

import subprocess
import sys
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
text = fm.explain_text(clf, "Mary went to the garden.", pair="Where is Mary?")
print(len(record.test), len(text.tokens))
"""


def test_the_wheel_works_in_a_clean_environment(tmp_path) -> None:
    def run(*command: object) -> str:
        done = subprocess.run([*map(str, command)], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    run(sys.executable, "-m", "build", "--wheel", "--outdir", tmp_path / "dist", ROOT)
    run(sys.executable, "-m", "venv", tmp_path / "clean")
    wheel = next((tmp_path / "dist").glob("*.whl"))
    run(tmp_path / "clean/bin/pip", "install", "--quiet", "-c", ROOT / "constraints.txt", wheel)
    assert run(tmp_path / "clean/bin/python", "-c", SMOKE).split() == ["12", "6"]
    verb = tmp_path / "clean/bin/faithmeter"
    assert "Begin with: faithmeter demo" in run(verb, "--help")
    checkpoint = next((tmp_path / "runs").glob("train-*"))
    run(verb, "measure", checkpoint, "-m", "loo-sign", "--limit", 20)
    run(verb, "report")
    assert (tmp_path / "report_files/tables/faithfulness.tex").exists()
    assert (tmp_path / "report_files/figures/epochs.pdf").exists()
    assert "Faithfulness report" in (tmp_path / "report.html").read_text(encoding="utf-8")
    run(verb, "report", "--model-card", checkpoint)
    assert "## Faithfulness" in (checkpoint / "README.md").read_text(encoding="utf-8")
    with ZipFile(wheel) as files:
        assert "faithmeter/serve/static/index.html" in files.namelist()
