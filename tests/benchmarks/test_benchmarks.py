"""The bench: fair races, plain loops that compute the same numbers, and operations counted by hand."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks import libraries, plain
from benchmarks.__main__ import main
from benchmarks.growth import fit_exponent
from benchmarks.light import Flops
from benchmarks.pairwise import pairwise_pvalues
from benchmarks.race import CLOCKS, Contender, Work, race, require_rounds
from benchmarks.setting import QUICK, Setting
from faithmeter.errors import InputError
from faithmeter.methods import explain
from faithmeter.stats.masf import MaSF
from toy import rows_batch, tiny

QUICKEST = ("--quick", "--rounds", 1, "--only", "masf", "--only", "growth", "--clock", "cpu")
ROWS = ([7, 8, 9, 10, 11], [12, 13, 14], [5, 6, 7, 8, 9, 10])


@pytest.fixture(scope="module")
def clf():
    return tiny()


def test_contenders_take_turns_and_are_compared_with_the_first() -> None:
    calls = []
    ours, other = torch.tensor([[2.0, -4.0]]), torch.tensor([[2.0, -3.0]])
    contenders = [
        Contender("ours", lambda: calls.append("a") or ours),
        Contender("other", lambda: calls.append("b") or other, scale=1000.0, same_scores=True),
    ]
    first, second = race(Work("work", contenders, flops=10.0), 2, lambda: 5.0)
    assert calls == ["a", "b", "a", "b", "b", "a"], "a warm-up, then rounds that begin with another one"
    assert first.ratio == 1
    assert second.ratio == pytest.approx(second.seconds / first.seconds)
    assert len(first.rounds) == len(second.rounds) == 2
    assert first.light == pytest.approx(10.0 / 5.0 / first.seconds)
    assert (first.difference, second.difference) == (None, 0.25)


def test_cpu_time_counts_work_and_no_waiting_and_the_programs_that_were_started() -> None:
    def spend(program: bool) -> None:
        code = "sum(range(4_000_000))"
        if program:
            subprocess.run([sys.executable, "-c", code], check=True)
        else:
            exec(code)

    contenders = [
        Contender("waits", lambda: time.sleep(0.3)),
        Contender("works", lambda: spend(False)),
        Contender("starts a program", lambda: spend(True)),
    ]
    waits, works, starts = (entry.seconds for entry in race(Work("work", contenders), 1, clock=CLOCKS["cpu"]))
    assert waits < 0.1
    assert works > 0.02
    assert starts > works / 2, "the same work, in a program that it waited for"


def test_a_race_needs_a_round() -> None:
    with pytest.raises(InputError, match="rounds is 0; expected at least 1"):
        require_rounds(0)


@pytest.mark.parametrize(
    ("method", "loop"),
    [
        ("loo-sign", plain.leave_one_out),
        ("int-grad-sign", plain.integrated_gradient),
        ("inp-grad-sign", plain.input_x_gradient),
        ("beam", plain.beam_search),
        ("loo-sign", libraries.captum_occlusion),
        ("int-grad-sign", libraries.captum_integrated),
        ("inp-grad-sign", libraries.captum_gradient),
    ],
)
def test_every_contender_computes_what_we_compute(clf, method: str, loop) -> None:
    if "captum" in loop.__name__:
        pytest.importorskip("captum")
    batch, labels = rows_batch(*ROWS), torch.tensor([0, 1, 2])
    ours = explain(clf, batch, labels, method)
    torch.testing.assert_close(loop(clf, batch, labels), ours, atol=1e-6, rtol=1e-6)


def test_the_pairwise_formulation_gives_the_published_pvalues() -> None:
    rng = np.random.default_rng(0)
    fitted, scored = (rng.standard_normal((n, 3, 8), dtype=np.float32) for n in (40, 90))
    np.testing.assert_allclose(
        pairwise_pvalues(fitted, scored), MaSF("published").fit(fitted).pvalues(scored), atol=1e-12
    )


def test_the_exponent_of_a_square_is_two() -> None:
    assert fit_exponent([2, 4, 8, 16], [3.0 * n**2 for n in (2, 4, 8, 16)]) == pytest.approx(2)


def test_operations_are_those_of_the_matrix_products(clf) -> None:
    tokens, hidden, inner, layers, classes = 6, 16, 32, 2, 3
    linear = 2 * tokens * (4 * hidden * hidden + 2 * hidden * inner)
    attention = 2 * 2 * tokens * tokens * hidden
    head = 2 * (hidden * hidden + hidden * classes)  # of the first token alone
    assert Flops(clf)([tokens, tokens]) == 2 * (layers * (linear + attention) + head)


def test_texts_have_about_the_length_and_depend_on_nothing_else(clf) -> None:
    setting = Setting("toy", clf, QUICK)
    texts = setting.texts(9, 20)
    assert texts == setting.texts(9, 20) != setting.texts(9, 20, seed=1)
    assert [len(text.split()) for text in texts] == [16, 17, 18, 19, 20, 21, 22, 23, 24]


@pytest.fixture
def bench(capsys):
    """`bench("--quick")` as typed after `python -m benchmarks`: exit code, standard output and error."""

    def call(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main([*map(str, arguments)])
        return (stop.value.code, *capsys.readouterr())

    return call


def test_the_command_writes_figures_and_picture(bench, tmp_path: Path) -> None:
    _, out, _ = bench(*QUICKEST, "-o", tmp_path, "--json")
    values = json.loads(out)
    assert values == json.loads((tmp_path / "bench.json").read_text())
    works = [entry["work"] for entry in values["entries"] if entry["contender"] == "faithmeter"]
    assert works == [f"MaSF, fit and score {n} rows, 2 × 16" for n in (50, 100, 200)]
    assert [one["work"] for one in values["growth"]][-1] == "MaSF, by rows"
    assert all(len(one["peak_mb"]) == len(one["sizes"]) for one in values["growth"])
    assert (values["machine"]["model"], values["machine"]["clock"]) == ("embedded", "cpu")
    assert (tmp_path / "bench.png").stat().st_size > 1000


def test_an_unknown_clock_is_named(bench) -> None:
    code, _, told = bench("--quick", "--clock", "cpus")
    assert code == 2
    assert "unknown --clock 'cpus'; did you mean 'cpu'" in told


def test_an_unknown_part_is_named(bench) -> None:
    code, _, told = bench("--quick", "--only", "lo")
    assert code == 2
    assert "unknown part of the bench 'lo'" in told


def test_finished_parts_are_written_when_a_later_one_fails(bench, tmp_path: Path, monkeypatch) -> None:
    def fail(*_: object) -> None:
        raise InputError("no memory left")

    monkeypatch.setattr("benchmarks.run.measure_growth", fail)
    code, _, told = bench(*QUICKEST, "-o", tmp_path)
    assert (code, "no memory left" in told) == (2, True)
    assert len(json.loads((tmp_path / "bench.json").read_text())["entries"]) == 6


def test_the_figures_of_the_docs_are_those_of_the_committed_bench() -> None:
    docs = Path(__file__).parents[2] / "docs"
    files = [
        json.loads((docs / "bench" / f"{name}.json").read_text())
        for name in ("bench", "gradients", "base", "one-thread")
    ]
    entries = [entry for file in files for entry in file["entries"]]
    ratios = {form.format(entry["ratio"]) for entry in entries for form in ("{:.2f}", "{:.0f}")}
    page = (docs / "performance.md").read_text(encoding="utf-8")
    table = page.split("## The bench")[1].split("| work |")[1].split("\n\n")[0]
    figures = [line.rsplit("|", 2)[1].strip() for line in table.splitlines()[2:]]
    assert len(figures) == 15
    assert set(figures) <= ratios
