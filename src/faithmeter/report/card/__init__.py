"""Model card of a checkpoint: its measurements in the README.md that Hugging Face displays."""

from __future__ import annotations

from pathlib import Path

import yaml  # type: ignore[import-untyped]

from ...errors import InputError
from ...files import atomic
from ...store.run_store import RunStore
from .facts import gather, hub_results, results
from .readme import new_card, section, with_results, with_section

__all__ = ["write"]

README = "README.md"
EVAL_RESULTS = Path(".eval_results", "faithmeter.yaml")
"""Results on datasets of the hub, which lists them on the pages of model and dataset."""


def write(checkpoint: str | Path, store: RunStore) -> Path:
    """Write the measurements of a checkpoint into the README.md in its folder, and return its path.

    Only our section and our results in the metadata are replaced; everything else is kept. Results on
    datasets of the hub are also written to `.eval_results/faithmeter.yaml`.

    Raises:
        InputError: The folder or its measurements are missing, or the README.md cannot be parsed.
    """
    folder = Path(checkpoint)
    facts, path = gather(folder, store), folder / README
    try:
        old = path.read_bytes().decode("utf-8-sig") if path.exists() else new_card(facts)
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 ({error}); save it as UTF-8 and run again") from error
    # edited on Windows: its lines end as before, or every line would differ in its history
    line_break = "\r\n" if "\r\n" in old else "\n"
    text = with_section(old.replace("\r\n", "\n"), section(facts), path)
    text = with_results(text, facts.name, list(results(facts)), path).replace("\n", line_break)
    with atomic(path) as temporary:
        temporary.write_bytes(text.encode())
    entries = hub_results(facts)
    if entries:
        with atomic(folder / EVAL_RESULTS) as temporary:
            temporary.write_text(yaml.safe_dump(entries, sort_keys=False), encoding="utf-8")
    return path
