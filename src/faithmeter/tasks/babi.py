"""bAbI stories from and to the official text format, without loss."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from ..errors import InputError
from .readers import lines


@dataclass(frozen=True)
class Question:
    """One example: the statements so far, a question, and the statements that give its answer."""

    story: tuple[str, ...]
    question: str
    answer: str
    supporting: tuple[int, ...]  # indices into `story`, in the order of the file

    @property
    def paragraph(self) -> str:
        return " ".join(self.story)


Story = tuple[Question, ...]
"""Questions of one story; each adds statements to those of the one before."""


def read(path: str | Path) -> list[Story]:
    """Read the stories of a bAbI file; a question's statements do not include earlier questions."""
    stories: list[list[Question]] = []
    statements: dict[int, str] = {}  # line number within the story → statement
    last = covered = 0  # line number within the story; statements that the newest question covers
    texts = (line.rstrip("\r\n") for _, line in lines(Path(path)))
    for position, line in enumerate(chain(texts, ["1 "]), start=1):  # the extra line ends the last story
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


def write(stories: Iterable[Story], path: str | Path) -> None:
    """Write stories in the official layout; `read` gives the same stories back."""
    text = []
    for story in stories:
        numbers: list[int] = []  # of the statements so far
        number = 0
        for question in story:
            for statement in question.story[len(numbers) :]:
                number += 1
                numbers.append(number)
                text.append(f"{number} {statement}\n")
            number += 1
            supporting = " ".join(str(numbers[index]) for index in question.supporting)
            text.append(f"{number} {question.question} \t{question.answer}\t{supporting}\n")
    Path(path).write_text("".join(text), encoding="utf-8", newline="\n")


def _split(line: str) -> tuple[int, str]:
    """Return the line number within the story and the text behind it."""
    number, blank, text = line.partition(" ")
    if not (blank and number.isascii() and number.isdigit()):
        raise ValueError(f"{number!r} where a line number and a blank were expected")
    return int(number), text


def _question(text: str, statements: dict[int, str]) -> Question:
    fields = [field.strip() for field in text.split("\t")]
    if len(fields) != 3 or not all(fields[:2]):
        raise ValueError("a question needs three fields: question, answer, supporting facts")
    ids = fields[2].split()
    order = {str(number): index for index, number in enumerate(statements)}
    if missing := [name for name in ids if name not in order]:
        raise ValueError(f"supporting fact {missing[0]!r} is not a statement before the question")
    return Question(tuple(statements.values()), fields[0], fields[1], tuple(order[name] for name in ids))
