"""Sections of the page, with their order, figures, tables and texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ...config import BASELINE, SIGNIFICANCE_LEVEL


class Figure(NamedTuple):
    """Chart with its name, caption and Vega-Lite spec."""

    name: str
    title: str
    spec: dict[str, Any]


@dataclass(frozen=True)
class Section:
    """Section of the page.

    Its figures and tables are names in `SECTIONS`; `fill_sections` replaces them with values. A section with
    its own template has neither.
    """

    anchor: str
    title: str
    lead: str = ""
    figures: tuple[Any, ...] = ()
    tables: tuple[Any, ...] = ()
    folded_figures: tuple[Any, ...] = ()
    folded_tables: tuple[Any, ...] = ()
    sentences: tuple[str, ...] = ()
    curve_names: tuple[str, ...] = ()  # curves that can be switched off
    own_template: bool = False

    @property
    def paired(self) -> bool:
        """Whether the section has several figures of one panel each, which fit side by side."""
        return len(self.figures) > 1 and all(len(figure.spec["concat"]) == 1 for figure in self.figures)

    @property
    def empty(self) -> bool:
        parts = (self.figures, self.tables, self.folded_figures, self.folded_tables, self.sentences)
        return not (self.own_template or any(parts))


SECTIONS = (
    Section(
        "faithfulness",
        "Faithfulness curves",
        "The faster a curve falls below random, the more faithful the explanation: the words that it calls "
        "important are those that the model needs.",
        figures=("faithfulness",),
        folded_figures=("roar",),
    ),
    Section("examples", "Examples", own_template=True),
    Section(
        "areas",
        "Faithfulness in numbers",
        "ACU is the area between the curves of random and of the method; RACU divides it by the largest area "
        "that a method without signs could reach.",
        tables=("faithfulness", "plausibility"),
        folded_tables=("other_metrics",),
    ),
    Section(
        "check",
        "Are masked texts in distribution?",
        f"A p-value below {SIGNIFICANCE_LEVEL} (dashed) means that the masked texts are unlike those that "
        "the model knows from training: its predictions on them say nothing about the explanation.",
        figures=("pvalues-crossfit",),
        folded_figures=("pvalues-published",),
    ),
    Section(
        "performance",
        "Performance",
        "Masked fine-tuning should cost nothing on whole texts. On wholly masked texts the best answer is "
        "the most frequent class.",
        figures=("performance-unmasked", "performance-masked"),
        tables=("models",),
        folded_figures=(
            *("epochs", "ablation-unmasked-test", "ablation-masked-test"),
            *("ablation-unmasked-validation", "ablation-masked-validation"),
        ),
    ),
    Section("methods", "Methods and settings", own_template=True),
    Section(
        "more",
        "Costs, data and time",
        "How much each method costs, the datasets of the runs, and the time they took.",
        figures=("pareto",),
    ),
    Section("reproduce", "Reproduce", own_template=True),
)
"""Sections in the order of the page; `REST` holds, folded, figures and tables that no other section names."""
REST = "more"

TASK_TABLE_PREFIX = "faithfulness_"
"""Prefix of the tables of single tasks, which the page omits because another table includes them."""
AXIS = "axes begin at the most frequent class, or at 0 if a value lies below"
TITLES = {
    "performance-unmasked": f"Performance on whole test texts; dashed: plain fine-tuning; {AXIS}",
    "performance-masked": f"Performance on wholly masked test texts; dashed: the most frequent class; {AXIS}",
    "epochs": "Performance on whole validation texts by epoch",
    "ablation-unmasked-test": "Training and validation strategies: whole test texts",
    "ablation-masked-test": "Training and validation strategies: wholly masked test texts",
    "ablation-unmasked-validation": "Training and validation strategies: whole validation texts",
    "ablation-masked-validation": "Training and validation strategies: wholly masked validation texts",
    "pvalues-crossfit": "In-distribution p-values of the cross-fitted test, by percent of tokens masked",
    "pvalues-published": "In-distribution p-values of the published test",
    "faithfulness": "Performance by percent of tokens masked",
    "pareto": "Area by evaluations per text of each method alone, a gradient counted as one; dashed: no "
    "cheaper method has more",
    "roar": "Recursive ROAR beside masked fine-tuning",
}
INTERVAL_CAPTION = "; ribbons and bars: 95 % intervals over {}"
FEWER_TEXTS_CAPTION = "; labels with a number: measured on fewer texts than the others"


def fill_sections(
    specs: Mapping[str, dict[str, Any]],
    tables: Mapping[str, Any],
    performance: Sequence[str] = (),
    *,
    pooled: bool = False,
) -> list[Section]:
    """Return the sections that have content, with their figures, tables and sentences.

    Args:
        specs: Vega-Lite specs of the figures by name.
        tables: Tables by name.
        performance: Sentences on the performance of runs that no chart shows.
        pooled: Whether the curves of several seeds have intervals over seeds and texts together.
    """
    figures = {name: Figure(name, _caption(name, spec, pooled), spec) for name, spec in specs.items()}
    tables = {name: table for name, table in tables.items() if not name.startswith(TASK_TABLE_PREFIX)}
    placed = {
        name
        for section in SECTIONS
        for name in (*section.figures, *section.folded_figures, *section.tables, *section.folded_tables)
    }
    other_figures = tuple(name for name in figures if name not in placed)
    other_tables = tuple(name for name in tables if name not in placed)
    filled = []
    for section in SECTIONS:
        if section.anchor == REST:
            section = replace(section, folded_figures=other_figures, folded_tables=other_tables)
        filled.append(_fill(section, figures, tables, performance))
    return [section for section in filled if not section.empty]


def _fill(
    section: Section, figures: Mapping[str, Figure], tables: Mapping[str, Any], performance: Sequence[str]
) -> Section:
    def select(names: tuple[str, ...], values: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(values[name] for name in names if name in values)

    charts = select(section.figures, figures)
    return replace(
        section,
        figures=charts,
        tables=select(section.tables, tables),
        folded_figures=select(section.folded_figures, figures),
        folded_tables=select(section.folded_tables, tables),
        sentences=tuple(performance) if section.anchor == "performance" else (),
        curve_names=_curve_names(charts[0].spec) if section.anchor == "faithfulness" and charts else (),
    )


def _caption(name: str, spec: Mapping[str, Any], pooled: bool) -> str:
    points = [row for rows in spec["datasets"].values() for row in rows if row["part"] == "mean"]
    over = "seeds" if any(point["n"] > 1 for point in points) else "texts"
    if over == "seeds" and pooled and name == "faithfulness":
        over = "seeds and texts"
    has_intervals = any(point.get("lower", 0) < point.get("upper", 0) for point in points)
    intervals = INTERVAL_CAPTION.format(over) if has_intervals else ""
    fewer_texts = any(label.endswith(" texts)") for label in _labels(spec))
    return TITLES.get(name, name) + intervals + FEWER_TEXTS_CAPTION * fewer_texts


def _curve_names(spec: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the labels of a chart in the order of its legend, but with random erasure last."""
    return tuple(sorted(_labels(spec), key=lambda label: label.startswith(BASELINE)))


def _labels(spec: Mapping[str, Any]) -> list[str]:
    """Return the labels in the legend of a chart."""
    labels: list[str] = spec["concat"][0]["spec"]["layer"][-1]["encoding"]["color"]["scale"]["domain"]
    return labels
