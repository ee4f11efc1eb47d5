"""Masked language models as text classifiers whose explanations can be measured for faithfulness.

The packages follow the data: a text becomes tokens, masked inputs, scores, curves, a verdict, a report.
`LAYERS` lists them in that order; each imports only those before it. Importing `faithmeter` is fast, because
a public name loads its module on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str
    from .config import AdaptConfig, TrainConfig
    from .errors import InputError
    from .explanations.explanation import Explanation, explain_text
    from .explanations.pipeline import Pipeline, pipeline
    from .explanations.registered import register_pipeline
    from .faithfulness.check import fit_tests
    from .faithfulness.curves import Curve, acu, racu
    from .faithfulness.dataset import measure
    from .faithfulness.erasure import erase
    from .faithfulness.intervals import bootstrap_interval
    from .faithfulness.masf import MaSF
    from .faithfulness.measurement import Measurement
    from .faithfulness.pvalues import simes
    from .faithfulness.single_text import TextMeasurement, measure_text
    from .methods import adapters, explain, method
    from .methods.own_scores import own_scores
    from .metrics import metric
    from .models.alignment import align
    from .models.classifier import Classifier
    from .models.evaluator import Evaluator
    from .models.loading import load
    from .models.tokens import Batch
    from .runs.adaptation import adapt
    from .runs.fitted_tests import saved_tests
    from .runs.run import train
    from .runs.store import RunStore
    from .tasks import Task, own_task, task
    from .training.collator import MaskingCollator

LAYERS = {
    "errors": "errors that a user can act on",
    "config": "configs of runs, and constants that several packages share",
    "source": "identity and digest of a user's function",
    "metrics": "labels and predictions → performance",
    "files": "atomic writes, JSON, parquet, checksums, timing",
    "display": "HTML of results, in one style",
    "published": "the numbers of the paper, as data",
    "tasks": "datasets with splits, columns, labels and metric",
    "models": "text → tokens → masks → logits and hidden states",
    "training": "masked fine-tuning",
    "methods": "importance measures: a score for each token",
    "faithfulness": "erasure, curves, areas, intervals, p-values, and when to doubt them",
    "runs": "configs → records in a store",
    "explanations": "single texts: explanations, masked variants, a pipeline",
    "grid": "a TOML file → many runs",
    "reporting": "a store → tables, figures, report, model card",
    "serve": "the live page and its JSON API",
    "cli": "the command line",
}
"""Descriptions of all modules and packages, in import order: each imports only those above it."""

_HOME = {
    "AdaptConfig": "config",
    "Batch": "models.tokens",
    "Classifier": "models.classifier",
    "Curve": "faithfulness.curves",
    "Evaluator": "models.evaluator",
    "Explanation": "explanations.explanation",
    "InputError": "errors",
    "MaSF": "faithfulness.masf",
    "MaskingCollator": "training.collator",
    "Measurement": "faithfulness.measurement",
    "Pipeline": "explanations.pipeline",
    "RunStore": "runs.store",
    "Task": "tasks",
    "TextMeasurement": "faithfulness.single_text",
    "TrainConfig": "config",
    "acu": "faithfulness.curves",
    "adapt": "runs.adaptation",
    "adapters": "methods",
    "align": "models.alignment",
    "bootstrap_interval": "faithfulness.intervals",
    "erase": "faithfulness.erasure",
    "explain": "methods",
    "explain_text": "explanations.explanation",
    "fit_tests": "faithfulness.check",
    "load": "models.loading",
    "measure": "faithfulness.dataset",
    "measure_text": "faithfulness.single_text",
    "method": "methods",
    "metric": "metrics",
    "own_scores": "methods.own_scores",
    "own_task": "tasks",
    "pipeline": "explanations.pipeline",
    "racu": "faithfulness.curves",
    "register_pipeline": "explanations.registered",
    "saved_tests": "runs.fitted_tests",
    "simes": "faithfulness.pvalues",
    "task": "tasks",
    "train": "runs.run",
}

__all__ = [
    "AdaptConfig",
    "Batch",
    "Classifier",
    "Curve",
    "Evaluator",
    "Explanation",
    "InputError",
    "MaSF",
    "MaskingCollator",
    "Measurement",
    "Pipeline",
    "RunStore",
    "Task",
    "TextMeasurement",
    "TrainConfig",
    "acu",
    "adapt",
    "adapters",
    "align",
    "bootstrap_interval",
    "erase",
    "explain",
    "explain_text",
    "fit_tests",
    "load",
    "measure",
    "measure_text",
    "method",
    "metric",
    "own_scores",
    "own_task",
    "pipeline",
    "racu",
    "register_pipeline",
    "saved_tests",
    "simes",
    "task",
    "train",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version(__name__)
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
