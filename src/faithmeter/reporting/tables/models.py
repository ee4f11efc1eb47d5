"""Models: how well plain fine-tuning performs on unmasked texts, and after how many epochs at most."""

from __future__ import annotations

from .cells import Cell, Column
from .estimates import SEEDS, Frames, estimates
from .published_columns import (
    CHANGED,
    MODELS,
    OURS,
    REFERENCE,
    SIZES,
    beside,
    compared,
    in_order,
    model_names,
    plain,
    quoted,
    quoted_cell,
    size,
    stand_in,
    told,
)
from .table import Table

TITLE = "Unmasked test performance after plain fine-tuning"


def published() -> Table:
    columns = (
        Column(("dataset",), ("Dataset",), "label"),
        Column(("max_epochs",), ("max epoch",), form="number"),
        *(
            Column((of, f"{of}_minus", f"{of}_plus"), ("Performance", model), form="number", unit="%")
            for of, model in zip(SIZES, MODELS, strict=True)
        ),
    )
    rows = tuple(
        (Cell(row["dataset"]), Cell(mean=row["max_epochs"]), *(quoted_cell(row, of) for of in SIZES))
        for row in quoted("performance")
    )
    return Table(f"{TITLE}, published", columns, rows, (), ("Mean with a 95 % confidence interval.",))


def beside_ours(frames: Frames) -> Table:
    """The tasks and models that were fine-tuned without masks, beside what is published."""
    train = frames["train"]
    runs = train[
        (train["strategy"] == "none")
        & (train["validation"] == "unmasked")
        & (train["split"] == "test")
        & (train["masking"] == "0")
    ]
    known = {row["dataset"]: row for row in quoted("performance")}
    found = estimates(runs, ["task", "model"], "value")
    epochs = runs.groupby(["task", "model"])["epochs"].first()
    names = model_names(runs["model"].unique())
    other, rows = stand_in(names), []
    for task, model in in_order(found, known, MODELS):
        of = size(other or model)
        theirs = known.get(plain(task), {}) if of else {}
        ours = found[task, model]
        performance = compared(quoted_cell(theirs, of), ours.cell, (0, 1), like=not other)
        maximum = (Cell(mean=theirs.get("max_epochs")), Cell(mean=int(epochs[task, model])))
        rows.append((Cell(task), Cell(names[model]), *maximum, *performance, *ours.counts()))
    columns = (
        Column(("task",), ("Dataset",), "group"),
        Column(("model",), ("Model",), "label"),
        Column(("max_epochs_published",), ("max epoch", "in the paper"), form="number", side="published"),
        Column(("max_epochs_ours",), ("max epoch", "ours"), form="number", side="ours"),
        *beside("performance", "Performance", decimals=(0, 1), unit="%"),
        Column(("n",), ("Seeds", "n"), form="number"),
        Column(("excluded",), ("Seeds", "excl."), form="number"),
    )
    comparison = (REFERENCE,) if other else (OURS, CHANGED)
    return Table(TITLE, told(columns, other), tuple(rows), (), (SEEDS,), comparison)
