"""`faithmeter demo`: the whole workflow in minutes, with the embedded model and generated stories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..config import BASELINE, EMBEDDED, MeasureConfig, TrainConfig
from . import measure, train
from .screen import Json, Store, join_values, marked, note, output, print_json, show

if TYPE_CHECKING:
    from ..measuring.result import Result
    from ..measuring.trace import Trace

RECIPE = TrainConfig(task="bAbI-1", model=EMBEDDED, epochs=2, learning_rate=1e-3)
"""Training config for the embedded model, which needs a higher learning rate and fewer epochs."""
SEARCH, BEAM = "search", "beam"
"""The ceiling of the other methods: cheap, and that of the paper."""
FAST = ("grad-l2", "inp-grad-sign", "int-grad-sign", "loo-sign", SEARCH)
"""One method of each kind, which tell most of what the others would."""
SLOW = ("grad-l1", "inp-grad-abs", "int-grad-abs", "loo-abs")
"""The other methods of the paper, apart from beam search."""
TEXTS, BEAM_TEXTS = 200, 50


def demo(
    store: Store = Path("runs"),
    seed: Annotated[int, typer.Option(help="seed of all random numbers")] = 0,
    full: Annotated[
        bool,
        typer.Option(
            "--full",
            help="also fine-tune without masks, and measure all of the paper's methods",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Train the embedded model on generated stories, check it, measure five methods, and write a report.

    Needs no downloads. Example: faithmeter demo --seed 1
    """
    from ..models.loading import load_tokenizer
    from ..paper.tables import TABLES
    from ..report import page as report
    from ..report.view import answer_sentences, areas_table, check_table, training_table
    from ..store.run_store import RunStore

    where = " on bAbI-1 (where is an actor, after 2 to 10 statements?)" + ", and plain" * full
    note(marked("1. masked fine-tuning", "bold", where))
    recipe = RECIPE.replace(seed=seed)
    records = {"half": train.run(recipe, store, resume=True)}
    if full:
        plain = recipe.replace(strategy="none", validation="unmasked")
        records["none"] = train.run(plain, store, resume=True)
    folders = {name: str(RunStore(store).folder(record.config)) for name, record in records.items()}
    note(marked("2. the check", "bold", ": are masked stories in distribution for the model?"))
    only = MeasureConfig(seed=seed, methods=(BASELINE,), limit=TEXTS)
    checks = {name: measure.run(folder, only, store) for name, folder in folders.items()}
    note(marked("3. the measurement", "bold", ": which explanations are faithful?"))
    methods = FAST + SLOW * full
    measured = [measure.run(folders["half"], only.replace(methods=methods), store)]
    if full:
        few = only.replace(methods=(BEAM,), limit=BEAM_TEXTS)
        measured.append(measure.run(folders["half"], few, store))
    tokenizer = load_tokenizer(folders["half"])
    pointing = {"loo-sign": measured[0], BEAM if full else SEARCH: measured[-1], "random": measured[0]}
    hits = {method: hit_rate(result, method, tokenizer) for method, result in pointing.items()}
    note(marked("4. the report", "bold", ""))
    written = report.write(RunStore(store), store / "report.html", tables=TABLES)
    if as_json:
        checked = {name: result.to_dict() for name, result in checks.items()}
        trained = {name: record.to_dict() for name, record in records.items()}
        measurements = [result.to_dict() for result in measured]
        values = {"train": trained, "check": checked, "measure": measurements, "hits": hits}
        print_json({**values, "report": str(written.page), "checkpoint": folders["half"]})
        return
    areas = areas_table(join_methods(measured))
    show([training_table(list(records.values())), check_table(checks), areas])
    shares = join_values(hits, ".0%")
    output.print(f"highest-scored word lies in the fact that holds the answer: {shares}")
    show(answer_sentences(written.answers))
    text = "Mary went to the garden. John moved to the office."
    next_steps = {
        "the report": written.page,
        "explain a story": f'faithmeter explain {folders["half"]} "{text}" "Where is Mary?"',
        "probe it in the browser": f"faithmeter serve {folders['half']}",
    }
    if not full:
        next_steps["all methods, beside a model without masks"] = "faithmeter demo --full"
    for purpose, command in next_steps.items():
        output.print(f"{purpose}: {command}", soft_wrap=True)


def join_methods(results: Sequence[Result]) -> Result:
    """Return the methods of measurements of one checkpoint; the baseline is that of the first."""
    traces: dict[str, Trace] = {}
    for result in reversed(results):
        traces |= result.seeds[0]
    return replace(results[0], seeds=(traces,))


def hit_rate(result: Result, method: str, tokenizer: Any) -> float:
    """Return the fraction of measured stories whose highest-scored token lies in a supporting fact."""
    from ..data import task

    rows = task(RECIPE.task).load()["test"]
    first = result.frame[(result.frame["method"] == method) & (result.frame["percent"] == 0)]
    hits = 0
    for number, scores in zip(first["row"], first["scores"], strict=True):
        offsets = tokenizer(rows[number]["text"], add_special_tokens=False, return_offsets_mapping=True)
        top = offsets["offset_mapping"][scores.index(max(scores))][0]  # character of the highest-scored word
        hits += any(start <= top < end for start, end in rows[number]["supporting"])
    return hits / len(first)
