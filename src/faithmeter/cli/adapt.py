"""`faithmeter adapt`: conversion of a classifier to a measurable one, using unlabeled texts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from ..config import AdaptConfig
from .options import Restart, Resume, configured
from .progress import bars, phase_bars, training_bar
from .results import print_answers, print_truncated
from .screen import Json, Store, console, output, print_json, quiet, table

if TYPE_CHECKING:
    from ..store.records import AdaptRecord


@configured(AdaptConfig, argument="model")
def adapt(
    config: AdaptConfig,
    store: Store = Path("runs"),
    resume: Resume = False,
    restart: Restart = False,
    as_json: Json = False,
) -> None:
    """Fine-tune a classifier on masked texts with its own predictions as labels, to make it measurable.

    Example: faithmeter adapt my-classifier --data texts.csv --text review
    """
    from ..runs.adaptation import adapt as run
    from ..runs.adaptation import complete_config
    from ..store.run_store import RunStore

    quiet()
    config, root = complete_config(config), RunStore(store)
    with bars() as progress:
        record = run(
            config,
            root,
            resume=resume,
            restart=restart,
            callbacks=[training_bar(progress, Path(config.title).name)],
            progress=phase_bars(progress),
        )
    console.print(f"checkpoint: {root.folder(config)}", soft_wrap=True)
    print_truncated(record)
    if as_json:
        answers = [{"question": a.question, "mood": a.mood, "text": a.text} for a in record.answers]
        print_json({**record.to_dict(), "verdict": answers})
        return
    output.print(summary(record))
    print_answers(record.answers, output)


def summary(record: AdaptRecord) -> Table:
    """Return a table of both models' p-values and their agreement, by percent masked."""
    percents = [*next(iter(record.p_adapted.values()))]
    title = f"are {record.checked_texts} randomly masked texts in distribution? p by percent masked"
    rows = table(title, "model, test", *map(str, percents))
    rows.collapse_padding = True  # to fit into 80 columns
    for name, checks in (("original", record.p_original), ("adapted", record.p_adapted)):
        for test, steps in checks.items():
            rows.add_row(f"{name} {test}", *(f"{steps[percent]:.2f}" for percent in percents))
    shares = {line.masking: line.score(record.metric) for line in record.test}
    agreement = (f"{100 * shares[percent]:.1f}" for percent in percents)
    rows.add_row("agreement in %", *agreement, style="dim")
    return rows
