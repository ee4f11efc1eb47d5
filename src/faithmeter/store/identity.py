"""Identity of traces: a digest of everything that their numbers depend on, and of nothing else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ..data.splits import digest
from ..errors import InputError
from ..source import digest_source

if TYPE_CHECKING:
    from datasets import Dataset

    from ..measuring.plan import Plan, Settings
    from ..methods.registry import Method
    from ..stats.masf import MaSF

TRACE_FORMAT: Final = 1
"""Version of the traces; it changes when their files, or what erasure does, change."""


def digest_values(values: Mapping[str, Any]) -> str:
    """Return a digest of plain values, 16 hexadecimal digits."""
    text = json.dumps(values, sort_keys=True, ensure_ascii=False, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def describe_subject(plan: Plan) -> dict[str, Any]:
    """Return what all traces of a measurement share: the model, how it reads texts, and the texts.

    The rows are those of the whole split, so that a larger limit continues the same traces.

    Raises:
        InputError: The model has no fingerprint.
    """
    fingerprint = getattr(plan.evaluator, "fingerprint", "")
    if not fingerprint:
        kind = type(plan.evaluator.clf).__name__
        raise InputError(f"a {kind} has no fingerprint, by which kept traces are found; use fm.Classifier")
    return {
        "format": TRACE_FORMAT,
        # weights and tokenizer, wherever the checkpoint lies: a copy finds the same traces
        "fingerprint": fingerprint,
        "classes": list(plan.evaluator.labels),
        "label": getattr(plan.evaluator, "label", None),
        # another number type or windowing gives other logits for the same text
        "precision": plan.settings.precision,
        "overlap": plan.settings.overlap,
        "unit": plan.settings.unit,
        # of the whole split, so that its first 48 texts are the same rows for every limit
        "rows": digest_rows(plan.rows, plan.match.numbers),
        **({} if plan.settings.explain == "label" else {"explain": plan.settings.explain}),
    }


def digest_rows(rows: Dataset, classes: tuple[int, ...]) -> str:
    """Return a digest of texts, contexts, labels as classes of the model, numbers and rationales."""
    # numbers and rationales are no part of `digest`, which checkpoints of 0.2 were trained with
    others = {}
    for name in ("value", "supporting"):
        if name in rows.column_names:
            others[name] = rows[name][:]
    return digest_values({"rows": digest(rows), "classes": classes, **others})


def describe_trace(method: Method, settings: Settings) -> dict[str, Any]:
    """Return what a trace depends on besides its subject: the method with its options and code, the steps.

    Neither tests nor limit, metric and complement are part of it: they change no step of the erasure. The
    seed of `random` is one of its options.
    """
    return {
        "format": TRACE_FORMAT,
        "method": method.name,
        # with defaults, so that `beam` and `beam(width=10)` share one trace
        "options": {name: repr(value) for name, value in method.options_with_defaults.items()},
        # a trace of an older version of a method must not answer for the new one
        "code": method.code or digest_source(method.function, name=f"method {method.name!r}"),
        # erasure asks them: a recursive method explains again at every step
        "flags": [method.recursive, method.signed, method.directed],
        "percents": list(settings.percents),
    }


def name_trace(description: Mapping[str, Any]) -> str:
    """Return the name of a trace's folder: the method, readable, and the digest that identifies it."""
    return f"{description['method']}-{digest_values(description)}"


def name_test(name: str, test: MaSF) -> str:
    """Return the name of a fitted test in files: its own, and a digest of what it was fitted on."""
    content = hashlib.sha256(f"{test.calibration} {test.trained_with}".encode())
    # all that a p-value is computed from: equal content gives equal p-values
    for values in (test.columns_, test.layers_, test.statistics_):
        content.update(values.tobytes())
    return f"{name}-{content.hexdigest()[:8]}"
