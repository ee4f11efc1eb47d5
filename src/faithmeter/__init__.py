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
    from .config import AdaptConfig as AdaptConfig
    from .config import TrainConfig as TrainConfig
    from .data import own_task as own_task
    from .data import task as task
    from .errors import InputError as InputError
    from .measuring.erase import erase as erase
    from .measuring.result import Result as Result
    from .methods import explain as explain
    from .methods import method as method
    from .models.classifier import Classifier as Classifier
    from .models.loading import load as load
    from .models.tokens import Batch as Batch
    from .runs.adaptation import adapt as adapt
    from .runs.auditing import audit as audit
    from .runs.measurements import measure as measure
    from .runs.pipeline import explain_text as explain_text
    from .runs.pipeline import pipeline as pipeline
    from .runs.run import train as train
    from .stats.curves import acu as acu
    from .stats.curves import racu as racu
    from .stats.intervals import bootstrap_interval as bootstrap_interval
    from .stats.masf import MaSF as MaSF
    from .stats.metrics import metric as metric
    from .stats.pvalues import simes as simes
    from .store.run_store import RunStore as RunStore
    from .training.masking import MaskingCollator as MaskingCollator

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

_NAMES = {
    "config": ("AdaptConfig", "TrainConfig"),
    "data": ("own_task", "task"),
    "errors": ("InputError",),
    "measuring.erase": ("erase",),
    "measuring.result": ("Result",),
    "methods": ("explain", "method"),
    "models.classifier": ("Classifier",),
    "models.loading": ("load",),
    "models.tokens": ("Batch",),
    "runs.adaptation": ("adapt",),
    "runs.auditing": ("audit",),
    "runs.measurements": ("measure",),
    "runs.pipeline": ("explain_text", "pipeline"),
    "runs.run": ("train",),
    "stats.curves": ("acu", "racu"),
    "stats.intervals": ("bootstrap_interval",),
    "stats.masf": ("MaSF",),
    "stats.metrics": ("metric",),
    "stats.pvalues": ("simes",),
    "store.run_store": ("RunStore",),
    "training.masking": ("MaskingCollator",),
}
"""Public names by the module that defines them, which is loaded on first use."""
_HOME = {name: module for module, names in _NAMES.items() for name in names}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version(__name__)
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with import_module(".errors", __name__).optional():
        return getattr(import_module(f".{_HOME[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
