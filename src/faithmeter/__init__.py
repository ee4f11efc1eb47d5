"""Masked language models as text classifiers whose explanations can be measured for faithfulness.

The way of the data is the list of modules:

    config, store, metrics → tasks → tokens → masks → model → evaluator → collator, sweep, finetuning
    → methods → erasure → curves, pvalues, indist, bootstrap → explanation, steps, onetext
    → measurement, roar → runs → grid → tables, figures, modelcard, report, pipelines, serve → cli

Importing this package imports nothing heavy; a name brings its module when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .bootstrap import bootstrap_interval
    from .collator import MaskingCollator
    from .config import TrainConfig
    from .curves import Curve, acu, racu
    from .erasure import erase
    from .errors import InputError
    from .evaluator import Evaluator
    from .explanation import Explanation, explain_text
    from .indist import MaSF
    from .measurement import Measurement, fit_tests, measure
    from .methods import explain, method
    from .model import Classifier, load
    from .onetext import TextMeasurement, measure_text
    from .pipelines import Pipeline, pipeline
    from .pvalues import simes
    from .runs import train
    from .store import RunStore
    from .tasks import Task, own_task, task
    from .tokens import Batch

__version__ = "0.1.0"

_HOME = {
    "Batch": "tokens",
    "Classifier": "model",
    "Curve": "curves",
    "Evaluator": "evaluator",
    "Explanation": "explanation",
    "InputError": "errors",
    "MaSF": "indist",
    "MaskingCollator": "collator",
    "Measurement": "measurement",
    "Pipeline": "pipelines",
    "RunStore": "store",
    "Task": "tasks",
    "TextMeasurement": "onetext",
    "TrainConfig": "config",
    "acu": "curves",
    "bootstrap_interval": "bootstrap",
    "erase": "erasure",
    "explain": "methods",
    "explain_text": "explanation",
    "fit_tests": "measurement",
    "load": "model",
    "measure": "measurement",
    "measure_text": "onetext",
    "method": "methods",
    "own_task": "tasks",
    "pipeline": "pipelines",
    "racu": "curves",
    "simes": "pvalues",
    "task": "tasks",
    "train": "runs",
}

__all__ = [
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
    "bootstrap_interval",
    "erase",
    "explain",
    "explain_text",
    "fit_tests",
    "load",
    "measure",
    "measure_text",
    "method",
    "own_task",
    "pipeline",
    "racu",
    "simes",
    "task",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
