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
    "six-layer": str(SHARED / "models" / "granite-embedding-30m-english-roberta"),
}
"""Pretrained weights by encoder: three layers of 64, three of 384 and six of 384."""
ADAPTED = "adapted"
"""Training of a plain model with masks, on its own predictions and without labels."""
EPOCHS = {"word": 3, "first": 4, "distractor": 4, "pair": 12, "negation": 12, "shuffled": 1}
TO_THE_END = EPOCHS | {"pair": 16}
"""Epochs of a second training: 12 leave one word of a pair with something to say."""
ADAPTED_EPOCHS = 3
SHORT = (6, 9)
"""Words of the sentences that large encoders read."""


def case(task: str, training: str, encoder: str = "embedded", seed: int = 0) -> Control:
    """Return a model; the large encoders have pretrained weights and fewer, shorter texts."""
    if encoder == "embedded":
        epochs = TO_THE_END if seed else EPOCHS
        return Control(task, training, seed=seed, epochs=epochs[task], pool=100, explained=100)
    return Control(
        task, training, encoder, pool=40, explained=40, trained=1600, epochs=2, rate=2e-4, words=SHORT
    )


CASES = (
    *(case(task, how) for task in ("word", "first", "pair", "negation") for how in ("masked", "plain")),
    *(case("shuffled", training) for training in ("masked", "plain")),
    case("word", ADAPTED),
    case("word", "random"),
    *(case("distractor", training) for training in ("masked", "plain")),
    case("first", ADAPTED),
    *(case("first", "masked", encoder) for encoder in ("minilm", "six-layer")),
    *(case(task, "masked", seed=1) for task in ("word", "first", "pair", "distractor", "negation")),
    *(case("word", "masked", encoder) for encoder in ("six-layer", "minilm")),
    *(case("distractor", "masked", encoder) for encoder in ("minilm", "six-layer")),
    *(
        case(task, "plain", encoder)
        for encoder in ("minilm", "six-layer")
        for task in ("first", "word", "distractor")
    ),
)
"""All models, in the order in which they are trained; those without a file are not counted."""


def is_full(one: Control) -> bool:
    """Return whether worse orders are erased, too, and not only the truth and its rivals."""
    return one.encoder == "embedded" and not one.seed


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
