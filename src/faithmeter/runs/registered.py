"""The pipeline as a task of `transformers.pipeline`."""

from __future__ import annotations

from typing import Any

import torch
from transformers import AutoModelForSequenceClassification
from transformers import Pipeline as Base
from transformers.pipelines import PIPELINE_REGISTRY

from ..errors import unknown
from ..models.classifier import Classifier
from ..models.evaluator import Evaluator
from ..models.loading import local_copy, read_checkpoint
from .pipeline import OPTIONS, Pipeline, own_tests, parse_row

TASK = "faithful-text-classification"
"""Name of the task."""


class FaithfulTextClassification(Base):  # type: ignore[misc]
    """Text classification whose predictions are explained, and whose explanations are measured.

    It takes and returns what `faithmeter.Pipeline` does. Texts of a batch are explained one by one, so
    results do not depend on `batch_size`.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        training = read_checkpoint(local_copy(self.model.name_or_path))
        clf = Classifier(
            self.model, self.tokenizer, takes_pair=training.takes_pair, agreement=training.agreement
        )
        self.faithful = Pipeline(Evaluator(clf), own_tests(clf, self.model.name_or_path, 0))

    def _sanitize_parameters(self, **options: Any) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        for name in options:
            if name not in OPTIONS:
                raise unknown("option of a pipeline", name, OPTIONS)
        return {}, options, {}

    def preprocess(self, inputs: Any) -> dict[str, Any]:
        text, pair = parse_row(inputs)
        return {"row": {"text": text, "text_pair": pair}}

    def _forward(self, model_inputs: dict[str, Any], **options: Any) -> dict[str, Any]:
        with torch.enable_grad():  # half of the methods need gradients, which transformers disables
            return {"result": self.faithful(model_inputs["row"], **options)}

    def postprocess(self, model_outputs: dict[str, Any]) -> Any:
        return model_outputs["result"]


def register_pipeline() -> str:
    """Register the pipeline with transformers, so that `transformers.pipeline` can make it.

    Returns:
        The name of the task, `faithful-text-classification`.

    Example:
        >>> register_pipeline()
        'faithful-text-classification'
        >>> pipe = transformers.pipeline("faithful-text-classification", model="checkpoint")
        >>> pipe(text, orders=19)["trusted"]  # nothing is trusted without a check
        False
    """
    if TASK not in PIPELINE_REGISTRY.get_supported_tasks():
        PIPELINE_REGISTRY.register_pipeline(
            TASK, FaithfulTextClassification, pt_model=AutoModelForSequenceClassification, type="text"
        )
    return TASK
