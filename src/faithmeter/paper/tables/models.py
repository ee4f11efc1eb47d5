"""Table of models: unmasked test performance after plain fine-tuning, and the maximum number of epochs."""

from __future__ import annotations

from ...report.aggregate import Frames
from ...report.blocks import Cell, Table
from ...report.labels import short_names
from ...report.tables.cells import SEED_COLUMNS, column, interval_notes, mean_cells
from . import comparison

TITLE = "Unmasked test performance after plain fine-tuning"


def published_table() -> Table:
    """Return the table of models as published."""
    columns = (
        column(("dataset",), ("Dataset",), "label"),
        column(("max_epochs",), ("max epoch",), form="number"),
        *(
            column((size, f"{size}_minus", f"{size}_plus"), ("Performance", model), form="number", unit="%")
            for model, size in comparison.SIZES.items()
        ),
    )
    rows = []
    for row in comparison.published_rows("performance"):
        values = (comparison.published_cell(row, size) for size in comparison.SIZES.values())
        rows.append((Cell(row["dataset"]), Cell(row["max_epochs"]), *values))
    return Table(f"{TITLE}, published", columns, tuple(rows), ("Mean with a 95 % confidence interval.",))


def comparison_table(frames: Frames) -> Table:
    """Return a table of our plainly fine-tuned models by task, beside published values."""
    train = frames["train"]
    runs = train[
        (train["strategy"] == "none")
        & (train["validation"] == "unmasked")
        & (train["split"] == "test")
        & (train["masking"] == "0")
    ]
    paper = {row["dataset"]: row for row in comparison.published_rows("performance")}
    means = mean_cells(runs, ["task", "model"], "value")
    epochs = runs.groupby(["task", "model"])["epochs"].first()
    names = short_names(runs["model"].unique())
    reference, rows = comparison.reference_model(names), []
    for task, model in comparison.sort_keys(means, paper, comparison.MODELS):
        size = comparison.published_size(reference or model)
        theirs = paper.get(comparison.strip_options(task), {}) if size else {}
        ours = means[task, model]
        performance = comparison.compare_cells(
            comparison.published_cell(theirs, size), ours.value, (0, 1), comparable=not reference
        )
        maximum = (Cell(int(epochs[task, model])), Cell(theirs.get("max_epochs")))
        rows.append((Cell(task), Cell(names[model]), *maximum, *performance, *ours.seeds))
    columns = (
        column(("task",), ("Dataset",), "group"),
        column(("model",), ("Model",), "label"),
        column(("max_epochs_ours",), ("max epoch", "ours"), form="number", side="ours"),
        column(("max_epochs_published",), ("max epoch", "in the paper"), form="number", side="published"),
        *comparison.comparison_columns("performance", "Performance", decimals=(0, 1), unit="%"),
        *SEED_COLUMNS,
    )
    notes = comparison.REFERENCE_NOTES if reference else comparison.DIFFERENCE_NOTES
    return Table(
        TITLE,
        comparison.name_reference(columns, reference),
        tuple(rows),
        interval_notes(rows, columns),
        comparison_notes=notes,
        reference=reference,
    )
