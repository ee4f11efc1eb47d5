"""Colors, dashes and shapes of figures, which are distinct for color-blind readers and in grayscale."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import cycle
from typing import Any, NamedTuple

from ...config import BASELINE
from ...methods.registry import find_method
from ..values import METHOD_LABELS


class Style(NamedTuple):
    """Color, dash pattern and shape of a curve or point."""

    color: str
    dash: tuple[int, ...]
    shape: str  # SVG path in a box from -1 to 1


SOLID, DASHED = (1, 0), (4, 2)
SHAPES = {
    "circle": "M-1,0A1,1,0,1,1,1,0A1,1,0,1,1,-1,0Z",
    "square": "M-0.9,-0.9H0.9V0.9H-0.9Z",
    "cross": "M-0.4,-1H0.4V-0.4H1V0.4H0.4V1H-0.4V0.4H-1V-0.4H-0.4Z",
    "triangle-up": "M0,-1L1,0.8H-1Z",
    "triangle-down": "M0,1L-1,-0.8H1Z",
    "triangle-left": "M-1,0L0.8,-1V1Z",
    "triangle-right": "M1,0L-0.8,1V-1Z",
    "diamond": "M0,-1L1,0L0,1L-1,0Z",
    "pentagon": "M0,-1L0.95,-0.31L0.59,0.81H-0.59L-0.95,-0.31Z",
}
HOLES = {  # inner outlines run in the opposite direction, which leaves the inside unfilled
    "circle": "M-0.4,0A0.4,0.4,0,1,0,0.4,0A0.4,0.4,0,1,0,-0.4,0Z",
    "triangle-up": "M0,-0.2L-0.35,0.4H0.35Z",
    "triangle-down": "M0,0.2L0.35,-0.4H-0.35Z",
    "diamond": "M0,-0.45L-0.45,0L0,0.45L0.45,0Z",
}
HOLLOW = {name: SHAPES[name] + hole for name, hole in HOLES.items()}
# Palette of Okabe and Ito without black and yellow, which are hard to see on black or white.
ORANGE, SKY, GREEN, BLUE = "#E69F00", "#56B4E9", "#009E73", "#0072B2"
VERMILION, PURPLE, GRAY = "#D55E00", "#CC79A7", "#888888"
TRAINING = {
    "none": Style(VERMILION, DASHED, SHAPES["square"]),
    "all": Style(SKY, (2, 2), SHAPES["triangle-up"]),
    "half": Style(BLUE, SOLID, SHAPES["circle"]),
    "unknown": Style(PURPLE, SOLID, SHAPES["diamond"]),
}
VALIDATION = ("unmasked", "masked", "both")
STRATEGIES = {  # names of pairs of training and validation strategies
    ("none", "unmasked"): "Plain",
    ("all", "masked"): "Only masking",
    ("half", "both"): "Masked",
    ("unknown", "both"): "Training unknown",
}
STRATEGY_STYLES = {name: TRAINING[training] for (training, _), name in STRATEGIES.items()}
PLAIN, _, MASKED, UNKNOWN = STRATEGIES.values()

MODEL_NAMES = {"roberta-base": "RoBERTa-base", "roberta-large": "RoBERTa-large"}
TRAINING_NAMES = {"none": "no masking", "all": "masking", "half": "50/50"}
"""Names of training strategies in the paper's ablation."""

GROUPS = ("Absolute", "Signed")
CEILING = "ceiling"
"""Label of the best order of each text by any method."""
METHOD_STYLES = {
    BASELINE: Style(GRAY, SOLID, SHAPES["circle"]),
    "grad-l1": Style(SKY, SOLID, SHAPES["square"]),
    "grad-l2": Style(BLUE, SOLID, SHAPES["square"]),
    **{  # the signed variant of a measure is dashed and hollow
        f"{stem}-{sign}": Style(color, dash, shapes[shape])
        for stem, color, shape in (
            ("inp-grad", ORANGE, "triangle-up"),
            ("int-grad", GREEN, "diamond"),
            ("loo", VERMILION, "triangle-down"),
        )
        for sign, dash, shapes in (("abs", SOLID, SHAPES), ("sign", DASHED, HOLLOW))
    },
    "beam": Style(PURPLE, SOLID, SHAPES["cross"]),
    CEILING: Style(GRAY, (1, 2), SHAPES["triangle-right"]),
}
OTHER_STYLES = tuple(  # for methods of your own: neighbors differ in color, dash and shape
    Style(color, dash, SHAPES[shape])
    for color, (dash, shape) in zip(
        ("#A6761D", "#7A68C4", "#4D9221", "#B5446E") * 3,
        (((8, 2, 2, 2), "triangle-left"), ((2, 1), "triangle-right"), ((5, 3), "pentagon")) * 4,
        strict=True,
    )
)


