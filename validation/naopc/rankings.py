"""Rankings of attributions by our metrics and by theirs, and how far the rankings agree."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from faithmeter.methods.registry import explain
from faithmeter.models.masks import PERCENTS
from faithmeter.stats.curves import absolute_area, removed_share
from faithmeter.stats.other_metrics import ERASER_SHARES, text_metrics

from ..lookup import Floats, LookupClassifier
from .data import DATASETS, LABEL, Ints, Published, aopc_scores, curves

REFERENCES = ("ridge", "shapley", "loo-sign")
"""Scores of words from evaluations alone; `shapley` is computed exactly, as the table holds all sets."""
RESAMPLES = 500
AOPC_TITLES = {
    "comprehensiveness": "AOPC",
    "sufficiency": "AOPC sufficiency",
    "naopc": "NAOPC",
    "naopc_sufficiency": "NAOPC sufficiency",
}
"""Metrics over all steps, by column of `aopc_scores`."""
TITLES = {
    "comprehensiveness": "comprehensiveness",
    "sufficiency": "sufficiency",
    "deletion": "deletion AUC",
    "insertion": "insertion AUC",
    "log_odds": "log-odds",
}
"""Metrics over the shares of ERASER and over all percents, by name in `text_metrics`."""
LOWER_IS_BETTER = ("sufficiency", "AOPC sufficiency", "NAOPC sufficiency", "deletion AUC", "log-odds")


def random_curve(probabilities: Floats) -> Floats:
    """Return the expected probability of the label at each of PERCENTS, over all random orders."""
    n = len(probabilities).bit_length() - 1
    sizes = np.bitwise_count(np.arange(2**n))
    means = np.array([probabilities[sizes == size, LABEL].mean() for size in range(n + 1)])
    return means[[n * percent // 100 for percent in PERCENTS]]


def score_words(method: str, lookup: LookupClassifier) -> Tensor:
    """Return the scores [N, T] that one of REFERENCES gives to the words of all texts."""
    batch = lookup.batch()
    if method != "shapley":
        return explain(lookup.evaluator(), batch, torch.full((len(batch),), LABEL), method)
    scores = torch.zeros(batch.input_ids.shape, dtype=torch.float64)
    for row, n in enumerate(lookup.words):
        values = lookup.table[row, : 2**n, LABEL].numpy()
        scores[row, 1 : n + 1] = torch.from_numpy(shapley_values(values))
    return scores


def shapley_values(values: Floats) -> Floats:
    """Return the Shapley value [n] of each word, from the value of each set of masked words, [2ⁿ].

    A word's value is its mean fall when it is masked, over the sizes of the set masked before and then over
    the sets of a size.
    """
    n = len(values).bit_length() - 1
    sets = np.arange(2**n)
    sizes = np.bitwise_count(sets)
    weights = np.array([1 / (n * math.comb(n - 1, size)) for size in range(n)])
    scores = np.zeros(n)
    for word in range(n):
        without = sets[sets >> word & 1 == 0]
        scores[word] = weights[sizes[without]] @ (values[without] - values[without | 1 << word])
    return scores


def kendall(first: Floats, second: Floats) -> Floats:
    """Return Kendall's τ-b along the last axis; NaN if all values of one side are equal."""
    a, b = (np.sign(values[..., :, None] - values[..., None, :]) for values in (first, second))
    pairs = np.sqrt((a != 0).sum(axis=(-2, -1)) * (b != 0).sum(axis=(-2, -1)).astype(float))
    unknown = np.full(pairs.shape, np.nan)
    tau: Floats = np.divide((a * b).sum(axis=(-2, -1)), pairs, out=unknown, where=pairs > 0)
    return tau


class Measured(NamedTuple):
    """Values of the attributions of one file on the texts that count."""

    ids: Ints
    methods: list[str]
    metrics: dict[str, Floats]
    """By metric, a value for each attribution and text, [M, N]; NaN where it is undefined."""
    curves: Floats
    """Label's probability at PERCENTS, [M, N, S]."""
    random: Floats
    """Expected probability under random orders, [N, S]."""

    def ranked_by(self, counts: Floats) -> dict[str, Floats]:
        """Return each attribution's value by each metric, arrays [R, M], in R resamples with `counts` [R, N].

        Higher is better: the sign of metrics whose lower values are better is changed.
        """
        values = {}
        for name, per_text in self.metrics.items():
            known = np.isfinite(per_text).all(axis=0)
            weights = counts[:, known] / counts[:, known].sum(axis=1, keepdims=True)
            values[name] = weights @ per_text[:, known].T * (-1 if name in LOWER_IS_BETTER else 1)
        weights = counts / counts.sum(axis=1, keepdims=True)
        means = np.einsum("rn,mns->rms", weights, self.curves)
        return {**areas(means, (weights @ self.random)[:, None]), **values}


