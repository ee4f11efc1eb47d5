"""Evidence → claims, each with its effect, interval, verdict and published counterpart."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import method_claims
from claim import Claim, statements
from evidence import LONGER, MASKED, ONLY_MASKED, PLAIN, STORIES, Effect, Place, Study, over_seeds, paired
from rules import MARGIN, judge, judge_equivalence, judge_gain


def _both_trained(study: Study, other: str = PLAIN) -> Iterator[Place]:
    for place in study.places.values():
        if study.test_scores(place.grid, MASKED, "0") and study.test_scores(place.grid, other, "0"):
            yield place


def unmasked_performance(study: Study) -> Iterator[Claim]:
    [statement] = statements("a")
    for place in _both_trained(study):
        scores = (study.test_scores(place.grid, strategy, "0") for strategy in (MASKED, PLAIN))
        effect = paired(*scores)
        yield Claim("a", statement, study.title(place), effect, judge(effect, -MARGIN), "holds")


def wholly_masked_performance(study: Study) -> Iterator[Claim]:
    reaches, misses = statements("b")
    for place in _both_trained(study):
        majority = study.majority(place.grid)
        where = f"{study.title(place)}{', question visible' if study.leaves_context(place.grid) else ''}"
        masked = over_seeds(v - majority for v in study.wholly_masked(place.grid, MASKED).values())
        plain = over_seeds(majority - v for v in study.wholly_masked(place.grid, PLAIN).values())
        yield Claim("b", reaches, where, masked, judge(masked, -MARGIN), "holds")
        yield Claim("b", misses, where, plain, judge_gain(plain), "holds on most tasks")


def twice_the_epochs(study: Study) -> Iterator[Claim]:
    [statement] = statements("f")
    if LONGER in study.places:
        for words, masking in (("whole", "0"), ("masked", "uniform")):
            scores = (study.test_scores(grid, MASKED, masking) for grid in (STORIES, LONGER))
            effect = paired(*scores)
            verdict, name = judge(effect, -MARGIN), study.places[LONGER].name
            yield Claim("f", statement.format(words), name, effect, verdict, "uses twice the epochs")


def only_masking(study: Study) -> Iterator[Claim]:
    [statement] = statements("m")
    for place in _both_trained(study, ONLY_MASKED):
        scores = (study.test_scores(place.grid, strategy, "0") for strategy in (MASKED, ONLY_MASKED))
        effect = paired(*scores)
        yield Claim("m", statement, study.title(place), effect, judge_gain(effect), "holds on some tasks")


def validation_strategy(study: Study) -> Iterator[Claim]:
    for other in ("masked", "unmasked"):
        statement = statements("n")[0].format(other)
        for place in study.places.values():
            both, theirs = (study.validated(place.grid, validation) for validation in ("both", other))
            if both.keys() & theirs.keys():
                effect: Effect = paired(both, theirs)
                verdict = judge_equivalence(effect)
                yield Claim("n", statement, study.title(place), effect, verdict, "holds")


QUESTIONS: dict[str, tuple[Callable[[Study], Iterator[Claim]], str]] = {
    "a": (unmasked_performance, "Masked fine-tuning does not lower unmasked performance"),
    "b": (wholly_masked_performance, "Wholly masked, only the masked model reaches the class majority"),
    "c": (
        method_claims.in_distribution,
        "The check rejects masked texts after plain fine-tuning, not after masked",
    ),
    "d": (method_claims.published_order, "Methods have the published order"),
    "e": (method_claims.recursion, "Explaining again at every step raises ACU"),
    "f": (twice_the_epochs, "Twice the epochs are not needed with the corrected schedule"),
    "g": (method_claims.recursive_roar, "Recursive ROAR gives lower areas than ours"),
    "h": (method_claims.plain_areas, "Areas differ on a model that was not fine-tuned with masks"),
    "i": (method_claims.number_of_masks, "The number of masks gives the label away"),
    "j": (method_claims.leave_one_out, "Leave-one-out is the most faithful"),
    "k": (method_claims.signed_variants, "Signed measures are above their absolute variants"),
    "l": (method_claims.most_are_faithful, "Most measures are faithful"),
    "m": (only_masking, "Fine-tuning with masks only loses performance"),
    "n": (validation_strategy, "Which validation texts choose the epoch does not matter"),
    "o": (method_claims.each_measure, "Texts erased by each measure are in distribution"),
    "p": (method_claims.beam_search, "Beam search is above leave-one-out"),
}
OF_TASKS = "i"
"""The claim about texts alone, without a model; the main study has its table."""
OF_SMOKE = "agmnp"
"""Claims that the smoke grid adds to: those that the study has little on."""


def gather_claims(study: Study, base: Study, smoke: Study) -> list[Claim]:
    """Return all claims of the study and of the base-size encoder, and some of the smoke grid, in order."""
    claims: list[Claim] = []
    for letter, (find, _) in QUESTIONS.items():
        claims += find(study)
        if letter not in OF_TASKS:
            claims += find(base)
        if letter in OF_SMOKE:
            claims += find(smoke)
    return claims
