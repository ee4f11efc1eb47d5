"""Cost of a checkpoint's measurement: which methods are too expensive by default, and a forecast."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ..config import BASELINE, MeasureConfig

if TYPE_CHECKING:
    from torch import Tensor

    from ..faithfulness.forecast import Forecast
    from ..methods.registry import Method
    from ..models.classifier import Classifier
    from ..models.tokens import Batch
    from ..tasks import Task


def expensive_methods(clf: Classifier, task: Task, config: MeasureConfig) -> dict[str, int]:
    """Return the default methods that are not measured unless named, with their bounds on the first chunk.

    A method is left out if it needs more evaluations than all others together. Methods of your own are
    measured in any case. The first chunk decides whatever the limit, so that a larger one continues it.
    """
    from ..faithfulness.forecast import bound_evaluations, count_tokens, too_expensive

    tokens = count_tokens(_first_chunk(clf, task, config)[0])
    methods = _methods(config)
    bounds = {name: bound_evaluations(each, tokens, config.percents) for name, each in methods.items()}
    return {name: bound for name, bound in too_expensive(bounds).items() if not methods[name].code}


def forecast_measurement(
    clf: Classifier, task: Task, config: MeasureConfig, left_out: Mapping[str, int], fitting: int = 0
) -> Forecast:
    """Forecast the cost of a measurement from its first chunk; `left_out` are bounds on that chunk.

    `fitting` is the number of validation texts on which the in-distribution tests must be fitted first.
    """
    from ..faithfulness.forecast import forecast
    from ..models.evaluator import Evaluator

    batch, labels = _first_chunk(clf, task, config)
    rows = len(task.load()["test"])
    texts = min(config.limit or rows, rows)
    share = texts / len(batch)
    first = range(min(texts, len(batch)))
    result = forecast(
        Evaluator(clf), batch[first], labels[first], _methods(config), config.percents, texts, fitting
    )
    return replace(result, left_out={name: round(share * bound) for name, bound in left_out.items()})


def _methods(config: MeasureConfig) -> dict[str, Method]:
    """Return the measured methods by name, the baseline first."""
    from ..methods.registry import default_methods, parse

    names = (BASELINE, *(config.methods or default_methods()))
    return {str(method): method for method in map(parse, names)}


def _first_chunk(clf: Classifier, task: Task, config: MeasureConfig) -> tuple[Batch, Tensor]:
    from ..faithfulness.chunks import CHUNK, read_chunks
    from ..models.classes import match_classes
    from ..models.evaluator import Evaluator

    split = task.load()["test"]
    batch, labels = next(read_chunks(Evaluator(clf), split, min(CHUNK, len(split)), config.unit))
    return batch, match_classes(clf.labels, task.labels).to_model(labels)
