"""`faithmeter adapt`: conversion of a classifier to a measurable one, using unlabeled texts."""

from __future__ import annotations

from pathlib import Path

from ..config import AdaptConfig
from ..files import require_writable
from .options import Restart, Resume, configured
from .progress import bars, phase_bars, training_bar
from .results import print_truncated, show
from .screen import Json, Store, note, print_json, quiet


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
    from ..report.view import view
    from ..runs.adaptation import adapt as run
    from ..runs.adaptation import complete_config
    from ..store.run_store import RunStore

    quiet()
    config, root = complete_config(config), RunStore(store)
    require_writable(store, "--output")
    with bars() as progress:
        record = run(
            config,
            root,
            resume=resume,
            restart=restart,
            callbacks=[training_bar(progress, Path(config.title).name)],
            progress=phase_bars(progress),
        )
    note(f"checkpoint: {root.folder(config)}")
    note(f"next: faithmeter measure {root.folder(config)}")
    print_truncated(record)
    if as_json:
        answers = [{"question": a.question, "mood": a.mood, "text": a.text} for a in record.answers]
        print_json({**record.to_dict(), "verdict": answers})
        return
    show(view(record))
