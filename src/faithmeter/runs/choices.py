"""Values that `auto` stands for: the most faithful method of a checkpoint within a budget, and the precision.

The method is chosen on validation texts once, and saved beside the checkpoint or in a cache folder. A lower
precision is chosen where it ranks words as fp32 does.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ..config import BASELINE, MeasureConfig, Precision, UnitName
from ..errors import InputError
from ..files import read_sealed_json, write_sealed_json
from ..phases import Progress
from ..store.records import CHOICES
from ..store.run_store import RUN_NAME
from ..verdict.formats import format_percent
from .fitted_tests import checkpoint_folders, write_beside
from .measured import HERE, Origin, filled_config, load_measured, measured_task, training_record

if TYPE_CHECKING:
    from torch import Tensor

    from ..data import Task
    from ..models.classifier import Classifier
    from ..models.evaluator import Evaluator
    from ..models.tokens import Batch

CANDIDATES = (
    *("inp-grad-sign", "int-grad-sign", "int-grad-sign(baseline=mask)", "loo-sign", "loo-sign(of=margin)"),
    *("ridge", "search(exchanges=0)", "search", "beam"),
)
"""Methods that are compared, as far as the budget allows."""
BUDGET, TEXTS = 500, 100
"""Default budget, and the number of validation texts that the candidates are measured on."""
LOWER: Precision = "bf16"
RANKED_TEXTS = 32
"""Texts whose explanations are compared, the first that are measured."""
LEAST = 0.98
"""Mean rank correlation with the scores in fp32 that every method must keep."""


@dataclass(frozen=True)
class Candidate:
    """ACU of a candidate on validation texts, with its interval, and the evaluations of an explanation."""

    acu: float
    lower: float
    upper: float
    evaluations: int  # upper bound for the longest of the texts

    def __str__(self) -> str:
        lower, upper = format_percent(self.lower), format_percent(self.upper)
        return f"{format_percent(self.acu)} % [{lower}, {upper}]"


@dataclass(frozen=True)
class Choice:
    """Method with the highest ACU on validation texts, among candidates within the budget.

    Attributes:
        budget: Maximum number of evaluations to explain a text.
        texts: Number of validation texts.
        candidates: Results by method, the highest ACU first.
    """

    budget: int
    texts: int
    candidates: Mapping[str, Candidate]

    @property
    def method(self) -> str:
        """Name of the chosen method."""
        return next(iter(self.candidates))

    @property
    def reason(self) -> str:
        """Sentence that names the method, its ACU and the next best one."""
        (name, best), *others = self.candidates.items()
        after = f"; next: {others[0][0]}, {others[0][1]}" if others else ""
        return (
            f"auto chose {name}: the highest ACU on {self.texts} validation texts, {best}, of "
            f"{len(self.candidates)} methods with up to {self.budget:,} evaluations per text{after}"
        )


def read_budget(name: str) -> int | None:
    """Return the budget of `auto` or `auto(budget=200)`; None for the name of any other method.

    Raises:
        InputError: `auto` has another option, or its budget is not a positive whole number.
    """
    match = re.fullmatch(r"\s*auto\s*(?:\((.*)\))?\s*", name)
    if match is None:
        return None
    option = re.fullmatch(r"\s*budget\s*=\s*(\d+)\s*", match[1] or f"budget={BUDGET}")
    # a budget that was misread would choose another method without a word
    if option is None or int(option[1]) < 1:
        raise InputError(f"method {name!r}; expected auto, or auto(budget={BUDGET}): evaluations per text")
    return int(option[1])


def choose_method(
    clf: Classifier,
    checkpoint: str | Path,
    budget: int = BUDGET,
    *,
    seed: int = 0,
    unit: UnitName = "token",
    progress: Progress | None = None,
) -> Choice:
    """Return the choice for a checkpoint and a budget: read it, or measure the candidates and save it.

    Args:
        clf: The loaded checkpoint.
        checkpoint: Its folder.
        budget: Maximum number of evaluations to explain a text, for each of the validation texts.
        seed: Seed of the random baseline.
        unit: What is scored and erased as one piece: token, word or sentence.
        progress: Called with a method's name, the number of texts done, and that of all texts.

    Raises:
        InputError: The checkpoint has no validation texts, or they are not where its training read them.
    """
    record = training_record(checkpoint)
    if record is None:
        raise _missing_texts(checkpoint, "it was not trained by faithmeter")
    config = MeasureConfig(
        label="" if clf.label is None else clf.labels[-1],
        methods=CANDIDATES,
        # the choice is made by the metric of the training, like every area of the checkpoint
        metric=record.metric,
        seed=seed,
        limit=TEXTS,
        unit=unit,
        overlap=clf.overlap,
        precision=cast(Precision, clf.precision),
    )
    config = filled_config(config, record.trained, clf.fingerprint, record.data, record.metric)
    name = f"{CHOICES}{budget}-{config.digest}.json"
    for folder in checkpoint_folders(clf, checkpoint):
        choice = _read(folder / name)
        # a choice that comes with the checkpoint needs no data
        if choice is not None:
            return choice
    measured, _, _ = measured_task(clf, checkpoint, MeasureConfig())
    if "validation" not in measured.load():
        raise _missing_texts(checkpoint, "its data have no validation split")
    choice = _measure_candidates(clf, measured, budget, config, _trace_folder(clf, checkpoint), progress)
    write_beside(clf, checkpoint, lambda folder: write_sealed_json(folder / name, asdict(choice)))
    return choice


def _missing_texts(checkpoint: str | Path, why: str) -> InputError:
    return InputError(
        f"auto needs validation texts, but {checkpoint} has none: {why}; name a method, such as loo-sign"
    )


def _trace_folder(clf: Classifier, checkpoint: str | Path) -> Path | None:
    """Return the store that a checkpoint is in, or a cache folder; None if neither can be written to."""
    *beside, cache = checkpoint_folders(clf, checkpoint)
    stores = [folder.resolve().parent for folder in beside if RUN_NAME.fullmatch(folder.resolve().name)]
    with suppress(OSError):
        cache.mkdir(parents=True, exist_ok=True)
    return next((folder for folder in (*stores, cache) if os.access(folder, os.W_OK)), None)


def _measure_candidates(
    clf: Classifier,
    measured: Task,
    budget: int,
    config: MeasureConfig,
    cache_dir: Path | None,
    progress: Progress | None,
) -> Choice:
    from ..measuring.costs import count_tokens
    from ..measuring.texts import read_slices
    from ..methods.registry import parse
    from ..models.evaluator import Evaluator
    from .measurements import measure

    split = measured.split("validation")
    count = min(config.limit, len(split))
    slices = read_slices(Evaluator.of(clf), split, count, config.unit)
    lengths = []
    for batch, _ in slices:
        lengths.extend(count_tokens(batch))
    # the longest text counts: a budget is a promise for every text
    costs = {name: max(map(parse(name).evaluations, lengths)) for name in CANDIDATES}
    methods = [name for name, cost in costs.items() if cost <= budget]
    result = measure(
        clf,
        measured,
        [f"{BASELINE}(seed={config.seed})", *methods],
        limit=count,
        percents=config.percents,
        unit=config.unit,
        split="validation",
        tests=None,
        cache_dir=cache_dir,
        progress=progress,
    )
    areas = {name: result.interval(name, "acu") for name in result.methods if name != BASELINE}
    # on validation texts, so that the measurement on test texts is not chosen by itself
    ranked = sorted(areas.items(), key=lambda item: -item[1].mean)
    candidates = {name: Candidate(*interval[:3], costs[name]) for name, interval in ranked}
    return Choice(budget, result.texts, candidates)


def _read(file: Path) -> Choice | None:
    """Return the choice in a file; None if it is missing or damaged."""
    if not file.is_file():
        return None
    try:
        values = read_sealed_json(file)
        candidates = {name: Candidate(**each) for name, each in values["candidates"].items()}
        return Choice(values["budget"], values["texts"], candidates)
    except (InputError, KeyError, TypeError):
        return None


class Chosen(NamedTuple):
    """A precision with its reason.

    Attributes:
        precision: The precision to evaluate in.
        ranks: Mean rank correlation of the scores in both precisions, by method; empty if none was measured.
        reason: Why, in a sentence.
    """

    precision: Precision
    ranks: dict[str, float]
    reason: str

    @property
    def config(self) -> dict[str, Any]:
        """Fields of a `MeasureConfig` that follow from the choice."""
        if self.precision == LOWER:
            return {"precision": LOWER, "ranks_alike": min(self.ranks.values())}
        return {"precision": self.precision}


def choose_precision(
    checkpoint: str, config: MeasureConfig, origin: Origin = HERE, device: str = "auto"
) -> Chosen:
    """Return the precision in which to measure: bf16 if every method ranks the words of texts as in fp32.

    All methods of the measurement are asked, those that search for an order included: a verdict in bf16 is
    to be that in fp32.
    """
    from ..measuring.texts import read_rows
    from ..methods.registry import default_methods
    from ..models.devices import find_device, supports
    from ..models.evaluator import Evaluator

    if not supports(LOWER, target := find_device(device)):
        return Chosen("fp32", {}, f"auto is fp32: this {target.type.upper()} does not compute in {LOWER}")
    exact = load_measured(checkpoint, config.replace(precision="fp32"), device)
    lower = load_measured(checkpoint, config.replace(precision=LOWER), device)
    task, _, _ = measured_task(exact, checkpoint, config, origin)
    rows = task.load()["test"]
    batch, _ = read_rows(Evaluator(exact), rows, range(min(RANKED_TEXTS, len(rows))), config.unit)
    labels = Evaluator(exact).logits(batch).argmax(dim=1)
    methods = [name for name in config.methods or default_methods() if name != BASELINE]
    ranks = compare_ranks(Evaluator(exact), Evaluator(lower), batch, labels, methods)
    chosen: Precision = LOWER if ranks and all(rank >= LEAST for rank in ranks.values()) else "fp32"
    each = ", ".join(f"{name} {rank:.3f}" for name, rank in sorted(ranks.items(), key=lambda one: one[1]))
    ask = f"rank correlation of {LOWER} with fp32 on {len(batch)} texts (required: {LEAST}): {each or 'none'}"
    return Chosen(chosen, ranks, f"auto is {chosen}: {ask}")


def compare_ranks(
    exact: Evaluator, lower: Evaluator, batch: Batch, labels: Tensor, methods: Iterable[str]
) -> dict[str, float]:
    """Return each method's mean rank correlation over texts; 0 where no text has words that differ."""
    from ..measuring.plausibility import correlate_scores
    from ..methods.registry import explain

    ranks = {}
    for name in methods:
        scores, rounded = explain(exact, batch, labels, name), explain(lower, batch, labels, name)
        known = correlate_scores(scores, rounded, batch)
        ranks[name] = sum(known) / len(known) if known else 0.0
    return ranks