def areas(means: Floats, random: Floats) -> dict[str, Floats]:
    """Return the area below random, and faithfulness, of mean curves [..., S]."""
    ratios = np.array(PERCENTS) / 100
    below = absolute_area(means, random, ratios)
    return {"area below random": below, "faithfulness": removed_share(means, random, ratios)}


def measure_attributions(file: Published) -> Measured:
    """Measure the ten attributions and REFERENCES on texts that are predicted as the explained class."""
    probabilities = file.probabilities
    lookup = LookupClassifier(probabilities)
    known = {str(name): file.ranks(name) for name in file.scores.explanation_method.unique()}
    table = LookupClassifier(file.tables)
    everything = {name: scores for name, (scores, _) in known.items()}
    everything |= {name: score_words(name, table) for name in REFERENCES}
    fits = np.all([fit for _, fit in known.values()], axis=0)
    rows = np.flatnonzero(fits & [values[0, LABEL] > 0.5 for values in probabilities])

    words = {name: scores[rows] for name, scores in everything.items()}
    chosen, batch = [probabilities[row] for row in rows], lookup.batch()[rows.tolist()]
    wide = aopc_scores(chosen, words).pivot(index="method", columns="id").loc[[*words]]
    metrics = {title: wide[column].to_numpy() for column, title in AOPC_TITLES.items()}
    percents = tuple(sorted({*PERCENTS, *ERASER_SHARES}))
    both = [curves(lookup.evaluator(), batch, scores, percents) for scores in words.values()]
    others = [text_metrics(erased, kept, percents) for erased, kept in both]
    metrics |= {title: np.stack([texts[name] for texts in others]) for name, title in TITLES.items()}
    for name in REFERENCES:
        sizes = np.array(lookup.words)[rows]
        taus = [agree(scores.numpy(), words[name].numpy(), sizes) for scores in words.values()]
        metrics[f"agreement with {name}"] = np.stack(taus)
    erased = np.stack([erased for erased, _ in both])
    tens = [percents.index(percent) for percent in PERCENTS]
    random = np.stack([random_curve(values) for values in chosen])
    return Measured(rows, [*words], metrics, erased[:, :, tens], random)


def agree(first: Floats, second: Floats, sizes: Ints) -> Floats:
    """Return Kendall's τ [N] between two scores [N, T] of the words of each text; NaN for a single word."""
    taus = np.full(len(sizes), np.nan)
    for n in np.unique(sizes):
        rows = np.flatnonzero(sizes == n)
        taus[rows] = kendall(first[rows, 1 : n + 1], second[rows, 1 : n + 1])
    return taus


def tabulate_scores(file: Published, measured: Measured) -> pd.DataFrame:
    """Return the value and the rank of each attribution by each metric; rank 1 is the best of the ten."""
    rows = []
    for metric, values in measured.ranked_by(np.ones((1, len(measured.ids)))).items():
        sign = -1 if metric in LOWER_IS_BETTER else 1
        ten = values[0, : -len(REFERENCES)]
        for method, value in zip(measured.methods, values[0], strict=True):
            rank = 1 + int((ten > value).sum()) if method not in REFERENCES else np.nan
            rows.append((file.dataset, file.model, method, metric, sign * value, rank))
    return pd.DataFrame(rows, columns=["dataset", "model", "attribution", "metric", "value", "rank"])


def compare_rankings(
    measured: Mapping[tuple[str, str], Measured], resamples: int = RESAMPLES
) -> pd.DataFrame:
    """Return Kendall's τ of the ten attributions' order by each pair of metrics, the mean over the ten files.

    Intervals are percentiles of a bootstrap over texts, which draws the same texts for all five models. Close
    ranks change places in resamples, so these agree less than the sample, whose τ may lie above its interval.
    """
    rng = np.random.default_rng(0)
    drawn = {}
    for dataset in DATASETS:
        size = 1 + max(int(part.ids.max()) for (name, _), part in measured.items() if name == dataset)
        counts = rng.multinomial(size, np.full(size, 1 / size), size=resamples)
        drawn[dataset] = np.concatenate([np.ones((1, size)), counts])  # the first row is the sample itself
    taus, names = [], []
    for (dataset, _), part in measured.items():
        ranked = part.ranked_by(drawn[dataset][:, part.ids].astype(float))
        names = [*ranked]
        values = np.stack([*ranked.values()])[:, :, : -len(REFERENCES)]  # [K, R, 10]
        taus.append(kendall(values[:, None], values[None]))  # [K, K, R]
    mean = np.mean(taus, axis=0)
    low, high = np.quantile(mean[..., 1:], [0.025, 0.975], axis=-1)
    rows = [
        (first, second, mean[i, j, 0], low[i, j], high[i, j])
        for i, first in enumerate(names)
        for j, second in enumerate(names)
        if i < j
    ]
    return pd.DataFrame(rows, columns=["metric", "other", "tau", "low", "high"])
