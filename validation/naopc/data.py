"""The published files, and the package's metrics on their tables."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from faithmeter.measuring.erase import erase
from faithmeter.methods.search import cheapest_order
from faithmeter.models.evaluator import Evaluator
from faithmeter.models.tokens import Batch
from faithmeter.stats.other_metrics import normalized_aopc, text_metrics

from ..lookup import Floats, LookupClassifier

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("FAITHMETER_SHARED", ROOT.parent / "shared")) / "data" / "NAOPC"
RESULTS = ROOT / "results" / "validation"
DATASETS = ("sst2", "yelp")
MODELS = (
    "bert-base-uncased-SST-2",
    "bert-base-uncased-imdb",
    "bert-base-uncased-yelp-polarity",
    "roberta-base-SST-2",
    "roberta-base-finetuned-yelp-polarity",
)
LABEL = 1
"""The class that the authors explain, whatever the model predicts."""
Ints = NDArray[np.int64]


class Published(NamedTuple):
    """One of the ten files: a model on the texts of a dataset."""

    dataset: str
    model: str
    tables: list[Floats]
    """Logits of each text for each set of masked words, [2ⁿ, 2]; columns are class 0 and 1."""
    attributions: pd.DataFrame
    """Columns `explanation_method`, `id` and `word_attributions`, which include the special tokens."""
    scores: pd.DataFrame
    """Columns `explanation_method`, `id`, `comprehensiveness`, `sufficiency` and `prob`."""
    limits: pd.DataFrame
    """Columns `id`, `upper_limit` and `lower_limit`."""

    @property
    def probabilities(self) -> list[Floats]:
        """Probability of both classes in the same layout as `tables`."""
        return [np.exp(table - np.logaddexp.reduce(table, axis=1, keepdims=True)) for table in self.tables]

    def ranks(self, method: str) -> tuple[Tensor, NDArray[np.bool_]]:
        """Return the ranks [N, T] of words by a published attribution, and whether it scores these words.

        Equal scores rank from left to right. A text whose words are not those of the table has ranks of 0.
        """
        chosen = self.attributions[self.attributions.explanation_method == method].sort_values("id")
        clf = LookupClassifier(self.tables)
        ranks, fits = torch.zeros(clf.batch().input_ids.shape, dtype=torch.float64), []
        for row, (scores, n) in enumerate(zip(chosen.word_attributions, clf.words, strict=True)):
            fits.append(len(scores) == n + 2)
            if fits[-1]:
                ranks[row, 1 : n + 1] = ranks_of(np.argsort(-scores[1:-1], kind="stable"))
        return ranks, np.array(fits)


@cache
def read(dataset: str, model: str) -> Published:
    """Read one of the ten files."""
    name = f"{dataset}_{model}"
    outputs = pd.read_parquet(DATA / "permutation_outputs" / f"{name}.parquet")
    outputs["set"] = [sum(1 << (word - 1) for word in json.loads(key)) for key in outputs.word_key]
    tables = []
    for _, rows in outputs.groupby("id"):
        rows = rows.sort_values("set")
        if rows.set.tolist() != list(range(len(rows))):
            raise ValueError(f"{name}: a text has no logits for some sets of words; expected all 2ⁿ sets")
        tables.append(rows[["negative_logit", "positive_logit"]].to_numpy())
    return Published(
        dataset,
        model,
        tables,
        pd.read_parquet(DATA / "feature_attribution_scores" / f"{dataset}_short_{model}.parquet"),
        pd.read_csv(DATA / "aopc_scores_short" / f"{name}.csv"),
        pd.read_parquet(DATA / "aopc_limits_exact" / f"{name}.parquet"),
    )


def files() -> Iterator[Published]:
    """Yield the ten files."""
    for dataset in DATASETS:
        for model in MODELS:
            yield read(dataset, model)


def ranks_of(order: Ints) -> Tensor:
    """Return the rank of each word in an order: n for the first to mask, 1 for the last."""
    ranks = torch.zeros(len(order), dtype=torch.float64)
    ranks[torch.from_numpy(order)] = torch.arange(len(order), 0, -1).double()
    return ranks


def exact_order(probabilities: Floats, *, worst: bool = False) -> Ints:
    """Return the order of words with the largest AOPC, or with the smallest, by dynamic programming."""
    values = probabilities[:, LABEL]
    return cheapest_order(-values if worst else values)


def exact_ranks(probabilities: list[Floats], *, worst: bool = False) -> Tensor:
    """Return the ranks [N, T] of the words of each text in its exact best or worst order."""
    ranks = torch.zeros(LookupClassifier(probabilities).batch().input_ids.shape, dtype=torch.float64)
    for row, table in enumerate(probabilities):
        order = exact_order(table, worst=worst)
        ranks[row, 1 : len(order) + 1] = ranks_of(order)
    return ranks


def curves(clf: Evaluator, batch: Batch, scores: Tensor, percents: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Return the label's probability [B, S] with the highest words erased, and with only them left."""
    labels = torch.full((len(batch),), LABEL)
    erased, kept = [], []
    for _, step in erase(clf, batch, labels, "random", percents=percents, scores=scores):
        rest = batch.explained & (step.input_ids != clf.mask_id)
        erased.append(clf.logits(step)[:, LABEL].numpy())
        kept.append(clf.logits(batch.masked(rest, clf.mask_id))[:, LABEL].numpy())
    return np.column_stack(erased), np.column_stack(kept)


def word_percents(n: int) -> tuple[int, ...]:
    """Return the percents at which 0, 1, …, n of n words are masked."""
    return tuple(-(-100 * k // n) for k in range(n + 1))


def aopc_scores(probabilities: list[Floats], ranks: Mapping[str, Tensor]) -> pd.DataFrame:
    """Return AOPC, sufficiency and both normalized, for each order and text, by the package's functions.

    The package's metrics take the steps to average over, so the authors' definitions need no variant:
    comprehensiveness averages over 1 … n masked words, sufficiency over 0 … n − 1 words that are left.
    """
    lookup = LookupClassifier(probabilities)
    clf, batch, words = lookup.evaluator(), lookup.batch(), np.array(lookup.words)
    orders = {**ranks, "best": exact_ranks(probabilities), "worst": exact_ranks(probabilities, worst=True)}
    parts = []
    for n in np.unique(words).tolist():
        rows, percents = np.flatnonzero(words == n), word_percents(n)
        part, width = batch[rows.tolist()], batch.input_ids.shape[1]
        both = {name: curves(clf, part, order[rows, :width], percents) for name, order in orders.items()}
        naopc = normalized_aopc({name: erased for name, (erased, _) in both.items()})
        bounds = {"best": both["best"][0], "worst": both["worst"][0]}
        for name, (erased, kept) in both.items():
            reverse = {**bounds, name: kept[:, ::-1]}  # with k words left, the n − k last are masked
            frame = {
                "id": rows,
                "words": n,
                "method": name,
                "comprehensiveness": text_metrics(erased, None, percents, percents[1:])["comprehensiveness"],
                "sufficiency": text_metrics(erased, kept, percents, percents[:-1])["sufficiency"],
                "naopc": naopc[name],
                "naopc_sufficiency": normalized_aopc(reverse)[name],
            }
            parts.append(pd.DataFrame(frame))
    return pd.concat(parts, ignore_index=True)
