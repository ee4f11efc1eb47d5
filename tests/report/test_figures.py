"""The figures: their numbers by hand, their rules, and that each comes out as PDF, SVG, PNG and a spec."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import vl_convert
from pandas import DataFrame

from faithmeter.config import SIGNIFICANCE_LEVEL
from faithmeter.report import figures
from faithmeter.report.figures.styles import display_names

METHODS = (
    *("random", "grad-l1", "grad-l2", "inp-grad-sign", "inp-grad-abs"),
    *("int-grad-sign", "int-grad-abs", "loo-sign", "loo-abs", "beam"),
)
TASKS = {  # name: metric, majority on test, unmasked performance, epochs
    "bAbI-1": ("micro_f1", 0.15, 0.99, 20),
    "CoLA": ("matthews", 0.0, 0.6, 15),
    "RTE": ("accuracy", 0.47, 0.72, 30),
    "MRPC": ("macro_f1", 0.41, 0.85, 20),
    "BoolQ": ("accuracy", 0.62, 0.77, 15),
    "CB": ("macro_f1", 0.22, 0.8, 50),
    "IMDB": ("macro_f1", 0.33, 0.95, 10),
    "MNLI": ("accuracy", 0.35, 0.87, 10),
    "QNLI": ("accuracy", 0.51, 0.92, 20),
    "QQP": ("macro_f1", 0.39, 0.9, 10),
    "SNLI": ("accuracy", 0.34, 0.91, 10),
    "SST2": ("accuracy", 0.51, 0.94, 10),
    "bAbI-2": ("micro_f1", 0.19, 0.97, 20),
    "bAbI-3": ("micro_f1", 0.18, 0.85, 20),
    "Anemia": ("macro_f1", 0.39, 0.88, 20),
    "Diabetes": ("macro_f1", 0.45, 0.78, 20),
}
MODELS = {"roberta-base": 0.0, "/models/roberta-large": 0.02}
ONE_OF_EACH = [
    *("performance-unmasked", "ablation-masked-test", "epochs"),
    *("pvalues-crossfit", "faithfulness", "roar"),
]
"""Figures of the same definition differ in their rows only."""
X_TITLES = {
    "ablation": ("validation texts",),
    "epochs": ("epoch",),
    **dict.fromkeys(("pvalues", "faithfulness", "roar"), ("masked tokens (%)",)),
    "pareto": ("evaluations per text",),
}
STRENGTH = dict(zip(METHODS, (0, 0.5, 0.55, 0.4, 0.3, 0.35, 0.3, 0.8, 0.5, 0.9), strict=True))


def made_up(tasks: int = 3, seeds: int = 5, *, step: int = 10, longest: int = 50) -> dict[str, DataFrame]:
    """Frames that look like those of a store: plausible, with one bAbI run that does not converge."""
    rng = np.random.default_rng(0)
    train, measured, roar = [], [], []
    pairs = list(product(("none", "all", "half"), ("unmasked", "masked", "both")))
    for (task, (metric, majority, top, epochs)), (model, bonus), seed in product(
        list(TASKS.items())[:tasks], MODELS.items(), range(seeds)
    ):
        common = {"task": task, "model": model, "seed": seed, "metric": metric, "scope": "explained"}
        for strategy, validation in pairs:
            failed = task.startswith("bAbI") and strategy == "all" and seed == 1 and bonus > 0
            best_value = majority + 0.02 if failed else top + bonus * (1 - top) * 10 + rng.normal(0, 0.012)
            best_value = min(best_value, 1) - (0.05 if strategy == "all" else 0)
            masked_value = majority + (rng.normal(-0.08, 0.05) if strategy == "none" else rng.normal(0, 0.01))
            kept = {**common, "strategy": strategy, "validation": validation, "epochs": epochs}
            kept |= {"digest": f"{task}{model}{seed}{strategy}{validation}", "folder": "", "loss": 0.3}
            threshold = 0.5 if task.startswith("bAbI") else -1
            kept |= {"majority": majority, "threshold": threshold, "converged": best_value > threshold}
            last = min(epochs, longest)
            best = last - 1
            for epoch in range(1, last + 1):
                rate = 0.7 if strategy == "none" else 0.3
                grown = (
                    majority + (best_value - majority) * (1 - np.exp(-rate * epoch)) + rng.normal(0, 0.008)
                )
                at = {"split": "validation", "epoch": epoch, "best": epoch == best}
                train += [{**kept, **at, "masking": "0", "value": min(grown, 1)}]
                train += [{**kept, **at, "masking": "all", "value": masked_value + rng.normal(0, 0.005)}]
            at = {"split": "test", "epoch": best, "best": True}
            train += [{**kept, **at, "masking": "0", "value": best_value}]
            train += [{**kept, **at, "masking": "all", "value": masked_value}]
            if (strategy, validation) not in (("none", "unmasked"), ("half", "both")):
                continue
            for method, percent in product(METHODS, range(0, 101, step)):
                share, strength = percent / 100, STRENGTH[method]
                signed = method.endswith(("-sign", "beam"))
                floor = majority * (1 - 0.6 * strength if signed else 1)
                fall = share ** (2.2 - 2 * strength)
                value = (
                    best_value
                    + (floor - best_value) * fall * (1 - share)
                    + (majority - best_value) * share**3
                )
                plain = strategy == "none"
                p = np.clip(np.exp(-share * 12) * 0.6 if plain else 0.65 - 0.4 * share**4, 0, 1)
                row = {
                    key: kept[key] for key in kept if key not in ("epochs", "loss", "majority", "threshold")
                }
                row |= {"method": method, "percent": percent, "texts": 100, "random": best_value}
                row |= {"value": value + rng.normal(0, 0.015) * share * (1 - share) * 4}
                row |= {"p_published": p, "p_crossfit": float(np.clip(p + rng.normal(0, 0.05), 0, 1))}
                measured.append(row)
                if task in ("bAbI-1", "RTE") and method in ("random", "loo-abs", "grad-l2") and not plain:
                    gone = value + 0.3 * strength * fall * (1 - share) + rng.normal(0, 0.02)
                    row = {**common, "digest": "", "folder": "", "method": method, "step": step}
                    roar.append({**row, "percent": percent, "value": gone})
    measure = DataFrame(measured)
    frames = {"train": DataFrame(train), "measure": measure, "roar": DataFrame(roar)}
    return {**frames, "areas": made_up_areas(measure[measure["percent"] == 0])}


def made_up_areas(once: DataFrame) -> DataFrame:
    """Areas that follow the strengths of the methods, each of which needs one evaluation per text more."""
    acu = once["method"].map(STRENGTH) / 2
    bounds = {"acu_lower": acu - 0.02, "acu_upper": acu + 0.02}
    bounds |= {"racu_lower": 2 * acu - 0.04, "racu_upper": 2 * acu + 0.04}
    evaluations = once["method"].map(METHODS.index) * once["texts"] + once["texts"]
    return once.assign(acu=acu, racu=2 * acu, evaluations_alone=evaluations, **bounds)


@pytest.fixture(scope="module")
def frames() -> dict[str, DataFrame]:
    return made_up(tasks=2, seeds=2, step=50, longest=3)


@pytest.fixture(scope="module")
def charts(frames: dict[str, DataFrame]) -> dict[str, Any]:
    return {name: figure(frames) for name, figure in figures.FIGURES.items()}


def figure(name: str, **frames: DataFrame) -> dict[str, Any]:
    """The spec of a figure."""
    chart = figures.FIGURES[name](frames)
    assert chart is not None
    return figures.spec(chart)


def shown(spec: dict[str, Any], task: str, part: str, **where: object) -> list[dict[str, Any]]:
    """What a figure shows of a task: the rows for one layer, those in which all of `where` holds."""
    panel = next(panel for panel in spec["concat"] if panel["title"] == task)
    rows = spec["datasets"][(panel.get("data") or spec["data"])["name"]]
    return [row for row in rows if row["part"] == part and where.items() <= row.items()]


def titles(spec: dict[str, Any]) -> dict[str, str]:
    """The panels of a figure: their tasks, and the titles of their y axes."""
    layers = {panel["title"]: panel["spec"]["layer"] for panel in spec["concat"]}
    return {task: first["encoding"]["y"]["title"] for task, (first, *_) in layers.items()}


def trained(**columns: Any) -> DataFrame:
    """Test rows of fine-tuned models; what is not said is the same for all."""
    common: dict[str, Any] = {"task": "RTE", "model": "m", "seed": 0, "strategy": "none"}
    common |= {"validation": "unmasked", "split": "test", "epoch": 1, "best": True, "masking": "0"}
    common |= {"metric": "accuracy", "majority": 0.5, "converged": True}
    return DataFrame({**common, **columns})


def test_pareto_by_hand() -> None:
    """`loo-sign` needs more than `search` for less; `grad-l2` is compared by RACU, in a view of its own."""
    rows = [("search", 0.4, 0.6, 40.0), ("loo-sign", 0.3, 0.5, 200.0), ("int-grad-sign", 0.2, 0.4, 20.0)]
    rows += [("grad-l2", 0.1, 0.3, 10.0), ("random", 0.0, 0.0, 1.0)]
    common: dict[str, Any] = {
        "task": "RTE",
        "model": "m",
        "seed": 0,
        "strategy": "half",
        "validation": "both",
    }
    common |= {"metric": "accuracy", "converged": True, "texts": 10, "scope": "explained"}
    values = zip(("method", "acu", "racu"), zip(*[row[:3] for row in rows], strict=True), strict=True)
    areas = DataFrame({**dict(values), "evaluations_alone": [10 * row[3] for row in rows]}).assign(**common)
    for name in ("acu", "racu"):
        areas = areas.assign(**{f"{name}_lower": areas[name] - 0.1, f"{name}_upper": areas[name] + 0.1})
    spec = figure("pareto", areas=areas)
    signed = shown(spec, "RTE", "mean", group="Signed: ACU")
    points = {row["label"]: (row["evaluations"], row["mean"], row["lower"], row["upper"]) for row in signed}
    assert points["search"] == pytest.approx((40, 40, 30, 50))
    assert set(points) == {"search", "loo-sign", "int-grad-sign"}
    assert [row["mean"] for row in shown(spec, "RTE", "front", group="Signed: ACU")] == pytest.approx(
        [20, 40]
    )
    [absolute] = shown(spec, "RTE", "mean", group="Absolute: RACU")
    assert (absolute["label"], absolute["mean"]) == ("grad-l2", pytest.approx(30))
    assert figures.FIGURES["pareto"]({"areas": areas[areas["method"] == "search"]}) is None
    assert figures.FIGURES["pareto"]({"areas": areas.assign(evaluations_alone=math.nan)}) is None


def test_the_ceiling_is_a_line_beside_the_signed_methods() -> None:
    frames = made_up(tasks=1, seeds=1, step=50, longest=1)
    measured = frames["measure"].assign(ceiling=0.1)
    rows = shown(
        figure("faithfulness", measure=measured), "bAbI-1", "mean", label="ceiling", model="roberta-base"
    )
    assert {(row["group"], row["percent"], row["mean"]) for row in rows} == {
        ("Signed", percent, 10.0) for percent in (0, 50, 100)
    }


def test_all_and_its_dashed_line_in_a_chart() -> None:
    both = {"task": ["RTE", "CoLA"] * 4, "seed": [0, 0, 1, 1] * 2, "strategy": ["none"] * 4 + ["half"] * 4}
    both |= {"validation": ["unmasked"] * 4 + ["both"] * 4, "metric": ["accuracy", "matthews"] * 4}
    unmasked = [0.8, 0.6, 0.7, 0.5, 0.9, 0.5, 0.9, 0.7]
    masked = [0.2, 0.0, 0.3, 0.1, 0.5, 0.1, 0.4, 0.0]
    levels = {"majority": [0.5, 0.0] * 4, "converged": [True] * 5 + [False, True, True]}
    train = pd.concat(
        [
            trained(**both, **levels, masking="0", value=unmasked),
            trained(**both, **levels, masking="all", value=masked),
        ]
    )
    plain = figure("performance-unmasked", train=train)
    expected = {"All": "performance (%)", "CoLA": "Matthews (%)", "RTE": "accuracy (%)"}
    assert list(titles(plain).items()) == list(expected.items())
    values = {row["tuning"]: row["mean"] for row in shown(plain, "All", "mean")}
    assert values == pytest.approx({"Plain": 65, "Masked": 85})  # seeds 70, 60; and 90 (one task), 80
    assert [row["level"] for row in shown(plain, "All", "level")] == pytest.approx([65])  # Plain's own mean
    assert [row["level"] for row in shown(plain, "RTE", "level")] == pytest.approx([75])
    seeds = [row["value"] for row in shown(plain, "CoLA", "seed", tuning="Masked")]
    assert seeds == pytest.approx([50, 70])  # the first did not converge, and is shown

    erased = figure("performance-masked", train=train)
    values = {row["tuning"]: row["mean"] for row in shown(erased, "All", "mean")}
    assert values == pytest.approx({"Plain": 15, "Masked": 35})  # seeds 10, 20; and 50 (one task), 20
    assert [row["level"] for row in shown(erased, "RTE", "level")] == pytest.approx([50])
    assert [row["level"] for row in shown(erased, "All", "level")] == pytest.approx([(25 + 25 + 50 + 25) / 4])


def test_ablation_shows_nine_pairs_and_of_validation_the_chosen_epoch() -> None:
    pairs = list(product(("none", "all", "half"), ("unmasked", "masked", "both")))
    train = pd.concat(
        trained(
            strategy=strategy, validation=validation, split="validation", epoch=[1, 2, 3],
            best=[False, True, False], value=[0.1, 0.5 + number / 100, 0.2],
        )
        for number, (strategy, validation) in enumerate(pairs)
    )  # fmt: skip
    chart = figure("ablation-unmasked-validation", train=train)
    found = {(row["strategy"], row["validation"]): row["mean"] for row in shown(chart, "RTE", "mean")}
    assert found == pytest.approx({pair: 50 + number for number, pair in enumerate(pairs)})
    assert [row["level"] for row in shown(chart, "RTE", "level")] == pytest.approx([50])
    assert figures.FIGURES["ablation-unmasked-test"]({"train": train}) is None


def test_epochs_are_those_of_plain_and_masked() -> None:
    common = {"split": "validation", "epoch": [1, 2] * 2, "best": False, "seed": [0, 0, 1, 1]}
    train = pd.concat(
        [
            trained(**common, value=[0.5, 0.6, 0.7, 0.8]),
            trained(**common, value=[0.2, 0.4, 0.2, 0.6], strategy="half", validation="both"),
            trained(**common, value=0.9, strategy="all", validation="masked"),
            trained(**common, value=0.9, strategy="half", validation="unmasked"),
        ]
    )
    chart = figure("epochs", train=train)
    found = {(row["tuning"], row["epoch"]): row["mean"] for row in shown(chart, "RTE", "mean")}
    assert found == pytest.approx({("Plain", 1): 60, ("Plain", 2): 70, ("Masked", 1): 20, ("Masked", 2): 50})


def measured(**columns: Any) -> DataFrame:
    common: dict[str, Any] = {"task": "RTE", "model": "hub/m", "seed": 0, "strategy": "half"}
    common |= {
        "scope": "explained",
        "validation": "both",
        "percent": 50,
        "metric": "accuracy",
        "value": 0.5,
        "converged": True,
    }
    common |= {"texts": 100, "random": 0.8, "p_published": 0.5, "p_crossfit": 0.5}
    return DataFrame({**common, **columns})


def test_pvalues_by_calibration_and_fine_tuning() -> None:
    frame = pd.concat(
        [
            measured(seed=[0, 1], method="loo-sign", p_published=[0.2, 0.4], p_crossfit=[0.1, math.nan]),
            measured(seed=[0], method="random", p_published=0.0, strategy="none", validation="unmasked"),
            measured(seed=[0], method="random", p_published=0.9, strategy="all", validation="masked"),
        ]
    )
    chart = figure("pvalues-published", measure=frame)
    found = {(row["tuning"], row["label"]): row["mean"] for row in shown(chart, "RTE", "mean")}
    assert found == pytest.approx({("Masked", "loo-sign"): 0.3, ("Plain", "random"): 0})
    assert {row["level"] for row in shown(chart, "RTE", "level")} == {0.05}
    crossfit = figure("pvalues-crossfit", measure=frame)
    [row] = shown(crossfit, "RTE", "mean", tuning="Masked")
    assert (row["mean"], row["n"]) == (0.1, 1)  # a test that was not made does not count


def test_faithfulness_has_random_in_both_groups_and_only_converged_runs() -> None:
    methods = ["random", "grad-l2", "beam", "loo-sign", "loo-abs", "shap-sign", "lime", "beam(width=20)"]
    frame = pd.concat(
        [
            measured(method=methods),
            measured(method=methods, seed=1, value=0.7),
            measured(method=methods, seed=2, value=0.1, converged=False),
            measured(method=methods, value=0.0, strategy="none", validation="unmasked"),
        ]
    )
    rows = shown(figure("faithfulness", measure=frame), "RTE", "mean")
    found = {(row["model"], row["label"] == "random", row["mean"], row["n"]) for row in rows}
    assert found == {("m", False, 60, 2), ("m", True, 80, 2)}
    groups = {
        group: {row["label"] for row in rows if row["group"] == group} for group in ("Absolute", "Signed")
    }
    assert groups == {
        "Absolute": {"random", "grad-l2", "loo-abs"},
        "Signed": {"random", "beam", "beam(width=20)", "loo-sign", "shap-sign", "lime"},
    }, "a method that is not imported is not guessed to be absolute"


def test_curves_of_fewer_texts_have_a_random_one_of_their_own() -> None:
    frame = pd.concat(
        [
            measured(method=["random", "grad-l2", "loo-sign"], value=[0.8, 0.4, 0.3]),
            measured(method=["beam"], value=0.2, texts=50, random=0.7),
            measured(method=["beam"], task="CoLA", value=0.2, texts=50, random=0.6),
        ]
    )
    spec = figure("faithfulness", measure=frame)
    found = {(row["group"], row["label"]): row["mean"] for row in shown(spec, "RTE", "mean")}
    assert found == pytest.approx(
        {
            ("Absolute", "grad-l2"): 40,
            ("Absolute", "random"): 80,
            ("Signed", "loo-sign"): 30,
            ("Signed", "random"): 80,
            ("Signed", "beam (50 texts)"): 20,
            ("Signed", "random (50 texts)"): 70,
        }
    )
    alone = {row["label"]: row["mean"] for row in shown(spec, "CoLA", "mean")}
    assert alone == pytest.approx({"beam": 20, "random": 60})  # nothing there is of more texts
    line = spec["concat"][0]["spec"]["layer"][1]["encoding"]
    color, dash = (line[channel]["scale"] for channel in ("color", "strokeDash"))
    labels = dict(zip(color["domain"], zip(color["range"], dash["range"], strict=True), strict=True))
    assert labels["random (50 texts)"] == (labels["beam (50 texts)"][0], [4, 2])
    assert labels["random"][0] != labels["beam (50 texts)"][0] == labels["beam"][0]


def test_random_alone_is_drawn_once() -> None:
    rows = shown(figure("faithfulness", measure=measured(method=["random"])), "RTE", "mean")
    assert [(row["group"], row["label"], row["mean"]) for row in rows] == [("Absolute", "random", 80)]


def test_a_legend_lists_what_is_there() -> None:
    train = pd.concat([trained(value=[0.5]), trained(value=[0.6], strategy="half", validation="both")])
    other = trained(value=[0.6], strategy="half", validation="masked")
    runs = {"performance-unmasked": train, "ablation-unmasked-test": pd.concat([train, other])}
    for name, train in runs.items():
        layers = figure(name, train=train)["concat"][0]["spec"]["layer"]
        scale = layers[1]["encoding"]["color"]["scale"]  # of the crosses
        assert scale == layers[3]["encoding"]["color"]["scale"]
        assert scale["domain"] in (["Plain", "Masked"], ["none", "half"])


def test_roar_stands_beside_ours_for_its_methods() -> None:
    ours = measured(method=["random", "loo-abs", "beam"], value=[0.6, 0.4, 0.1], random=0.6)
    theirs = ours[["task", "model", "seed", "metric", "percent"]].assign(
        method=["random", "loo-abs", "random"]
    )
    theirs = theirs.assign(seed=[0, 0, 1], value=[0.7, 0.8, 0.9])
    rows = shown(figure("roar", measure=ours, roar=theirs), "RTE", "mean")
    found = {(row["way"], row["label"]): row["mean"] for row in rows}
    expected = {("Recursive ROAR", "random"): 80, ("Recursive ROAR", "loo-abs"): 80}
    assert found == pytest.approx({**expected, ("Ours", "random"): 60, ("Ours", "loo-abs"): 40})


def test_models_of_the_same_last_part_are_told_apart() -> None:
    frame = measured(method="random", model=["a/m", "b/m", "x/large"])
    rows = shown(figure("faithfulness", measure=frame), "RTE", "mean")
    assert {row["model"] for row in rows} == {"a/m", "b/m", "large"}


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_figures_come_out_in_three_formats(name: str, charts: dict[str, Any], tmp_path: Path) -> None:
    pdf, svg, png = figures.save(charts[name], tmp_path / "new", name)
    assert [file.name for file in (pdf, svg, png)] == [f"{name}.pdf", f"{name}.svg", f"{name}.png"]
    assert pdf.read_bytes().startswith(b"%PDF")
    assert pdf.stat().st_size > 10_000
    assert png.read_bytes().startswith(b"\x89PNG")
    assert png.stat().st_size > 20_000
    drawn = svg.read_text(encoding="utf-8")
    panels = titles(figures.spec(charts[name]))
    words = {
        *panels,
        *panels.values(),
        *X_TITLES.get(name.split("-")[0], ()),
        "roberta-base",
        "roberta-large",
    }
    assert {word for word in words if f">{word}<" not in drawn} == set()
    assert "NaN" not in drawn
    assert "/models" not in drawn


@pytest.mark.parametrize("name", figures.FIGURES)
def test_figures_follow_the_schema_of_vega_lite(name: str, charts: dict[str, Any]) -> None:
    """Pages are written from specs that are not validated again."""
    valid = charts[name].to_dict(validate=True)
    assert figures.spec(charts[name]) == {key: value for key, value in valid.items() if key != "config"}


@pytest.mark.parametrize("name", figures.FIGURES)
def test_nothing_in_nothing_out(name: str, frames: dict[str, DataFrame]) -> None:
    assert figures.FIGURES[name]({kind: frame.head(0) for kind, frame in frames.items()}) is None
    bare = {kind: DataFrame(columns=frame.columns) for kind, frame in frames.items()}
    assert figures.FIGURES[name](bare) is None


def test_a_spec_takes_the_theme_of_its_page(charts: dict[str, Any]) -> None:
    spec = figures.spec(charts["faithfulness"])
    assert not {"config", "params"} & set(spec)
    light, dark = figures.config(dark=False), figures.config(dark=True)
    assert light["background"] == dark["background"] == "transparent"
    assert light["axis"]["labelColor"] != dark["axis"]["labelColor"]
    drawn = vl_convert.vegalite_to_svg({**spec, "config": dark})
    assert dark["title"]["color"] in drawn
    assert light["title"]["color"] not in drawn


def test_many_panels_are_also_written_page_by_page(
    charts: dict[str, Any], tmp_path: Path, monkeypatch
) -> None:
    chart = charts["performance-unmasked"]
    panels = list(titles(figures.spec(chart)))
    monkeypatch.setattr(figures, "MAX_PANELS_PER_PAGE", len(panels) - 1)
    written = figures.save(chart, tmp_path, "many")
    assert [file.name for file in written if file.suffix == ".svg"] == [
        "many.svg",
        "many-1.svg",
        "many-2.svg",
    ]
    whole, first, second = (file.read_text(encoding="utf-8") for file in written if file.suffix == ".svg")
    for place, panel in enumerate(panels):
        found = [f">{panel}<" in page for page in (whole, first, second)]
        assert found == [True, place < len(panels) - 1, place == len(panels) - 1]


def axis_of(spec: dict[str, Any]) -> list[float]:
    return spec["concat"][0]["spec"]["layer"][-1]["encoding"]["y"]["scale"]["domain"]


def test_axes_of_performance_begin_at_the_majority_or_at_zero() -> None:
    pair = {"strategy": ["none", "half"], "validation": ["unmasked", "both"], "majority": 0.5}
    above = figure("performance-unmasked", train=trained(**pair, value=[0.9, 0.8]))
    assert axis_of(above) == pytest.approx([50, 90 + 0.06 * 40])
    below = figure("performance-unmasked", train=trained(**pair, value=[0.9, 0.4]))
    assert axis_of(below)[0] == 0
    negative = figure("performance-unmasked", train=trained(**pair, metric="matthews", value=[0.9, -0.1]))
    assert axis_of(negative)[0] == pytest.approx(-10)
    assert axis_of(figure("faithfulness", measure=measured(method=["loo-abs"])))[0] == 0
    assert axis_of(figure("pvalues-crossfit", measure=measured(method=["loo-abs"]))) == [0, 1]


def test_one_point_is_no_chart_and_named_strategies_alone_are_no_ablation() -> None:
    one = {"train": trained(value=[0.9])}
    assert figures.FIGURES["performance-unmasked"](one) is None
    epoch = {"train": trained(value=[0.9], split="validation")}
    assert figures.FIGURES["epochs"](epoch) is None
    named = trained(strategy=["none", "half"], validation=["unmasked", "both"], value=0.5)
    assert figures.FIGURES["ablation-unmasked-test"]({"train": named}) is None
    assert figures.FIGURES["performance-unmasked"]({"train": named}) is not None


def test_methods_and_models_are_called_as_people_write_them() -> None:
    assert display_names(["loo-sign", "beam(width=20)", "beam (50 texts)", "grad-l1", "half", "mine"]) == {
        "loo-sign": "LOO (sign)",
        "beam(width=20)": "Beam (width=20)",
        "beam (50 texts)": "Beam (50 texts)",
        "grad-l1": "Grad (L1)",
        "half": "50/50",
        "mine": "mine",
    }
    spec = figure("faithfulness", measure=measured(method=["loo-sign", "loo-abs"]))
    legend = spec["concat"][0]["spec"]["layer"][1]["encoding"]["strokeDash"]["legend"]
    assert '"loo-sign": "LOO (sign)"' in legend["labelExpr"]


def test_the_axis_of_p_values_spreads_the_small_ones() -> None:
    spec = figure("pvalues-crossfit", measure=measured(method=["loo-sign", "loo-abs"]))
    axes = [layer["encoding"]["y"] for layer in spec["concat"][0]["spec"]["layer"]]
    assert {axis["scale"]["type"] for axis in axes} == {"pow"}
    assert SIGNIFICANCE_LEVEL in axes[0]["axis"]["values"]
    # at a third of the height instead of a twentieth
    assert SIGNIFICANCE_LEVEL ** axes[0]["scale"]["exponent"] == pytest.approx(0.37, abs=0.01)


def test_legends_of_curves_have_their_dashes() -> None:
    spec = figure("faithfulness", measure=measured(method=["loo-sign", "loo-abs"]))
    _, line, point = spec["concat"][0]["spec"]["layer"]
    dash, shape = line["encoding"]["strokeDash"], point["encoding"]["shape"]
    assert dash["legend"] == shape["legend"]
    assert dash["legend"]["symbolStrokeWidth"] > 0
    assert dict(zip(dash["scale"]["domain"], dash["scale"]["range"], strict=True))["loo-sign"] == [4, 2]
    assert all(path.endswith("H3.4") for path in shape["scale"]["range"])  # a line through the shape


def test_models_without_masked_fine_tuning_have_curves_with_intervals_over_texts() -> None:
    bounds = {"value_lower": 0.4, "value_upper": 0.7, "random_lower": 0.75, "random_upper": 0.85}
    for strategy in ("none", "unknown"):
        frame = measured(method=["loo-abs"], strategy=strategy, **bounds)
        rows = shown(figure("faithfulness", measure=frame), "RTE", "mean")
        found = {row["label"]: (row["mean"], row["lower"], row["upper"]) for row in rows}
        assert found == {"loo-abs": (50, 40, 70), "random": (80, 75, 85)}
