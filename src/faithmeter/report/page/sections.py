"""Sections of the page, with their order, figures, tables and texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ...config import BASELINE, SIGNIFICANCE_LEVEL
from ..blocks import Table


class Figure(NamedTuple):
    """Chart with its name, caption and Vega-Lite spec."""

    name: str
    title: str
    spec: dict[str, Any]


@dataclass(frozen=True)
class Section:
    """Section of the page.

    `SECTIONS` has the names of its figures and tables, which `fill_sections` replaces with values. A section
    with its own template has neither.
    """

    anchor: str
    title: str
    lead: str = ""
    parts: tuple[Any, ...] = ()
    folded: tuple[Any, ...] = ()
    own_template: bool = False

    @property
    def figures(self) -> list[Figure]:
        """Figures that are not folded."""
        return [part for part in self.parts if isinstance(part, Figure)]

    @property
    def paired(self) -> bool:
        """Whether the section has several figures of one panel each, which fit side by side."""
        panels = [len(figure.spec["concat"]) for figure in self.figures]
        return len(panels) > 1 and max(panels) == 1  # a second panel would not fit beside another figure

    @property
    def curve_names(self) -> list[str]:
        """Labels of the curves that can be switched off, in the order of the legend, random erasure last."""
        if self.anchor != "faithfulness" or not self.figures:
            return []
        return sorted(_labels(self.figures[0].spec), key=lambda label: label.startswith(BASELINE))


SECTIONS = (
    Section(
        "faithfulness",
        "Faithfulness curves",
        "The faster a curve falls below random, the more faithful the explanation: the words that it calls "
        "important are those that the model needs.",
        parts=("faithfulness",),
        folded=("roar",),
    ),
    Section("examples", "Examples", own_template=True),
    Section(
        "areas",
        "Faithfulness in numbers",
        "ACU is the area between the curves of random and of the method; RACU divides it by the largest area "
        "that a method without signs could reach.",
        parts=("table faithfulness", "table plausibility"),
        folded=("table other_metrics",),
    ),
    Section(
        "check",
        "Are masked texts in distribution?",
        f"A p-value below {SIGNIFICANCE_LEVEL} (dashed) means that the masked texts are unlike those that "
        "the model knows from training: its predictions on them say nothing about the explanation.",
        parts=("pvalues-crossfit",),
        folded=("pvalues-published",),
    ),
    Section(
        "performance",
        "Performance",
        "Masked fine-tuning should cost nothing on whole texts. On wholly masked texts the best answer is "
        "the most frequent class.",
        parts=("performance-unmasked", "performance-masked", "table models"),
        folded=(
            *("epochs", "ablation-unmasked-test", "ablation-masked-test"),
            *("ablation-unmasked-validation", "ablation-masked-validation"),
        ),
    ),
    Section("methods", "Methods and settings", own_template=True),
    Section(
        "more",
        "Costs, data and time",
        "How much each method costs, the datasets of the runs, and the time they took.",
        parts=("pareto",),
    ),
    Section("reproduce", "Reproduce", own_template=True),
)
"""Sections in the order of the page.

`REST` holds, folded, the figures and tables that no other section names; `PERFORMANCE` has sentences, too.
"""
REST, PERFORMANCE = "more", "performance"

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
    tables: Mapping[str, Table],
    performance: Sequence[str] = (),
    *,
    pooled: bool = False,
) -> list[Section]:
    """Return the sections that have content, with their figures and tables.

    Args:
        specs: Vega-Lite specs of the figures by name.
        tables: Tables by name.
        performance: Sentences on the performance of runs that no chart shows.
        pooled: Whether the curves of several seeds have intervals over seeds and texts together.
    """
    known: dict[str, Figure | Table] = {}
    for name, spec in specs.items():
        known[name] = Figure(name, _caption(name, spec, pooled), spec)
    for name, table in tables.items():  # a figure and a table may have the same name
        if not name.startswith(TASK_TABLE_PREFIX):
            known[f"table {name}"] = table
    rest = set(known).difference(*((*section.parts, *section.folded) for section in SECTIONS))
    filled = []
    for section in SECTIONS:
        # nothing that was drawn is lost: what no section names is folded in at the end
        folded = [*section.folded, *(filter(rest.__contains__, known) if section.anchor == REST else ())]
        section = replace(section, parts=_choose(known, section.parts), folded=_choose(known, folded))
        has_sentences = performance and section.anchor == PERFORMANCE
        if section.own_template or section.parts or section.folded or has_sentences:
            filled.append(section)
    return filled


def _choose(known: Mapping[str, Figure | Table], names: Iterable[str]) -> tuple[Figure | Table, ...]:
    return tuple(known[name] for name in names if name in known)


def _caption(name: str, spec: Mapping[str, Any], pooled: bool) -> str:
    """Return the title of a figure, with what its intervals and labels mean if it has such."""
    # what the intervals are over is read from the data, so that a caption cannot claim another thing
    points = [row for rows in spec["datasets"].values() for row in rows if row["part"] == "mean"]
    over = "seeds" if any(point["n"] > 1 for point in points) else "texts"
    if over == "seeds" and pooled and name == "faithfulness":
        over = "seeds and texts"
    has_intervals = any(point.get("lower", 0) < point.get("upper", 0) for point in points)
    intervals = INTERVAL_CAPTION.format(over) if has_intervals else ""
    fewer_texts = any(label.endswith(" texts)") for label in _labels(spec))
    return TITLES.get(name, name) + intervals + FEWER_TEXTS_CAPTION * fewer_texts


def _labels(spec: Mapping[str, Any]) -> list[str]:
    """Return the labels in the legend of a chart; its last layer, the points, has a color for each."""
    labels: list[str] = spec["concat"][0]["spec"]["layer"][-1]["encoding"]["color"]["scale"]["domain"]
    return labels
