"""Sentences on the performance of models with a single run, which have no chart."""

from __future__ import annotations

from collections.abc import Iterator

from pandas import DataFrame

from ...verdict.formats import format_metric, format_percent
from ..labels import short_names

TRAINING_PHRASES = {
    "half": "with half of every mini-batch masked",
    "all": "with every text masked",
    "none": "without masks",
}


def performance_sentences(train: DataFrame) -> Iterator[str]:
    """Yield a sentence on test performance for each task and model with exactly one fine-tuning run.

    Args:
        train: The frame `train` of a store.
    """
    test = train[(train["split"] == "test") & train["best"].astype(bool)]
    names = {column: short_names(test[column]) for column in ("task", "model")}
    for key, rows in test.groupby(["task", "model"]):
        if rows["digest"].nunique() > 1:
            continue
        values = {row["masking"]: format_percent(row["value"]) for row in rows.to_dict("records")}
        metric, training = format_metric(rows["metric"].iloc[0]), TRAINING_PHRASES[rows["strategy"].iloc[0]]
        masked = "all" if "all" in values else "100"
        which = "wholly masked ones" if masked == "all" else "ones with the explained column masked"
        task, model = (names[column][str(name)] for column, name in zip(names, key, strict=True))
        yield (
            f"{model}, fine-tuned on {task} {training}: {values['0']}% {metric} on whole test texts, "
            f"{values[masked]}% on {which}; always the most frequent class of the training texts: "
            f"{format_percent(rows['majority'].iloc[0])}%."
        )
