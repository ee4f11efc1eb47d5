"""Models with planted truths, whose weights are kept outside of the repository until their erasures exist."""

from __future__ import annotations

import shutil
from pathlib import Path

from faithmeter.models.classifier import Classifier
from faithmeter.models.evaluator import Evaluator
from faithmeter.models.loading import load

from ..controls.cache import MINILM, ROOT, SHARED, Control, make_parts
from ..controls.models import TRAININGS, train

WEIGHTS = ROOT / "runs-validation"
ENCODERS = {
    "embedded": "embedded",
    "minilm": str(MINILM),
    "six-layer": str(SHARED / "models" / "prompt-injection-minilm-l6"),
}
"""Pretrained weights by encoder: three layers of 64, three of 384 and six of 384."""
ADAPTED = "adapted"
"""Training of a plain model with masks, on its own predictions and without labels."""
EPOCHS = {"word": 3, "first": 4, "distractor": 4, "pair": 12, "negation": 12, "shuffled": 1}
ADAPTED_EPOCHS = 3


def case(task: str, training: str, encoder: str = "embedded") -> Control:
    """Return a model; the large encoders learn faster and have fewer texts."""
    if encoder == "embedded":
        return Control(task, training, epochs=EPOCHS[task], pool=100, explained=100)
    epochs = {"word": 1, "first": 2, "pair": 4}[task]
    return Control(task, training, encoder, pool=100, explained=100, trained=1600, epochs=epochs, rate=1e-4)


CASES = (
    *(case(task, how) for task in ("word", "first", "pair", "negation") for how in ("masked", "plain")),
    *(case("shuffled", training) for training in ("masked", "plain")),
    case("word", ADAPTED),
    case("word", "random"),
    *(case("distractor", training) for training in ("masked", "plain")),
    case("first", ADAPTED),
    *(case("word", training, "minilm") for training in ("masked", "plain")),
    *(case("word", training, "six-layer") for training in ("masked", "plain")),
    *(case("first", training, "minilm") for training in ("masked", "plain")),
    *(case("pair", training, "minilm") for training in ("masked", "plain")),
)
"""All models, in the order in which they are trained; those without a file are not counted."""


def trained(one: Control) -> Classifier:
    """Return a model, from its weights or, if there are none, newly trained."""
    folder = WEIGHTS / one.name
    if not folder.is_dir():
        _save(_train(one), folder)
    return load(folder)


def _train(one: Control) -> Classifier:
    part = make_parts(one)["train"]
    source, labels, how, epochs = ENCODERS[one.encoder], part.planted.labels, one.training, one.epochs
    if how == ADAPTED:
        plain = case(one.task, "plain", one.encoder)
        clf = trained(plain)
        batch = clf.encode(list(part.planted.texts), part.pairs and list(part.pairs))
        labels = tuple(Evaluator(clf).logits(batch).argmax(dim=1).tolist())
        source, how, epochs = str(WEIGHTS / plain.name), "masked", ADAPTED_EPOCHS
    return train(
        source, part.planted.texts, labels, TRAININGS[how], epochs=epochs, rate=one.rate, seed=one.seed,
        pairs=part.pairs,
    )  # fmt: skip


def _save(clf: Classifier, folder: Path) -> None:
    """Write weights and tokenizer; a folder that is there is complete."""
    unfinished = folder.with_suffix(".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    clf.model.save_pretrained(unfinished)
    clf.tokenizer.save_pretrained(unfinished)
    unfinished.rename(folder)
