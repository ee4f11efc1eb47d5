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
    from .data import Task, own_task, task
    from .errors import InputError
    from .measuring.erase import erase
    from .measuring.explanation import Explanation, explain_text
    from .measuring.fitting import fit_tests
    from .measuring.one_text import TextMeasurement, measure_text
    from .measuring.result import Result
    from .methods import adapters, explain, method
    from .methods.own_scores import own_scores
    from .models.alignment import align
    from .models.classifier import Classifier
    from .models.evaluator import Evaluator
    from .models.loading import load
    from .models.tokens import Batch
    from .runs.adaptation import adapt
    from .runs.auditing import audit
    from .runs.fitted_tests import saved_tests
    from .runs.measurements import measure
    from .runs.pipeline import Pipeline, pipeline
    from .runs.registered import register_pipeline
    from .runs.run import train
    from .stats.curves import Curve, acu, racu
    from .stats.intervals import bootstrap_interval
    from .stats.masf import MaSF
    from .stats.metrics import metric
    from .stats.pvalues import simes
    from .store.run_store import RunStore
    from .training.collator import MaskingCollator

LAYERS = {
    "errors": "errors that a user can act on",
    "config": "configs of runs, and constants that several packages share",
    "phases": "progress of long work",
    "source": "identity and digest of a user's function",
    "files": "atomic writes, JSON, parquet, checksums, timing",
    "stats": "predictions and hidden states → curves, areas, intervals, p-values",
    "verdict": "evidence → doubts → sentences",
    "data": "tasks: datasets with splits, columns, labels and metric",
    "models": "text → tokens → masks → logits and hidden states",
    "training": "masked fine-tuning",
    "methods": "importance measures: a score for each token",
    "measuring": "texts erased step by step → traces and results",
    "store": "a folder of runs: records, identity, locks",
    "runs": "configs → records in a store",
    "report": "a store → tables, figures, report, model card",
    "paper": "what only the replication of the paper needs",
    "grid": "a TOML file → many runs",
    "serve": "the live page and its JSON API",
    "cli": "the command line",
}
"""Descriptions of all modules and packages, in import order: each imports only those above it."""

_HOME = {
    "AdaptConfig": "config",
    "Batch": "models.tokens",
    "Classifier": "models.classifier",
    "Curve": "stats.curves",
    "Evaluator": "models.evaluator",
    "Explanation": "measuring.explanation",
    "InputError": "errors",
    "MaSF": "stats.masf",
    "MaskingCollator": "training.collator",
    "Pipeline": "runs.pipeline",
    "Result": "measuring.result",
    "RunStore": "store.run_store",
    "Task": "data",
    "TextMeasurement": "measuring.one_text",
    "TrainConfig": "config",
    "acu": "stats.curves",
    "adapt": "runs.adaptation",
    "adapters": "methods",
    "align": "models.alignment",
    "audit": "runs.auditing",
    "bootstrap_interval": "stats.intervals",
    "erase": "measuring.erase",
    "explain": "methods",
    "explain_text": "measuring.explanation",
    "fit_tests": "measuring.fitting",
    "load": "models.loading",
    "measure": "runs.measurements",
    "measure_text": "measuring.one_text",
    "method": "methods",
    "metric": "stats.metrics",
    "own_scores": "methods.own_scores",
    "own_task": "data",
    "pipeline": "runs.pipeline",
    "racu": "stats.curves",
    "register_pipeline": "runs.registered",
    "saved_tests": "runs.fitted_tests",
    "simes": "stats.pvalues",
    "task": "data",
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
    "Pipeline",
    "Result",
    "RunStore",
    "Task",
    "TextMeasurement",
    "TrainConfig",
    "acu",
    "adapt",
    "adapters",
    "align",
    "audit",
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
    with import_module(".errors", __name__).optional():
        return getattr(import_module(f".{_HOME[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
