"""Agreement of lower precision: rank correlation of each method's scores in bf16 and in fp32."""

from __future__ import annotations

import copy
import tempfile
from dataclasses import dataclass
from pathlib import Path

from faithmeter.config import BASELINE, EMBEDDED, Precision, TrainConfig
from faithmeter.data import task
from faithmeter.methods import explain
from faithmeter.models.classifier import Classifier
from faithmeter.models.devices import supports
from faithmeter.models.loading import load
from faithmeter.training.finetuning import finetune

from .explaining import QUICK_METHODS
from .setting import Setting

LOWER: Precision = "bf16"


@dataclass(frozen=True)
class Agreement:
    """Mean Spearman rank correlation over texts, by method; empty with the reason if it was not measured."""

    precision: str
    model: str
    texts: int
    correlations: dict[str, float]
    reason: str = ""


def measure_agreement(setting: Setting) -> Agreement:
    """Compare the scores of the quick methods in bf16 with those in fp32, if the device computes in bf16.

    The model is the embedded one after a short fine-tuning: scores of a random head would be noise.
    """
    from scipy.stats import spearmanr

    device = setting.clf.device
    rows = setting.sizes.agreement_rows
    name = f"{EMBEDDED}, fine-tuned on {rows} stories"
    if not supports(LOWER, device):
        return Agreement(LOWER, name, 0, {}, f"this {device.type.upper()} does not compute in {LOWER}")
    config = TrainConfig(model=EMBEDDED, epochs=2, learning_rate=1e-3, limit=rows)
    stories = task(config.task)
    with tempfile.TemporaryDirectory() as folder:
        finetune(config, stories, Path(folder))
        exact = load(folder, device=device)
    lower = Classifier(copy.deepcopy(exact.model), exact.tokenizer)
    lower.place(device, LOWER)
    test = stories.load()["test"].select(range(setting.sizes.agreement))[:]
    batch = exact.encode(test["text"], test["context"])
    correlations = {}
    for method in QUICK_METHODS:
        if method == BASELINE:
            continue
        one, other = (explain(model, batch, test["label"], method) for model in (exact, lower))
        each = [
            float(spearmanr(a[where], b[where]).statistic)
            for a, b, where in zip(one, other, batch.explained, strict=True)
        ]
        correlations[method] = sum(each) / len(each)
    return Agreement(LOWER, name, len(batch), correlations)
