"""Selection of measurements on the same number of texts, which can be averaged and compared."""

from __future__ import annotations

from pathlib import PurePath

from pandas import DataFrame


def keep_usual_texts(frame: DataFrame, by: list[str]) -> tuple[DataFrame, tuple[str, ...]]:
    """Return the runs of each group on its most common number of texts, and a note on the runs left out.

    The most common number is the one with the most seeds; the larger one wins a tie.
    """
    if frame.empty:
        return frame, ()
    seeds = frame.groupby([*by, "texts"])["seed"].nunique().reset_index()
    usual = seeds.sort_values(["seed", "texts"]).drop_duplicates(by, keep="last")
    keys = [*by, "texts"]
    mask = frame.set_index(keys).index.isin(usual.set_index(keys).index)
    return frame[mask], _note("Left out because they ran on another number of texts than most", frame[~mask])


def note_fewer_texts(frame: DataFrame) -> tuple[str, ...]:
    """Return a note on methods that ran on fewer texts than others of their task and model, if any."""
    most = frame.groupby(["task", "model"])["texts"].transform("max")
    fewer = frame.assign(texts=frame["texts"].astype(str) + " of " + most.astype(str))[frame["texts"] < most]
    return _note("Not comparable with the other methods because they ran on fewer texts", fewer)


def _note(reason: str, frame: DataFrame) -> tuple[str, ...]:
    runs = "; ".join(
        f"{task}, {PurePath(str(model)).name}, {', '.join(sorted(set(rows['method'])))} ({texts} texts)"
        for (task, model, texts), rows in frame.groupby(["task", "model", "texts"])
    )
    return (f"{reason}: {runs}.",) if runs else ()
