"""The paper's numbers: what ships is what was published, and is read as it is written."""

from __future__ import annotations

import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from faithmeter.errors import InputError
from faithmeter.paper import published
from fixtures_tasks import SHARED

PAPER = SHARED / "paper"


@pytest.mark.parametrize("name", published.NAMES)
def test_what_ships_is_what_was_published(name: str) -> None:
    if not PAPER.exists():
        pytest.skip(f"needs the published files in {PAPER}")
    shipped = files("faithmeter.paper").joinpath(f"{name}.csv").read_bytes()
    assert shipped == (PAPER / f"{name}.csv").read_bytes()


def test_no_published_file_is_forgotten() -> None:
    found = {Path(file.name).stem for file in files("faithmeter.paper").iterdir() if ".csv" in file.name}
    assert found == set(published.NAMES)


def test_times_stay_texts_and_only_empty_cells_are_missing() -> None:
    times = published.table("walltime_importance_measures").set_index(["dataset", "importance_measure"])
    assert times.loc[("bAbI-1", "beam"), "base_hhmm"] == "00:54"
    assert times.loc[("bAbI-2", "beam"), "large_hhmm"] == "61:24"
    missing = times[times["base_hhmm"].isna()]
    assert {*missing.index} == {(task, "beam") for task in ("bAbI-3", "Anemia", "Diabetes", "IMDB")}
    assert published.table("datasets").set_index("dataset")["auxiliary"].isna().sum() == 5


def test_numbers_are_numbers() -> None:
    row = published.table("faithfulness").iloc[0]
    assert (row["model"], row["acu"], row["acu_minus"], row["rroar_plus"]) == ("roberta-base", 32.6, 1.1, 2.6)
    assert published.table("performance")["base"].tolist()[:2] == [80, 65]


def test_an_unknown_table_is_an_error_with_a_guess() -> None:
    with pytest.raises(InputError, match="did you mean 'faithfulness'"):
        published.table("faithfullness")


def test_importing_it_brings_nothing_heavy() -> None:
    heavy = ("pandas", "numpy", "torch")
    check = f"import faithmeter.paper.published, sys; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
