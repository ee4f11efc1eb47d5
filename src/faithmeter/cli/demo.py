"""`faithmeter demo`: the whole workflow in minutes, with what ships in the package."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ..config import TrainConfig
from .screen import Json, Store, console, output, print_json
from .train import run, summary

RECIPE = TrainConfig(task="bAbI-1", model="embedded", epochs=2, learning_rate=1e-3)
"""A model this small needs a higher learning rate than the paper's, and then fewer epochs."""


def demo(
    store: Store = Path("runs"),
    seed: Annotated[int, typer.Option(help="all randomness comes from it")] = 0,
    as_json: Json = False,
) -> None:
    """Fine-tune the embedded model on generated bAbI stories, with masking and plainly, and compare the two.

    Needs no downloads. Example: faithmeter demo --seed 1
    """
    console.print(
        "bAbI-1: where is an actor, after 2 to 10 statements? Half of every mini-batch is masked, then none."
    )
    records = [run(replace(RECIPE, seed=seed, strategy=s), store, resume=True) for s in ("half", "none")]
    if as_json:
        print_json(records)
        return
    output.print(summary(records))
    output.print(
        "Masked fine-tuning keeps the unmasked performance and falls to the class majority as the story "
        "disappears: masked stories are normal inputs to it. The plain model never saw a mask.",
        soft_wrap=True,
    )
