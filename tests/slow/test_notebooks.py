"""The notebooks of the documentation run from clean kernels, and their saved outputs are those of a run."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "docs/notebooks").glob("*.ipynb"))
MAX_CPU_SECONDS = 180


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_a_clean_kernel(path: Path, tmp_path: Path, monkeypatch) -> None:
    pytest.importorskip("nbclient")
    monkeypatch.syspath_prepend(str(ROOT / "scripts/docs"))
    run_notebook = __import__("notebooks").run_notebook
    started = time.monotonic()
    notebook = run_notebook(path, tmp_path)
    assert time.monotonic() - started < 5 * MAX_CPU_SECONDS, "on a machine that others use"
    saved = __import__("nbformat").read(path, as_version=4)
    assert [cell.source for cell in notebook.cells] == [cell.source for cell in saved.cells]
    for cell, old in zip(notebook.cells, saved.cells, strict=True):
        if cell.cell_type == "code":
            assert [output.output_type for output in cell.outputs] == [o.output_type for o in old.outputs]
    assert any(cell.get("outputs") for cell in saved.cells), "run `make notebooks`"
    sys.modules.pop("notebooks", None)
