"""Searches for the best erasure order against the exact optimum, by number of evaluations."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from faithmeter.methods.registry import explain
from faithmeter.models.masks import PERCENTS

from ..lookup import Floats, LookupClassifier
from .data import LABEL, Ints, Published, aopc_scores, curves, ranks_of

WIDTHS = (1, 5, 10, 20, 50)
"""Widths of beams; the authors' widest is 50."""
SEARCHES = {
    "logits": (
        *(f"beam(width={width})" for width in WIDTHS[:3]),
        *(f"search(budget={budget},gradients=0)" for budget in (2, 5, 10, 20)),
        *(f"search(budget={budget},exchanges=0,gradients=0)" for budget in (5, 20)),
        "exhaustive",
    ),
    "probabilities": tuple(f"beam(width={width})" for width in WIDTHS),
}
"""Methods by the values that they search. The table has no gradients, so `search` proposes orders by
leave-one-out. AOPC is an area of the probability, so a beam on probabilities searches for what is counted."""


def authors_beam(values: Floats, width: int) -> tuple[Ints, int]:
    """Return the order that the authors' beam search finds, and the number of sets that it evaluates.

    Unlike ours, it keeps several orders of the same set of words. `values` [2ⁿ] is the label's probability
    for each set; the whole text counts as one evaluation.
    """
    n = len(values).bit_length() - 1
    sets, areas, orders = np.zeros(1, np.int64), np.zeros(1), np.zeros((1, 0), np.int64)
    evaluations = 1
    for _ in range(n):
        parents, words = np.nonzero(~(sets[:, None] >> np.arange(n)) & 1)
        children = sets[parents] | 1 << words
        evaluations += len(np.unique(children))
        sums = areas[parents] + values[0] - values[children]
        best = np.argsort(-sums, kind="stable")[:width]
        sets, areas = children[best], sums[best]
        orders = np.column_stack([orders[parents], words])[best]
    return orders[0], evaluations


def search_orders(file: Published) -> dict[tuple[str, str], tuple[Tensor, Floats]]:
    """Return the ranks [N, T] and evaluations [N] of each search, by its name and the values it reads.

    Texts of equal length are searched together, and have the mean of their evaluations.
    """
    found = {}
    for values, methods in SEARCHES.items():
        lookup = LookupClassifier(file.tables if values == "logits" else file.probabilities)
        batch, sizes = lookup.batch(), np.array(lookup.words)
        for method in methods:
            ranks, evaluations = torch.zeros(batch.input_ids.shape, dtype=torch.float64), np.zeros(len(batch))
            for rows in (np.flatnonzero(sizes == n) for n in np.unique(sizes)):
                clf = lookup.evaluator()
                ranks[rows] = explain(clf, batch[rows.tolist()], [LABEL] * len(rows), method)
                evaluations[rows] = clf.evaluations / len(rows)
            found[method, values] = ranks, evaluations
    for width in WIDTHS:
        ranks, evaluations = torch.zeros_like(ranks), np.zeros(len(batch))
        for row, table in enumerate(file.probabilities):
            order, evaluations[row] = authors_beam(table[:, LABEL], width)
            ranks[row, 1 : len(order) + 1] = ranks_of(order)
        found[f"authors' beam {width}", "probabilities"] = ranks, evaluations
    return found


def run_searches(file: Published) -> pd.DataFrame:
    """Return what each search reaches on each text, with its evaluations."""
    probabilities = file.probabilities
    lookup, found = LookupClassifier(probabilities), search_orders(file)
    scores = aopc_scores(probabilities, {"|".join(key): ranks for key, (ranks, _) in found.items()})
    by_method = {name: rows.set_index("id").sort_index() for name, rows in scores.groupby("method")}
    clf, batch = lookup.evaluator(), lookup.batch()
    frames = []
    for (name, values), (ranks, evaluations) in found.items():
        own = by_method[f"{name}|{values}"]
        predicted = curves(clf, batch, ranks, PERCENTS)[0][:, 1:-1] >= 0.5
        frame = pd.DataFrame(
            {
                "dataset": file.dataset,
                "model": file.model,
                "method": name,
                "values": values,
                "words": own.words,
                "predicted": [table[0, LABEL] >= 0.5 for table in probabilities],
                "evaluations": evaluations,
                "aopc": own.comprehensiveness,
                "best_aopc": by_method["best"].comprehensiveness,
                "naopc": own.naopc,
                "changed": (~predicted).sum(axis=1),
            }
        )
        frames.append(frame)
    return pd.concat(frames).reset_index(names="id")


def summarize_searches(texts: pd.DataFrame) -> pd.DataFrame:
    """Return for each search the share of the exact optimum and the evaluations.

    There are rows for each file, for all files together, and for all files by number of words:

    - `share`: sum of the AOPCs found over the sum of the exact best; `share_predicted`: of the texts that the
      model gives to the explained class;
    - `naopc`: mean place between the exact worst and best; texts of one word have none;
    - `exact`: share of texts with an AOPC within 1e-9 of the best;
    - `changed`: changed predictions at 10 … 90 % erased, which `search` maximizes, as a share of the most
      possible (those of `exhaustive`), on predicted texts;
    - `cost`: evaluations as a share of those of the authors' beam of width 50.
    """
    merged = texts.assign(dataset="all", model="all")
    everything = pd.concat([texts.assign(words="all"), merged.assign(words="all"), merged])
    rows = []
    for (dataset, model, words), part in everything.groupby(["dataset", "model", "words"], sort=False):
        widest = part[part.method == f"authors' beam {WIDTHS[-1]}"].evaluations.mean()
        ceiling = part[(part.method == "exhaustive") & (part["values"] == "logits")]
        most = ceiling[ceiling.predicted].changed.sum()
        for (method, values), found in part.groupby(["method", "values"], sort=False):
            ours = found[found.predicted]
            rows.append(
                {
                    "dataset": dataset,
                    "model": model,
                    "words": words,
                    "method": method,
                    "values": values,
                    "texts": len(found),
                    "evaluations": found.evaluations.mean(),
                    "cost": found.evaluations.mean() / widest,
                    "share": found.aopc.sum() / found.best_aopc.sum(),
                    "share_predicted": ours.aopc.sum() / ours.best_aopc.sum(),
                    "naopc": found.naopc.mean(),
                    "exact": (found.best_aopc - found.aopc < 1e-9).mean(),
                    "changed": ours.changed.sum() / most if most else np.nan,
                }
            )
    return pd.DataFrame(rows)
