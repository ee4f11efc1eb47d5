"""`faithmeter adapt`: conversion of a classifier to a measurable one, using unlabeled texts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

from ..config import AdaptConfig
from .options import Restart, Resume
from .screen import Json, Store, print_json, show
from .train import run

if TYPE_CHECKING:
    from ..store.records import AdaptRecord


def adapt(
    config: Annotated[AdaptConfig, "model"],
    store: Store = Path("runs"),
    resume: Resume = False,
    restart: Restart = False,
    as_json: Json = False,
) -> None:
    """Fine-tune a classifier on masked texts with its own predictions as labels, to make it measurable.

    Example: faithmeter adapt my-classifier --data texts.csv --text review
    """
    from ..report.view import view
    from ..runs.adaptation import complete_config

    record = cast("AdaptRecord", run(complete_config(config), store, resume=resume, restart=restart))
    if as_json:
        answers = [{"question": a.question, "mood": a.mood, "text": a.text} for a in record.answers]
        print_json({**record.to_dict(), "verdict": answers})
    else:
        show(view(record))
