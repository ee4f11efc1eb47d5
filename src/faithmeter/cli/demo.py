"""`faithmeter demo`: the whole workflow in minutes, with the embedded model and generated stories."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..config import BASELINE, EMBEDDED, MeasureConfig, TrainConfig
from . import measure, train
from .results import show
from .screen import Json, Store, console, marked, output, print_json

if TYPE_CHECKING:
    from ..measuring.result import Result

RECIPE = TrainConfig(task="bAbI-1", model=EMBEDDED, epochs=2, learning_rate=1e-3)
"""Training config for the embedded model, which needs a higher learning rate and fewer epochs."""
FAST = (
    "grad-l1",
    "grad-l2",
    "inp-grad-sign",
    "inp-grad-abs",
    "int-grad-sign",
    "int-grad-abs",
    "loo-sign",
    "loo-abs",
)
BEAM = "beam"
TEXTS, BEAM_TEXTS = 200, 50


def demo(
    store: Store = Path("runs"),
    seed: Annotated[int, typer.Option(help="seed of all random numbers")] = 0,
    as_json: Json = False,
) -> None:
    """Train the embedded model on generated stories, check it, measure ten methods, and write a report.

    Needs no downloads. Example: faithmeter demo --seed 1
    """
    from ..models.folders import load_tokenizer
    from ..paper.tables import replication
    from ..report import page as report
    from ..report.view import answer_sentences, areas_table, check_table, training_table
    from ..store.run_store import RunStore

    where = " on bAbI-1 (where is an actor, after 2 to 10 statements?), and plain"
    console.print(marked("1. masked fine-tuning", "bold", where))
    recipe = RECIPE.replace(seed=seed)
    configs = {"half": recipe, "none": recipe.replace(strategy="none", validation="unmasked")}
    with training_beside(configs["none"], store):
        masked = train.run(configs["half"], store, resume=True)
    # read from the store, unless the other process could not train it
    records = {"half": masked, "none": train.run(configs["none"], store, resume=True)}
    folders = {name: str(RunStore(store).folder(config)) for name, config in configs.items()}
    console.print(marked("2. the check", "bold", ": are masked stories in distribution for the model?"))
    only = MeasureConfig(seed=seed, methods=(BASELINE,), limit=TEXTS)
    checks = {name: measure.run(folder, only, store) for name, folder in folders.items()}
    console.print(marked("3. the measurement", "bold", ": which explanations are faithful?"))
    fast = measure.run(folders["half"], only.replace(methods=FAST), store)
    beam = measure.run(folders["half"], only.replace(methods=(BEAM,), limit=BEAM_TEXTS), store)
    tokenizer = load_tokenizer(folders["half"])
    measured = {"loo-sign": fast, BEAM: beam, "random": fast}
    hits = {method: hit_rate(result, method, tokenizer) for method, result in measured.items()}
    console.print("4. the report", style="bold")
    written = report.write(RunStore(store), store / "report.html", replication=replication())
    if as_json:
        checked = {name: result.to_dict() for name, result in checks.items()}
        measurements = [fast.to_dict(), beam.to_dict()]
        trained = {name: record.to_dict() for name, record in records.items()}
        values = {"train": trained, "check": checked, "measure": measurements, "hits": hits}
        print_json({**values, "report": str(written.page), "checkpoint": folders["half"]})
        return
    areas = areas_table(join_methods(fast, beam))
    show([training_table(list(records.values())), check_table(checks), areas])
    shares = ", ".join(f"{name} {share:.0%}" for name, share in hits.items())
    output.print(f"highest-scored word lies in the fact that holds the answer: {shares}")
    show(answer_sentences(written.verdict.sentences))
    text = "Mary went to the garden. John moved to the office."
    next_steps = {
        "the report": written.page,
        "explain a story": f'faithmeter explain {folders["half"]} "{text}" "Where is Mary?"',
        "probe it in the browser": f"faithmeter serve {folders['half']}",
    }
    for purpose, command in next_steps.items():
        output.print(f"{purpose}: {command}", soft_wrap=True)


@contextmanager
def training_beside(config: TrainConfig, store: Path) -> Iterator[None]:
    """Train a config in another process while the block runs, and wait for it, if there is a second core.

    So small a model makes no use of more than one core.
    """
    from ..store.run_store import RunStore

    if (os.cpu_count() or 1) < 2 or RunStore(store).find(config):
        yield
        return
    options = [f"--{name.replace('_', '-')}={value}" for name, value in config.changes().items()]
    command = [sys.executable, "-m", "faithmeter", "train", *options, "--resume", "--quiet", "-o", str(store)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
        process.wait()
    finally:
        process.terminate()


def join_methods(first: Result, second: Result) -> Result:
    """Return the methods of two measurements of a checkpoint; the baseline is that of the first."""
    return replace(first, seeds=({**second.seeds[0], **first.seeds[0]},))


def hit_rate(result: Result, method: str, tokenizer: Any) -> float:
    """Return the fraction of measured stories whose highest-scored token lies in a supporting fact."""
    from ..data import task

    rows = task(RECIPE.task).load()["test"]
    first = result.frame[(result.frame["method"] == method) & (result.frame["percent"] == 0)]
    hits = 0
    for number, scores in zip(first["row"], first["scores"], strict=True):
        offsets = tokenizer(rows[number]["text"], add_special_tokens=False, return_offsets_mapping=True)
        top = offsets["offset_mapping"][scores.index(max(scores))][0]
        hits += any(start <= top < end for start, end in rows[number]["supporting"])
    return hits / len(first)
