"""Sections of the page, with their order, contents and texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from ...config import BASELINE, SIGNIFICANCE_LEVEL
from ..blocks import Block, Figure, Section


@dataclass(frozen=True)
class Part:
    """Section of the page.

    Attributes:
        visible: Names of its contents.
        folded: Names of contents that the reader opens.
        blocks: The contents that there are.
    """

    anchor: str
    title: str
    lead: str
    visible: tuple[str, ...] = ()
    folded: tuple[str, ...] = ()
    blocks: Sequence[Block] = ()

    @property
    def curve_names(self) -> list[str]:
        """Labels of the curves that can be switched off, in the order of the legend, random erasure last."""
        figures = [block for block in self.blocks if isinstance(block, Figure)]
        if self.anchor != "faithfulness" or not figures:
            return []
        return sorted(_labels(figures[0].spec), key=lambda label: label.startswith(BASELINE))


SECTIONS = (
    Part(
        "faithfulness",
        "Faithfulness curves",
        "The faster a curve falls below random, the more faithful the explanation: the words that it calls "
        "important are those that the model needs.",
        ("figure faithfulness",),
        ("figure roar",),
    ),
    Part(
        "examples",
        "Examples",
        "Choose a text and a method, then erase: the slider masks the tokens that the method calls most "
        "important and shows how the prediction changes.",
        ("examples",),
    ),
    Part(
        "areas",
        "Faithfulness in numbers",
        "ACU is the area between the curves of random and of the method; RACU divides it by the largest area "
        "that a method without signs could reach.",
        ("table faithfulness", "table plausibility"),
        ("table other_metrics",),
    ),
    Part(
        "check",
        "Are masked texts in distribution?",
        f"A p-value below {SIGNIFICANCE_LEVEL} (dashed) means that the masked texts are unlike those that "
        "the model knows from training: its predictions on them say nothing about the explanation.",
        ("figure pvalues-crossfit",),
        ("figure pvalues-published",),
    ),
    Part(
        "performance",
        "Performance",
        "Masked fine-tuning should cost nothing on whole texts. On wholly masked texts the best answer is "
        "the most frequent class.",
        ("performance", "figure performance-unmasked", "figure performance-masked", "table models"),
        (
            *("figure epochs", "figure ablation-unmasked-test", "figure ablation-masked-test"),
            *("figure ablation-unmasked-validation", "figure ablation-masked-validation"),
        ),
    ),
    Part(
        "methods",
        "Methods and settings",
        "What each method computes, and the settings and machines of the runs.",
        ("methods",),
        ("settings",),
    ),
    Part(
        "more",
        "Costs, data and time",
        "How much each method costs, the datasets of the runs, and the time they took.",
        ("figure pareto",),
    ),
    Part(
        "reproduce",
        "Reproduce",
        "These commands repeat the runs of this page. A run is identified by its digest: equal settings give "
        "equal digests.",
        ("commands",),
        ("digests",),
    ),
)
"""Sections in the order of the page."""
REST = "more"
"""Section that holds, folded, the contents that no other names."""
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


def fill_sections(contents: Mapping[str, Sequence[Block]]) -> list[Part]:
    """Return the sections that have contents, which are given by name."""
    rest = set(contents).difference(*((*part.visible, *part.folded) for part in SECTIONS))
    filled = []
    for part in SECTIONS:
        # nothing that was drawn is lost: what no section names is folded in at the end
        folded = [*part.folded, *(filter(rest.__contains__, contents) if part.anchor == REST else ())]
        blocks = _choose(contents, part.visible)
        for block in _choose(contents, folded):
            blocks.append(
                block if isinstance(block, Section) else Section(block.title, (block,), folded=True)
            )
        if blocks:
            filled.append(replace(part, blocks=blocks))
    return filled


def _choose(contents: Mapping[str, Sequence[Block]], names: Iterable[str]) -> list[Any]:
    return list(chain.from_iterable(contents.get(name, ()) for name in names))


def caption(name: str, spec: Mapping[str, Any], *, pooled: bool) -> str:
    """Return the title of a figure, with what its intervals and labels mean if it has such.

    `pooled` tells whether the curves of several seeds have intervals over seeds and texts together.
    """
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
