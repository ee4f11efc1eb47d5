"""What is claimed, and the verdict on it for one task and model."""

from __future__ import annotations

from dataclasses import dataclass

from evidence import Effect

STATEMENTS = {
    "a": ("Masked fine-tuning does not lower unmasked performance (masked − plain, points)",),
    "b": (
        "Wholly masked, the masked model reaches the class majority (model − majority, points)",
        "Wholly masked, the plain model stays below the class majority (majority − model, points)",
    ),
    "c": (
        "After masked fine-tuning, masked texts are not rejected ({} test; % of texts rejected one by one)",
        "After plain fine-tuning, masked texts are rejected ({} test; % of texts rejected one by one)",
    ),
    "d": ("Methods have the published order (Spearman with RoBERTa-base)",),
    "e": ("Explaining again at every step raises ACU ({0} − {0} explained once, points)",),
    "f": ("Twice the epochs are not needed ({} texts: E − 2E epochs, points)",),
    "g": ("RACU of grad-l2 is above that of Recursive ROAR (ours − theirs, points)",),
    "h": ("ACU of {} differs on the plain model (plain − masked, points)",),
    "i": ("Token counts alone beat the class majority (counts − majority, points)",),
    "j": ("Leave-one-out is the most faithful {} measure (ACU − that of the closest rival, points)",),
    "k": ("The signed variant is above the absolute one ({0}-sign − {0}-abs, points of ACU)",),
    "l": ("Most measures are faithful (ACU of the fifth of eight, points)",),
    "m": ("Only masking loses unmasked performance (masked − only masking, points)",),
    "n": ("The validation strategy does not matter (both − {}, points)",),
    "o": ("Texts erased by each measure are in distribution (% rejected one by one, worst measure)",),
    "p": ("Beam search is above leave-one-out (beam − loo-sign, points of ACU)",),
}
"""What is claimed, by letter: the effect in brackets."""


UNPUBLISHED = "–"
"""What stands for a published value where the paper has none."""


@dataclass(frozen=True)
class Claim:
    """One claim on one task and model; without an effect it was not measured here."""

    letter: str
    statement: str
    where: str = ""
    effect: Effect | None = None
    verdict: str = "not measured here"
    published: str = UNPUBLISHED
    p: float | None = None


def statements(letter: str) -> tuple[str, ...]:
    """Return the statements of a claim."""
    return STATEMENTS[letter]
