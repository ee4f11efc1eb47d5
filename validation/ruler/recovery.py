"""How often each metric finds what is known to be right: the truth, the degraded orders, and nothing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from faithmeter.config import BASELINE
from faithmeter.stats.curves import MIN_REMOVABLE, removable_area

from ..controls import cache
from ..controls.cache import Control
from ..controls.exact import TASKS, exact_excess
from ..naopc.rankings import kendall
from .erasures import BESTS, TRUTHS, Answers, Floats, read, ways
from .orders import LEVELS, REVERSED
from .rivals import OURS, RATIOS, metrics_of

TRUTH = TRUTHS[0]
EMPTY = ("shuffled", "random")
"""Task and training of models that know nothing."""
TOLERANCE = 0.01
"""The truth is tied with a lead below this share of the best one's distance from random orders."""
TWO_CLASSES = (*TASKS, "negation")
"""Tasks of which one masked deciding word leaves nothing to know."""
CLOSEST = 1e-4
RESAMPLES = 1000
SIZES = (5, 10, 20, 50, 100)
"""Numbers of texts on which degraded orders are ranked."""
TEXTS = 100
"""Texts of the number that is reported first."""
DRAWS = 200
WINDOWS, WINDOW_TEXTS = 100, 64
"""Draws of texts in which empty models are praised or not."""
SURE = 0.95
KNOWN = np.arange(LEVELS, -1, -1.0)
"""Known ranking of eleven orders: the first is the best."""


class Case(NamedTuple):
    """A model's answers to texts erased in one way, and what it was."""

    control: Control
    way: str
    answers: Answers

    @property
    def keys(self) -> dict[str, object]:
        one = self.control
        keys = {"encoder": one.encoder, "task": one.task, "training": one.training, "seed": one.seed}
        source = "controls" if self.answers.kept is None else "ruler"
        return {**keys, "epochs": one.epochs, "texts": self.texts, "source": source, "way": self.way}

    @property
    def rivals(self) -> tuple[str, ...]:
        """Explanations that the truth must not be behind: all that methods gave."""
        others = (BASELINE, REVERSED, *TRUTHS, *BESTS)
        return tuple(name for name in self.answers.names if name not in others)

    @property
    def texts(self) -> int:
        return self.answers.erased.shape[1]

    def places(self, names: tuple[str, ...]) -> list[int]:
        return [self.answers.names.index(name) for name in names]


def cases(control: Control) -> list[Case]:
    """Return the cases of a model, one for each way to erase."""
    return [Case(control, way, read(control, way)) for way in ways(control)]


def case_of_control(control: Control) -> Case:
    """Return a model of `validation.controls`, whose logits with erased words are kept and nothing else."""
    erasures = cache.read(control)
    names, logits = zip(*erasures.methods.items(), strict=True)
    stacked, labels = np.stack(logits).astype(float), erasures.test_labels[: len(logits[0])]
    odds = stacked - np.logaddexp.reduce(stacked, axis=3, keepdims=True)
    erased = np.exp(np.take_along_axis(odds, labels[None, :, None, None], axis=3)[..., 0])
    right = stacked.argmax(axis=3) == labels[None, :, None]
    renamed = tuple(TRUTH if name == cache.TRUTH else name for name in names)
    return Case(control, "mask", Answers(renamed, erased, None, right, {}))


def known_controls() -> list[Control]:
    """Return the models of `validation.controls` that this page counts, too: explained in tenths."""
    trained = [one for one in cache.CONTROLS if one.file.exists() and one.explained and one.step == 10]
    return [one for one in trained if one.training in ("masked", "plain", EMPTY[1])]


def resampled(known: NDArray[np.bool_], size: int, draws: int, seed: int) -> Floats:
    """Return weights [draws, N] of `size` texts that are drawn with replacement from the known ones."""
    weights, count = np.zeros((draws, len(known))), int(known.sum())
    weights[:, known] = np.random.default_rng(seed).multinomial(size, np.full(count, 1 / count), draws) / size
    return weights


