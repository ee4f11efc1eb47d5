"""Reader of bAbI stories in the official text format."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from ..errors import InputError
from .readers import lines


@dataclass(frozen=True)
class Question:
    """Question about a story, with the statements before it, its answer and its supporting facts."""

    story: tuple[str, ...]
    question: str
    answer: str
    supporting: tuple[int, ...]  # indices into `story`, in the order of the file

    @property
    def paragraph(self) -> str:
        return " ".join(self.story)


Story = tuple[Question, ...]
"""Questions about one story; the statements of each begin with those of the previous question."""


def read(path: str | Path) -> list[Story]:
    """Return the stories in a bAbI file.

    Raises:
        InputError: The file is not readable, or a line does not follow the official format.
    """
    stories: list[list[Question]] = []
    statements: dict[int, str] = {}  # line number within the story → statement
    last = covered = 0  # line number within the story; number of statements before its latest question
    texts = (line.rstrip("\r\n") for _, line in lines(Path(path)))
    # a story ends where the next begins, so the extra line ends the last one
    for position, line in enumerate(chain(texts, ["1 "]), start=1):
        try:
            number, text = _split(line)
            if number == 1:
                if stories and covered < len(statements):
                    raise ValueError("the story before this line ends without a question")
                stories.append([])
                statements, last, covered = {}, 0, 0
            if number != last + 1:
                raise ValueError(f"line number {number} where 1 or {last + 1} was expected")
            last = number
            if "\t" in text:
                stories[-1].append(_question(text, statements))
                covered = len(statements)
            elif "?" in text:
                raise ValueError("a question without tabs before its answer and its supporting facts")
            else:
                statements[number] = text
        except ValueError as error:
            raise InputError(
                f"{path}, line {position}: {error}; expected the official bAbI format"
            ) from error
    return [tuple(story) for story in stories[:-1]]


def _split(line: str) -> tuple[int, str]:
    """Split a line into its number within the story and its text; raise ValueError if it has no number."""
    number, blank, text = line.partition(" ")
    if not (blank and number.isascii() and number.isdigit()):
        raise ValueError(f"{number!r} where a line number and a blank were expected")
    return int(number), text


def _question(text: str, statements: dict[int, str]) -> Question:
    fields = [field.strip() for field in text.split("\t")]
    if len(fields) != 3 or not all(fields[:2]):
        raise ValueError("a question needs three fields: question, answer, supporting facts")
    order = [*map(str, statements)]  # files name lines, which are counted with the questions between them
    facts: list[int] = []
    for name in fields[2].split():
        if name not in order:
            raise ValueError(f"supporting fact {name!r} is not a statement before the question")
        facts.append(order.index(name))
    return Question(tuple(statements.values()), fields[0], fields[1], tuple(facts))
