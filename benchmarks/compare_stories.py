"""Generated bAbI stories beside the official ones, as Markdown tables with chi-square p-values.

python benchmarks/compare_stories.py data/bAbI/en-10k
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path

from scipy.stats import chi2_contingency

from faithmeter.data import stories
from faithmeter.data.stories import Story, generate

FILES = {
    1: ("qa1_single-supporting-fact_train.txt", "qa1_single-supporting-fact_test.txt"),
    3: ("qa3_three-supporting-facts_test.txt",),
}
VERB = re.compile(r"\w+ (.+?) (?:to )?the ")
Counts = Counter[str]


def binned(values: Iterable[int], *edges: int) -> Counts:
    """Return how many values lie up to each edge and above the one before."""
    names = [*(f"≤ {edge:3}" for edge in edges), f"≥ {edges[-1] + 1:3}"]  # in this width they sort by number
    return Counter(names[sum(value > edge for edge in edges)] for value in values)


def statements(stories: list[Story]) -> Iterable[str]:
    return (statement for story in stories for statement in story[-1].story)


def gaps(stories: list[Story]) -> Iterable[int]:
    """Yield the number of statements between one question and the next of a story."""
    return (len(b.story) - len(a.story) for story in stories for a, b in pairwise(story))


ASPECTS: dict[int, dict[str, Callable[[list[Story]], Counts]]] = {
    1: {
        "statements before a question": lambda stories: Counter(
            f"{len(q.story):2}" for s in stories for q in s
        ),
        "answer": lambda stories: Counter(q.answer for s in stories for q in s),
        "supporting fact, statements back": lambda stories: Counter(
            str(len(q.story) - 1 - q.supporting[0]) for s in stories for q in s
        ),
        "verb": lambda stories: Counter(VERB.match(text)[1] for text in statements(stories)),  # type: ignore[index]
        "actor": lambda stories: Counter(text.split()[0] for text in statements(stories)),
        "asked about the same actor as before": lambda stories: Counter(
            str(a.question == b.question) for s in stories for a, b in pairwise(s)
        ),
    },
    3: {
        "statements before the first question": lambda stories: binned(
            (len(s[0].story) for s in stories), 12, 24, 36, 48
        ),
        "statements in a story": lambda stories: binned((len(s[-1].story) for s in stories), 40, 60, 80, 100),
        "statements between questions": lambda stories: binned(gaps(stories), 2, 6, 12, 20, 30),
        "first question's answer": lambda stories: Counter(s[0].answer for s in stories),
        "last get or drop, statements back": lambda stories: Counter(
            str(len(s[0].story) - 1 - s[0].supporting[0]) for s in stories
        ),
        "asked move follows the get": lambda stories: Counter(
            str(s[0].supporting[1] > s[0].supporting[0]) for s in stories
        ),
        "verb": lambda stories: Counter(VERB.match(text)[1] for text in statements(stories)),  # type: ignore[index]
        "`there` at the end": lambda stories: Counter(
            str(text.endswith(" there.")) for text in statements(stories) if " to the " not in text
        ),
        "actor does the next thing too": lambda stories: Counter(
            str(a.split()[0] == b.split()[0]) for s in stories for a, b in pairwise(s[-1].story)
        ),
    },
}


def table(task: int, official: list[Story], generated: list[Story]) -> str:
    lines = ["| aspect | official, % | generated, % | p |", "|---|---|---|---|"]
    for name, count in ASPECTS[task].items():
        left, right = count(official), count(generated)
        values = sorted(left | right)
        shares = [
            ", ".join(f"{value.strip()}: {100 * counts[value] / counts.total():.1f}" for value in values)
            for counts in (left, right)
        ]
        p = chi2_contingency([[counts[value] for value in values] for counts in (left, right)]).pvalue
        lines.append(f"| {name} | {shares[0]} | {shares[1]} | {p:.2f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="the folder en-10k of the official files")
    parser.add_argument("--questions", type=int, default=20_000, help="how many to generate")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for task, names in FILES.items():
        official = [story for name in names for story in stories.read(options.folder / name)]
        generated = generate(task, options.questions, seed=options.seed)
        print(f"Task {task}: {' + '.join(names)} against {options.questions} generated questions\n")
        print(table(task, official, generated), end="\n\n")


if __name__ == "__main__":
    main()