def group(method: str) -> str:
    """Return the group of a method, "Absolute" or "Signed".

    Searches belong to the signed methods, because their curves may also fall below the fully erased level.
    So does your own method if it is not imported, because nothing is known of it.
    """
    known = find_method(method)
    return GROUPS[known is None or known.directed]


PLAIN_SIGNS = str.maketrans("⊙₁₂", "×12")
"""Signs that fonts of figures lack, so that renderers take another font for the whole name."""


def display_names(labels: Iterable[str]) -> dict[str, str]:
    """Return the name that people write for each label; "LOO (sign)" for `loo-sign`, as in the paper."""
    names = {}
    for label in labels:
        method, bracket, rest = label.partition("(")
        known = METHOD_LABELS.get(method.rstrip())
        written = known[0] if known else TRAINING_NAMES.get(label)
        names[label] = (
            label if written is None else f"{written} {bracket}{rest}".rstrip().translate(PLAIN_SIGNS)
        )
    return names


def assign_styles(labels: Iterable[str]) -> dict[str, Style]:
    """Return a style for each label, in the order of the legend.

    Built-in methods come first, then others by name, then labels with a number of texts. Random erasure with
    a number of texts is dashed, in the color of a method measured on the same texts.
    """
    parts = {label: label.partition(" (") for label in set(labels)}
    others = sorted({method for method, *_ in parts.values()} - set(METHOD_STYLES))
    known = {**METHOD_STYLES, **dict(zip(others, cycle(OTHER_STYLES), strict=False))}
    places = list(known)
    styles = {}
    # labels with a number of texts come last, so that the legend begins with what can be compared
    for label in sorted(parts, key=lambda label: (parts[label][2], places.index(parts[label][0]))):
        method, _, texts = parts[label]
        styles[label] = known[method]
        if method == BASELINE and texts:
            same_texts = sorted(name for name, _, own in parts.values() if own == texts and name != BASELINE)
            styles[label] = Style(known[[*same_texts, BASELINE][0]].color, DASHED, HOLLOW["circle"])
    return styles


def config(dark: bool = False) -> dict[str, Any]:
    """Return the Vega-Lite config (fonts, lines, colors) for a light or dark page."""
    text, quiet, faint = ("#E8E8E8", "#B8B8B8", "#3C3C3C") if dark else ("#111111", "#444444", "#E4E4E4")
    return {
        "background": "transparent",
        "font": "Helvetica, Arial, Liberation Sans, sans-serif",
        "view": {"stroke": quiet, "strokeWidth": 0.5},
        "facet": {"spacing": 8},
        "concat": {"spacing": 18},
        "title": {"color": text, "fontSize": 13, "anchor": "start", "offset": 4},
        "header": {"labelColor": text, "labelFontSize": 11, "labelPadding": 3, "labelLimit": 110},
        "axis": {
            **{"labelColor": quiet, "labelFontSize": 10, "titleColor": text, "titleFontSize": 11},
            **{"titleFontWeight": "normal", "titlePadding": 4, "labelPadding": 2, "tickSize": 3},
            **{"domain": False, "tickColor": quiet, "gridColor": faint, "gridWidth": 0.6},
        },
        "axisY": {"minExtent": 24},  # aligns the panels
        "legend": {
            **{"labelColor": text, "labelFontSize": 11, "labelLimit": 0, "titleColor": text},
            **{"titleFontSize": 11, "titleFontWeight": "normal", "titleOrient": "left", "orient": "top"},
            **{"symbolSize": 60, "columnPadding": 14, "rowPadding": 3, "offset": 12},
        },
        "style": {"baseline": {"color": text}},
    }
