"""Planted truths: texts whose label is decided by words that were inserted, at known places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import NamedTuple

from faithmeter.data.stories import ACTORS, PLACES

SHORTEST, LONGEST = 10, 18
"""Words of a sentence before anything is planted."""
FILLER = (
    "Mary John Sandra Daniel went to the bathroom bedroom garden hallway kitchen office moved is was where"
)
"""Words of generated sentences; the embedded model knows them and the markers `KNOWN`."""


class Markers(NamedTuple):
    """Words that are planted; none of them occurs in the sentences."""

    first: str
    second: str
    flip: str
    keep: str
    third: str
    fourth: str


KNOWN = Markers("milk", "apple", "before", "there", "football", "back")
ENGLISH = Markers("cat", "dog", "not", "so", "table", "window")


@dataclass(frozen=True)
class Planted:
    """Texts with labels 0 or 1, and the truth: which words decide each label."""

    texts: tuple[str, ...]
    labels: tuple[int, ...]
    truth: tuple[tuple[int, ...], ...]
    """Numbers of the deciding words of each text, counted over its words between spaces."""

    def part(self, start: int, stop: int) -> Planted:
        """Return some of the texts."""
        return Planted(self.texts[start:stop], self.labels[start:stop], self.truth[start:stop])


class Example(NamedTuple):
    """Words of one text, its label and the numbers of the words that decide it."""

    words: list[str]
    label: int
    truth: tuple[int, ...]


Plant = Callable[[list[str], Markers, Random, bool], Example]
"""Function of a sentence, the markers, a source of chance and whether the text is for training."""


def plant_word(words: list[str], markers: Markers, rng: Random, training: bool) -> Example:
    """Plant one word at a random place, which tells the label."""
    label, place = rng.randrange(2), rng.randrange(len(words) + 1)
    return Example([*words[:place], markers[label], *words[place:]], label, (place,))


def plant_pair(words: list[str], markers: Markers, rng: Random, training: bool) -> Example:
    """Plant two words that decide together: the label says whether both are first ones, or both second."""
    first, second = rng.randrange(2), rng.randrange(2)
    left, right = sorted(rng.sample(range(len(words) + 1), 2))
    pair = markers[first], (markers.third, markers.fourth)[second]
    planted = [*words[:left], pair[0], *words[left:right], pair[1], *words[right:]]
    return Example(planted, int(first == second), (left, right + 1))


def plant_first(words: list[str], markers: Markers, rng: Random, training: bool) -> Example:
    """Plant a first word that tells the label, and the same words elsewhere, which tell nothing."""
    label = rng.randrange(2)
    words = list(words)
    for _ in range(2):
        words.insert(rng.randrange(1, len(words) + 1), markers[rng.randrange(2)])
    return Example([markers[label], *words], label, (0,))


def plant_negation(words: list[str], markers: Markers, rng: Random, training: bool) -> Example:
    """Plant a word behind another one that flips its meaning, or behind one that does not."""
    word, flipped, place = rng.randrange(2), rng.randrange(2), rng.randrange(len(words) + 1)
    before = markers.flip if flipped else markers.keep
    planted = [*words[:place], before, markers[word], *words[place:]]
    return Example(planted, word ^ flipped, (place, place + 1))


def plant_distractor(words: list[str], markers: Markers, rng: Random, training: bool) -> Example:
    """Plant a word that tells the label, and one that agrees with it in nine of ten training texts only."""
    words, label, (place,) = plant_word(words, markers, rng, training)
    agrees = rng.random() < (0.9 if training else 0.5)
    other = rng.randrange(len(words) + 1)
    words.insert(other, (markers.third, markers.fourth)[label if agrees else 1 - label])
    return Example(words, label, (place + (other <= place),))


def plant_places(words: list[str], markers: Markers, rng: Random, training: bool) -> Example:
    """Say where four people went, in any order; the label is the place of the first of `ACTORS`.

    All places are drawn alike, so that the others tell nothing about it. In the stories of bAbI they do: who
    moves goes to another place than before.
    """
    places = {actor: rng.randrange(len(PLACES)) for actor in ACTORS}
    order = rng.sample(ACTORS, len(ACTORS))
    told = [word for actor in order for word in (actor, "went", "to", "the", PLACES[places[actor]])]
    return Example(told, places[ACTORS[0]], (5 * order.index(ACTORS[0]) + 4,))


def plant_nothing(words: list[str], markers: Markers, rng: Random, training: bool) -> Example:
    """Plant a word as `plant_word` does, and draw the label without looking: there is nothing to learn."""
    return Example(plant_word(words, markers, rng, training).words, rng.randrange(2), ())


PLANTS: dict[str, Plant] = {
    "word": plant_word,
    "pair": plant_pair,
    "first": plant_first,
    "negation": plant_negation,
    "distractor": plant_distractor,
    "places": plant_places,
    "shuffled": plant_nothing,
}
"""Planted truths by name."""


def plant(
    name: str, count: int, *, seed: int, sentences: Sequence[str] = (), training: bool = False
) -> Planted:
    """Return `count` texts with a planted truth, in given sentences or, without any, in generated words."""
    rng = Random(f"{name} {seed} {training}")
    markers = ENGLISH if sentences else KNOWN
    examples = []
    for _ in range(count):
        words = rng.choice(sentences).split() if sentences else _generate(rng)
        examples.append(PLANTS[name](words, markers, rng, training))
    texts, labels, truth = zip(*examples, strict=True)
    return Planted(tuple(map(" ".join, texts)), labels, truth)


def _generate(rng: Random) -> list[str]:
    return rng.choices(FILLER.split(), k=rng.randint(SHORTEST, LONGEST))


def read_sentences(
    folder: Path, file: str, words: tuple[int, int] = (SHORTEST, LONGEST)
) -> tuple[list[str], list[int]]:
    """Return the sentences of a file of SST-2 that have so many words and no marker, with labels."""
    rows = [line.rsplit("\t", 1) for line in (folder / file).read_text(encoding="utf-8").splitlines()[1:]]
    usable = [
        (text.strip(), int(label))
        for text, label in rows
        if words[0] <= len(text.split()) <= words[1] and not {*text.split()} & {*ENGLISH[:2]}
    ]
    texts, labels = zip(*usable, strict=True)
    return list(texts), list(labels)


def permuted(planted: Planted, *, seed: int) -> Planted:
    """Return the texts with their labels in random order."""
    labels = list(planted.labels)
    Random(seed).shuffle(labels)
    return replace(planted, labels=tuple(labels), truth=((),) * len(labels))
