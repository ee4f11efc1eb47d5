"""Run the notebooks of the documentation and save their outputs: `python scripts/docs/notebooks.py`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import nbclient
import nbformat

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
MAX_SECONDS = 900


def run_notebook(path: Path, folder: Path) -> Any:
    """Return a notebook with the outputs of a run from a clean kernel in a folder.

    Raises:
        nbclient.exceptions.CellExecutionError: A cell failed.
    """
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(
        notebook, timeout=MAX_SECONDS, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times, which would change with every run
        if "outputs" in cell:  # progress bars and warnings of libraries go to stderr
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    return notebook


def main(paths: list[Path]) -> None:
    """Run notebooks in one temporary folder, so that later ones find what earlier ones trained."""
    with tempfile.TemporaryDirectory() as folder:
        for path in paths:
            notebook = run_notebook(path, Path(folder))
            nbformat.write(notebook, path)
            print(path.name)


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]] or sorted(FOLDER.glob("*.ipynb")))
