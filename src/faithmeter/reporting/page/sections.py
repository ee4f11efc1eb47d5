"""Which figures and tables stand where on the page, and what is said about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ...config import BASELINE


class Figure(NamedTuple):
    """A chart's name, what it shows, and its Vega-Lite spec."""

    name: str
    title: str
    spec: dict[str, Any]


@dataclass(frozen=True)
class Section:
    """A part of the page: names of its figures and tables, in sight and folded; or, once filled, these."""

    anchor: str
    title: str
    lead: str
    figures: tuple[Any, ...] = ()
    tables: tuple[Any, ...] = ()
    folded_figures: tuple[Any, ...] = ()
    folded_tables: tuple[Any, ...] = ()
    switch: tuple[str, ...] = ()

    @property
    def paired(self) -> bool:
        """Whether the figures are small enough to stand side by side: one panel each."""
        return len(self.figures) > 1 and all(len(figure.spec["concat"]) == 1 for figure in self.figures)

    @property
    def empty(self) -> bool:
        return not (self.figures or self.tables or self.folded_figures or self.folded_tables)


SECTIONS = (
    Section(
        "performance",
        "Performance by strategy",
        "Masked fine-tuning should cost nothing on whole texts, and keep the model sensible when texts are "
        "masked. Crosses are seeds, dots their means with 95 % intervals.",
        figures=("performance-unmasked", "performance-masked"),
        tables=("models",),
        folded_figures=(
            *("epochs", "ablation-unmasked-test", "ablation-masked-test"),
            *("ablation-unmasked-validation", "ablation-masked-validation"),
        ),
    ),
    Section(
        "check",
        "Are masked texts in distribution?",
        "A p-value below 0.05 (dashed) says that texts masked so far are foreign to the model: what it does "
        "with them then tells nothing about the explanation.",
        figures=("pvalues-crossfit",),
        folded_figures=("pvalues-published",),
    ),
    Section(
        "faithfulness",
        "Faithfulness curves",
        "The faster a curve falls below random, the more faithful the explanation: what it calls important "
        "is what the model needs.",
        figures=("faithfulness",),
        folded_figures=("roar",),
    ),
    Section(
        "areas",
        "Faithfulness in numbers",
        "ACU is the area between random and the method's curve; RACU divides it by the most that an unsigned "
        "method could reach. Published numbers stand beside ours where the paper has them.",
        tables=("faithfulness",),
    ),
    Section("more", "Data, models and time", "What was used and what it took."),
)
"""The last one takes, folded, whatever has no place elsewhere."""

BY_TASK = "faithfulness_"
"""Such tables are parts of another."""
TITLES = {
    "performance-unmasked": "Performance on unmasked test texts; dashed: plain fine-tuning",
    "performance-masked": "Performance on fully masked test texts; dashed: always the most frequent class",
    "epochs": "Performance on unmasked validation texts by epoch",
    "ablation-unmasked-test": "Training and validation strategies: unmasked test texts",
    "ablation-masked-test": "Training and validation strategies: fully masked test texts",
    "ablation-unmasked-validation": "Training and validation strategies: unmasked validation texts",
    "ablation-masked-validation": "Training and validation strategies: fully masked validation texts",
    "pvalues-crossfit": "In-distribution p-values by the cross-fitted test, by percent of the tokens erased",
    "pvalues-published": "In-distribution p-values by the test as published",
    "faithfulness": "Performance by percent of the tokens erased; ribbons: 95 % intervals over seeds",
    "roar": "Recursive ROAR beside masked fine-tuning",
}
FEWER = "; labels with a number: measured on fewer texts than the others"


def filled(specs: Mapping[str, dict[str, Any]], tables: Mapping[str, Any]) -> list[Section]:
    """The sections that have something to show, with what they show."""
    figures = {name: Figure(name, _title(name, spec), spec) for name, spec in specs.items()}
    tables = {name: table for name, table in tables.items() if not name.startswith(BY_TASK)}
    placed = {
        name
        for section in SECTIONS
        for name in (*section.figures, *section.folded_figures, *section.tables, *section.folded_tables)
    }
    *first, last = SECTIONS
    last = replace(
        last,
        folded_figures=tuple(name for name in figures if name not in placed),
        folded_tables=tuple(name for name in tables if name not in placed),
    )
    sections = [_filled(section, figures, tables) for section in (*first, last)]
    return [section for section in sections if not section.empty]


def _filled(section: Section, figures: Mapping[str, Figure], tables: Mapping[str, Any]) -> Section:
    def there(names: tuple[str, ...], things: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(things[name] for name in names if name in things)

    chosen = there(section.figures, figures)
    return replace(
        section,
        figures=chosen,
        tables=there(section.tables, tables),
        folded_figures=there(section.folded_figures, figures),
        folded_tables=there(section.folded_tables, tables),
        switch=_switch(chosen[0].spec) if section.anchor == "faithfulness" and chosen else (),
    )


def _title(name: str, spec: Mapping[str, Any]) -> str:
    fewer = any(label.endswith(" texts)") for label in _labels(spec))
    return TITLES.get(name, name) + (FEWER if fewer else "")


def _switch(spec: Mapping[str, Any]) -> tuple[str, ...]:
    """The curves of a chart in the order of its legend, random last."""
    return tuple(sorted(_labels(spec), key=lambda label: label.startswith(BASELINE)))


def _labels(spec: Mapping[str, Any]) -> list[str]:
    """What the colors of a chart stand for."""
    found: list[str] = spec["concat"][0]["spec"]["layer"][-1]["encoding"]["color"]["scale"]["domain"]
    return found