def find_truth(case: Case) -> pd.DataFrame:
    """Return for each metric whether the truth is first or tied, and what is ahead of it.

    The truth is behind if another explanation leads by more than TOLERANCE and surely, by a bootstrap
    over texts.
    """
    random, truth, *rivals = case.places((BASELINE, TRUTH, *case.rivals))
    rows = []
    for metric, (weighted, known) in metrics_of(case.answers).items():
        observed = (known / known.sum())[None]
        values = weighted(np.concatenate([observed, resampled(known, int(known.sum()), RESAMPLES, seed=0)]))
        scale = abs(values[0, [truth, *rivals]].max() - values[0, random])
        gaps = values[:, rivals] - values[:, [truth]]  # [R, M]
        surely = np.quantile(gaps[1:], (1 - SURE) / 2, axis=0) > 0
        behind = (gaps[0] > TOLERANCE * scale) & surely
        told = bool(np.isfinite(gaps[0]).all())  # a metric that tells nothing has not found the truth
        leader = int(gaps[0].argmax())
        rows.append(
            {
                **case.keys,
                "metric": metric,
                "first_or_tied": told and not behind.any(),
                "not_behind": told * int((~behind).sum()),
                "compared": len(rivals),
                "leader": case.rivals[leader],
                "behind_by": gaps[0, leader] / scale if scale else np.nan,
            }
        )
    return pd.DataFrame(rows)


def tell_learned(case: Case) -> pd.DataFrame:
    """Return how far a model is from the best prediction once its truth masks, in nats; no row if unknown.

    That prediction is one half as soon as one deciding word is masked. A model that is far from it has not
    learned the truth to the end. Both classes are judged alike, by the label's probability alone.
    """
    if case.way != "mask" or case.control.task not in TWO_CLASSES:
        return pd.DataFrame()
    # as float16, probabilities close to 0 and 1 are equal to these
    label = case.answers.erased[case.answers.names.index(TRUTH)].clip(CLOSEST, 1 - CLOSEST)
    excess = exact_excess(np.log(np.stack([label, 1 - label], axis=2)))[:, 1:-1].mean(axis=0)
    return pd.DataFrame([{**case.keys, "excess": excess.max()}])


def rank_degraded(case: Case) -> pd.DataFrame:
    """Return Kendall's τ of each metric with the known ranking of degraded orders, by number of texts."""
    rows = []
    metrics = metrics_of(case.answers)
    for ladder, names in (("truth", TRUTHS), ("best", BESTS)):
        if names[-1] not in case.answers.names:
            continue
        places = case.places(names)
        for size in SIZES:
            for metric, (weighted, known) in metrics.items():
                values = weighted(resampled(known, size, DRAWS, seed=size))[:, places]
                if not np.isfinite(values).any():
                    continue
                # a metric that puts all on a par has found nothing
                taus = np.nan_to_num(kendall(np.broadcast_to(KNOWN, values.shape), values))
                low, high = np.quantile(taus, [(1 - SURE) / 2, (1 + SURE) / 2])
                rows.append(
                    {
                        **case.keys, "metric": metric, "ladder": ladder, "drawn": size,
                        "tau": taus.mean(), "low": low, "high": high, "error": taus.std(),
                    }
                )  # fmt: skip
    return pd.DataFrame(rows)


def praise_nothing(case: Case) -> pd.DataFrame:
    """Return in how many windows each metric praises an explanation of a model that knows nothing.

    Praise is a value surely above that of random orders. Faithfulness is told only where something can
    surely be removed, as in the package.
    """
    random, *rivals = case.places((BASELINE, *case.rivals))
    metrics = metrics_of(case.answers)
    praised = dict.fromkeys(metrics, 0)
    for metric, (weighted, known) in metrics.items():
        rng = np.random.default_rng(0)
        for seed in range(WINDOWS):
            window = np.zeros(case.texts, bool)
            window[rng.permutation(np.flatnonzero(known))[:WINDOW_TEXTS]] = True
            weights = resampled(window, int(window.sum()), RESAMPLES // 2, seed)
            values = weighted(weights)
            # NaN where nothing is told, which is no praise
            leads = np.quantile(values[:, rivals] - values[:, [random]], (1 - SURE) / 2, axis=0)
            told = metric != OURS or _something_to_remove(case, weights, random)
            praised[metric] += bool((leads > 0).any() and told)
    rows = [{**case.keys, "metric": name, "praised": n, "windows": WINDOWS} for name, n in praised.items()]
    return pd.DataFrame(rows)


def _something_to_remove(case: Case, weights: Floats, random: int) -> bool:
    areas = removable_area(weights @ case.answers.erased[random], RATIOS)
    return bool(areas.mean() >= MIN_REMOVABLE and np.quantile(areas, (1 - SURE) / 2) > 0)
