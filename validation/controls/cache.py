"""Erasures of the controls, kept as small files of logits, from which every table follows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from faithmeter.config import BASELINE
from faithmeter.data.stories import PLACES, generate
from faithmeter.files import atomic
from faithmeter.measuring.erase import states, trace_erasure
from faithmeter.measuring.fitting import Masking
from faithmeter.measuring.trace import Trace
from faithmeter.methods.registry import Method, parse
from faithmeter.models.classifier import Classifier
from faithmeter.models.evaluator import Evaluator
from faithmeter.models.masks import PERCENTS
from faithmeter.models.tokens import Batch
from faithmeter.stats.masf import MaSF

from .models import TRAININGS, train
from .planted import Planted, plant, read_sentences

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("FAITHMETER_SHARED", ROOT.parent / "shared"))
FOLDER = ROOT / "results" / "validation" / "controls"
MINILM = SHARED / "models" / "paraphrase-MiniLM-L3-v2"
SENTENCES = SHARED / "data" / "SST-2"
TRUTH = "truth"
EXPLAINED = (
    TRUTH, "loo-sign", "loo-abs", "grad-l2", "inp-grad-sign", "int-grad-sign(steps=10)",
    "int-grad-abs(steps=10)",
)  # fmt: skip
"""Methods that are compared; `truth` masks the planted words first."""
CHECKED = 100
"""Texts whose hidden states are tested."""
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Control:
    """One trained model: what was planted, how it was trained, in which encoder."""

    task: str
    training: str = "masked"
    encoder: str = "embedded"
    """`embedded`, or `minilm` with sentences of SST-2."""
    seed: int = 0
    pool: int = 400
    """Texts that are masked at random, of the validation and of the test part each."""
    explained: int = 100
    """Test texts that are erased by every method."""
    trained: int = 2500
    """Training texts."""
    epochs: int = 6
    rate: float = 1e-3
    step: int = 10
    """Percentage points erased at each step."""
    words: tuple[int, int] = (10, 18)
    """Smallest and largest number of words of the sentences in which words are planted."""

    @property
    def name(self) -> str:
        return f"{self.encoder}-{self.task}-{self.training}-{self.seed}"

    @property
    def percents(self) -> tuple[int, ...]:
        return tuple(range(0, 101, self.step))

    @property
    def file(self) -> Path:
        return FOLDER / f"{self.name}.npz"


STORIES = {"task": "stories", "epochs": 4}
ON_MINILM = {"encoder": "minilm", "rate": 1e-4}
SST2 = {"task": "sst2", **ON_MINILM, "epochs": 2}
CONTROLS = (
    Control("word", pool=800, explained=200),
    Control("first"),
    Control("distractor"),
    Control("pair", epochs=16),
    Control("places", explained=100),
    Control(**STORIES, explained=50),
    Control("word", **ON_MINILM, epochs=3, pool=300, explained=80),
    Control(**SST2, pool=200, explained=80),
    Control(**SST2, pool=1000, explained=0, seed=1),
    Control("shuffled", pool=800, explained=200),
    Control("word", "random", pool=800, explained=200),
    Control("word", "plain"),
    Control("pair", "plain", epochs=16, explained=0),
    Control("pair", "few-masks", epochs=16, explained=0),
    Control("word", "few-masks"),
    Control("word", "half-trained", explained=0),
    Control("first", "plain", explained=0),
    Control("first", "few-masks", explained=0),
    Control(**STORIES, training="plain", explained=0),
    Control(**STORIES, training="few-masks", explained=0),
    Control(**STORIES, training="half-trained", explained=0),
    Control(**STORIES, training="random", explained=0),
)
"""All controls; a file that is there is never computed again."""


@dataclass(frozen=True)
class Erasures:
    """What a control did: logits [N, S, C] and labels [N].

    Attributes:
        validation: Logits of the validation texts, masked at random.
        test: Logits of the test texts, masked at random.
        methods: By method, logits of the first test texts as it erased them; `random` is among them.
        pvalues: Cross-fitted p-values of the first test texts masked at random, [N, S].
    """

    percents: tuple[int, ...]
    validation: Floats
    validation_labels: NDArray[np.int64]
    test: Floats
    test_labels: NDArray[np.int64]
    methods: dict[str, Floats]
    pvalues: Floats


@dataclass(frozen=True)
class Part:
    """Texts of a task with their labels, contexts and truth."""

    planted: Planted
    pairs: tuple[str, ...] | None = None


def make_parts(control: Control) -> dict[str, Part]:
    """Return the training, validation and test texts of a control."""
    counts = {"train": control.trained, "validation": control.pool, "test": control.pool}
    if control.task == "stories":
        return {role: _stories(count, seed) for seed, (role, count) in enumerate(counts.items())}
    if control.task == "sst2":
        texts, labels = read_sentences(SENTENCES, "train.tsv")
        order = np.random.default_rng(0).permutation(len(texts))[: sum(counts.values())]
        everything = Planted(
            tuple(texts[row] for row in order), tuple(labels[row] for row in order), ((),) * len(order)
        )
        stops = np.cumsum([0, *counts.values()]).tolist()
        return {
            role: Part(everything.part(*between))
            for role, between in zip(counts, pairwise(stops), strict=True)
        }
    sentences = (
        [] if control.encoder == "embedded" else read_sentences(SENTENCES, "train.tsv", control.words)[0]
    )
    return {
        role: Part(plant(control.task, count, seed=seed, sentences=sentences, training=role == "train"))
        for seed, (role, count) in enumerate(counts.items())
    }


def _stories(count: int, seed: int) -> Part:
    """Return questions about generated stories.

    No order of words is true by construction: who moves goes to another place than before, so that earlier
    statements tell a little about the answer, too.
    """
    texts, pairs, labels = [], [], []
    for story in generate(1, count, seed=seed):
        for question in story:
            texts.append(" ".join(question.story))
            pairs.append(question.question)
            labels.append(PLACES.index(question.answer))
    return Part(Planted(tuple(texts), tuple(labels), ((),) * len(texts)), tuple(pairs))


def train_control(control: Control) -> Classifier:
    """Return the trained model of a control."""
    part = make_parts(control)["train"]
    return train(
        "embedded" if control.encoder == "embedded" else str(MINILM),
        part.planted.texts,
        part.planted.labels,
        TRAININGS[control.training],
        epochs=control.epochs,
        rate=control.rate,
        seed=control.seed,
        pairs=part.pairs,
    )


def run(control: Control) -> None:
    """Train a control, erase its texts and write its file, unless the file is there."""
    if control.file.exists():
        return
    parts, clf = make_parts(control), train_control(control)
    evaluator = Evaluator(clf)
    random, labels, batches = {}, {}, {}
    for role in ("validation", "test"):
        part = parts[role]
        batches[role] = clf.encode(list(part.planted.texts), part.pairs and list(part.pairs))
        labels[role] = torch.tensor(part.planted.labels)
        random[role] = _erase(evaluator, batches[role], labels[role], parse(BASELINE), control.percents)
    first, known = batches["test"][: control.explained], labels["test"][: control.explained]
    truth = _Truth(parts["test"].planted.truth)
    traces = {BASELINE: random["test"].first(control.explained)}
    for name in EXPLAINED if control.explained else ():
        if name != TRUTH or any(truth.words):
            method = Method(TRUTH, truth, recursive=False) if name == TRUTH else parse(name)
            traces[name] = _erase(evaluator, first, known, method, control.percents)
    with atomic(control.file) as temporary, temporary.open("wb") as file:
        np.savez_compressed(
            file,
            validation=random["validation"].logits.astype(np.float16),
            validation_labels=labels["validation"].numpy().astype(np.uint8),
            test=random["test"].logits.astype(np.float16),
            test_labels=labels["test"].numpy().astype(np.uint8),
            pvalues=_check(evaluator, batches).astype(np.float16),
            names=np.array(list(traces)),
            methods=np.stack([trace.logits for trace in traces.values()]).astype(np.float16),
        )


def read(control: Control) -> Erasures:
    """Read the erasures of a control."""
    with np.load(control.file) as file:
        arrays = {name: file[name] for name in file.files}
    names = arrays["names"].tolist()
    return Erasures(
        control.percents,
        arrays["validation"].astype(np.float32),
        arrays["validation_labels"].astype(np.int64),
        arrays["test"].astype(np.float32),
        arrays["test_labels"].astype(np.int64),
        dict(zip(names, arrays["methods"].astype(np.float32), strict=True)),
        arrays["pvalues"].astype(np.float32),
    )


def _erase(
    evaluator: Evaluator, batch: Batch, labels: Tensor, method: Method, percents: Sequence[int]
) -> Trace:
    evaluator.forget()
    return trace_erasure(evaluator, batch, labels, method, percents, {})


@dataclass(frozen=True)
class _Truth:
    """Method that scores the tokens of the deciding words 1, and all others 0."""

    words: Sequence[Sequence[int]]

    def __call__(self, clf: Evaluator, batch: Batch, labels: Tensor) -> Tensor:
        scores = torch.zeros(batch.input_ids.shape, dtype=torch.float64)
        for row, index in enumerate(batch.index.tolist()):
            layout = batch.layouts[row]
            places = batch.explained[row].nonzero()[:, 0].tolist()
            for place, (start, _) in zip(places, layout.spans, strict=True):
                scores[row, place] = layout.text[:start].count(" ") in self.words[index]
        return scores


def _check(evaluator: Evaluator, batches: dict[str, Batch]) -> Floats:
    """Return the cross-fitted p-values of test texts, for a model that is declared to be masked."""
    learned = batches["validation"][: 2 * CHECKED]
    where = Masking("half").draw(learned)
    test = MaSF(calibration="crossfit", trained_with="half")
    test.fit(states(evaluator, learned.masked(where, evaluator.mask_id))[1].numpy())
    batch = batches["test"][:CHECKED]
    trace = trace_erasure(
        evaluator, batch, torch.zeros(len(batch), dtype=torch.long), parse(BASELINE), PERCENTS, {"p": test}
    )
    return trace.pvalues["p"].astype(np.float32)
