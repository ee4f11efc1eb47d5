"""Stories of the bAbI tasks 1, 2 and 3 (one, two and three supporting facts), official and generated.

Vocabulary and rules of the generator follow the official files, as benchmarks/embedded.md shows. Every two
statements are followed by a question, if the last five statements allow one, until there are five questions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from pathlib import Path
from random import Random

from ..errors import InputError
from .table_files import Record, texts
from .task import Columns

STORY_COLUMNS = Columns("paragraph", "answer", "question", "facts")
ACTORS = ("Mary", "John", "Sandra", "Daniel")
PLACES = ("bathroom", "bedroom", "garden", "hallway", "kitchen", "office")
OBJECTS = ("milk", "apple", "football")
VERBS = {
    "move": ("went", "journeyed", "travelled", "went back", "moved"),
    "get": ("got", "grabbed", "took", "picked up"),
    "drop": ("discarded", "dropped", "left", "put down"),
}
TASKS = (1, 2, 3)
QUESTIONS_PER_STORY = 5
RECENT = 5
"""Number of most recent statements that a question may be about."""


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
    ended = (line.rstrip("\r\n") for line in texts(Path(path)))
    # a story ends where the next begins, so the extra line ends the last one
    for position, line in enumerate(chain(ended, ["1 "]), start=1):
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
    return [*map(tuple, stories[:-1])]


def _split(line: str) -> tuple[int, str]:
    """Split a line into its number within the story and its text; raise ValueError if it has no number."""
    number, blank, text = line.partition(" ")
    if not (blank and number.isascii() and number.isdigit()):
        raise ValueError(f"{number!r} where a line number and a blank were expected")
    return int(number), text


def _question(text: str, statements: dict[int, str]) -> Question:
    fields = [*map(str.strip, text.split("\t"))]
    if len(fields) != 3 or not all(fields[:2]):
        raise ValueError("a question needs three fields: question, answer, supporting facts")
    order = [*map(str, statements)]  # files name lines, which are counted with the questions between them
    facts: list[int] = []
    for name in fields[2].split():
        if name not in order:
            raise ValueError(f"supporting fact {name!r} is not a statement before the question")
        facts.append(order.index(name))
    return Question(tuple(statements.values()), fields[0], fields[1], tuple(facts))


def as_records(stories: Iterable[Story], source: Path | str) -> Iterator[Record]:
    """Yield a record for each question, numbered `0-<question number>` as in the released code.

    The column `facts` holds the places of the supporting facts in the paragraph.
    """
    for number, question in enumerate(chain.from_iterable(stories)):
        starts = [0, *accumulate(len(statement) + 1 for statement in question.story)]  # 1: the blank
        facts = tuple((starts[fact], starts[fact + 1] - 1) for fact in question.supporting)
        fields = (question.paragraph, question.answer, question.question, facts)
        values = dict(zip(STORY_COLUMNS.names, fields, strict=True))
        yield Record(f"0-{number}", f"{source}, question {number + 1}", values)


def generate(task: int, questions: int, *, seed: int) -> list[Story]:
    """Return stories with `questions` questions in total: five each, and fewer in the last if necessary.

    Raises:
        InputError: There is no generator for the task, or `questions` is negative.
    """
    if task not in TASKS:
        raise InputError(f"no generator for bAbI task {task}; expected 1, 2 or 3")
    if questions < 0:
        raise InputError(f"{questions} questions asked for; expected 0 or more")
    rng = Random(seed)
    stories: list[Story] = []
    for start in range(0, questions, QUESTIONS_PER_STORY):
        stories.append(_story(task, min(QUESTIONS_PER_STORY, questions - start), rng))
    return stories


def _story(task: int, size: int, rng: Random) -> Story:
    world = _World(rng)
    questions: list[Question] = []
    while len(questions) < size:
        for _ in range(2):
            world.act(("move",) if task == 1 else tuple(VERBS))
        question = world.ask_actor() if task == 1 else world.ask_object(task)
        if question:
            questions.append(question)
    return tuple(questions)


class _World:
    """State of a story: the places of actors and objects, and the statements so far.

    Initial places are random and are not mentioned in the story.
    """

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.place = {actor: rng.choice(PLACES) for actor in ACTORS}
        self.lying = {item: rng.choice(PLACES) for item in OBJECTS}
        self.holder: dict[str, str] = {}
        self.statements: list[str] = []
        self.actors: list[str] = []  # the actor of each statement
        self.moved: dict[str, tuple[int, str]] = {}  # actor → statement and place of the last move
        self.handled: dict[str, int] = {}  # object → statement that last got or dropped it
        self.carried: dict[str, list[tuple[int, str]]] = {}  # object → its moves since it was picked up

    def act(self, kinds: Sequence[str]) -> None:
        """Add a statement about a random action; impossible actions are drawn again."""
        while True:
            actor, kind = self.rng.choice(ACTORS), self.rng.choice(kinds)
            here = self.place[actor]
            if kind == "move":
                place = self.rng.choice(PLACES)
                if place != here:
                    return self.move(actor, place)
            elif kind == "get":
                lying = _items_at(self.lying, here)
                if lying:
                    return self.get(actor, self.rng.choice(lying))
            else:
                held = _items_at(self.holder, actor)
                if held:
                    return self.drop(actor, self.rng.choice(held))

    def move(self, actor: str, place: str) -> None:
        self.place[actor] = place
        # what is carried moves along, and each place it passes may be asked for
        self.moved[actor] = move = (len(self.statements), place)
        for item, holder in self.holder.items():
            if holder == actor:
                self.carried[item].append(move)
        self.tell(actor, "move", f"to the {place}")

    def get(self, actor: str, item: str) -> None:
        del self.lying[item]
        self.holder[item], self.handled[item], self.carried[item] = actor, len(self.statements), []
        self.tell(actor, "get", f"the {item}{self.there()}")

    def drop(self, actor: str, item: str) -> None:
        del self.holder[item]
        self.lying[item], self.handled[item] = self.place[actor], len(self.statements)
        self.tell(actor, "drop", f"the {item}{self.there()}")

    def there(self) -> str:
        return " there" if self.rng.random() < 0.2 else ""

    def tell(self, actor: str, kind: str, rest: str) -> None:
        self.actors.append(actor)
        self.statements.append(f"{actor} {self.rng.choice(VERBS[kind])} {rest}.")

    def ask_actor(self) -> Question:
        """Return a question about the place of a recently mentioned actor."""
        actor = self.rng.choice(self.actors[-RECENT:])
        fact, place = self.moved[actor]
        return Question(tuple(self.statements), f"Where is {actor}?", place, (fact,))

    def ask_object(self, facts: int) -> Question | None:
        """Return a question about the place of a recently handled object.

        Return None if no such object has moved often enough for `facts` supporting facts.
        """
        oldest = len(self.statements) - RECENT
        items = []
        for item in OBJECTS:
            recent = item in self.handled and self.handled[item] >= oldest
            if recent and len(self.carried[item]) >= facts - 1:
                items.append(item)
        if not items:
            return None
        item = self.rng.choice(items)
        moves = self.carried[item]
        # two facts: who has or dropped it, and that person's last move; three: also the move before
        if facts == 2:
            steps = moves[-1:]
            question = f"Where is the {item}?"
        else:
            place = self.rng.choice(moves[1:])[1]
            # if the object was there several times, the last time counts
            index = max(index for index, move in enumerate(moves) if move[1] == place)
            steps = [moves[index], moves[index - 1]]
            question = f"Where was the {item} before the {place}?"
        supporting = (self.handled[item], *(statement for statement, _ in steps))
        return Question(tuple(self.statements), question, steps[-1][1], supporting)


def _items_at(places: dict[str, str], place: str) -> list[str]:
    # in the order of `OBJECTS`, on which the drawn story depends
    return [item for item in OBJECTS if places.get(item) == place]
