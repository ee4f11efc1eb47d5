"""The official bAbI format: read, written, refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faithmeter.data.stories import Question, Story
from faithmeter.data.stories import read as read_stories
from faithmeter.errors import InputError
from fixtures_tasks import SHARED, write_stories

OFFICIAL = sorted((SHARED / "data/bAbI/en-10k").glob("qa*.txt"))

TEXT = """1 Mary moved to the bathroom.
2 John went to the hallway.
3 Where is Mary? \tbathroom\t1
4 Daniel went back to the hallway.
5 Where is Daniel? \thallway\t4
1 Sandra travelled to the office.
2 Where is Sandra? \toffice\t1
"""
MARY, JOHN, DANIEL = (
    "Mary moved to the bathroom.",
    "John went to the hallway.",
    "Daniel went back to the hallway.",
)
STORIES = [
    (
        Question((MARY, JOHN), "Where is Mary?", "bathroom", (0,)),
        Question((MARY, JOHN, DANIEL), "Where is Daniel?", "hallway", (2,)),
    ),
    (Question(("Sandra travelled to the office.",), "Where is Sandra?", "office", (0,)),),
]


@st.composite
def a_story(draw: st.DrawFn) -> Story:
    words = st.text("Ab1.é日", min_size=1)
    questions: list[Question] = []
    told: tuple[str, ...] = ()
    for _ in range(draw(st.integers(1, 4))):
        told += tuple(draw(st.lists(words, min_size=0 if told else 1, max_size=3)))
        facts = draw(st.lists(st.integers(0, len(told) - 1), max_size=3))
        questions.append(Question(told, draw(words) + "?", draw(words), tuple(facts)))
    return tuple(questions)


def given_file(folder: Path, content: bytes) -> Path:
    path = folder / "qa.txt"
    path.write_bytes(content)
    return path


def test_a_hand_written_file_is_read_and_written_back(tmp_path: Path) -> None:
    path = given_file(tmp_path, TEXT.encode())
    assert read_stories(path) == STORIES
    write_stories(STORIES, tmp_path / "copy.txt")
    assert (tmp_path / "copy.txt").read_bytes() == TEXT.encode()
    assert STORIES[0][1].paragraph == f"{MARY} {JOHN} {DANIEL}"


def test_byte_order_mark_and_carriage_returns_change_nothing(tmp_path: Path) -> None:
    content = b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode()
    assert read_stories(given_file(tmp_path, content)) == STORIES


def test_the_last_line_may_lack_its_end(tmp_path: Path) -> None:
    assert read_stories(given_file(tmp_path, TEXT.rstrip("\n").encode())) == STORIES


def test_an_empty_file_is_a_user_mistake(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"qa\.txt is empty"):
        read_stories(given_file(tmp_path, b""))


@given(stories=st.lists(a_story(), min_size=1, max_size=4))
def test_what_is_written_is_read_back(tmp_path_factory: pytest.TempPathFactory, stories: list[Story]) -> None:
    path = tmp_path_factory.mktemp("babi") / "qa.txt"
    write_stories(stories, path)
    assert read_stories(path) == stories


@pytest.mark.skipif(not OFFICIAL, reason="needs the official bAbI files; set FAITHMETER_SHARED")
def test_official_files_are_reproduced_byte_for_byte(tmp_path: Path) -> None:
    for path in OFFICIAL:
        write_stories(read_stories(path), tmp_path / path.name)
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        (b"Mary moved.\n", 1, "line number"),
        (b"1 Mary moved.\n\n", 2, "line number"),
        (b"2 Mary moved.\n", 1, "where 1 or 1"),
        (b"1 Mary moved.\n3 John moved.\n", 2, "where 1 or 2"),
        (b"1 Mary moved.\n2 \xff\n", 2, "UTF-8"),
        (b"1 Mary moved.\n2 Where is Mary? bathroom 1\n", 2, "without tabs"),
        (b"1 Mary moved.\n2 Where is Mary?\tbathroom\n", 2, "three fields"),
        (b"1 Mary moved.\n2 Where is Mary?\t\t1\n", 2, "three fields"),
        (b"1 Mary moved.\n2 Where is Mary?\tbathroom\t7\n", 2, "'7' is not a statement"),
        (b"1 Mary moved.\n2 Where is Mary?\tbathroom\tx\n", 2, "'x' is not a statement"),
        (b"1 Mary moved.\n2 Where?\ta\t1\n3 Where?\ta\t2\n", 3, "'2' is not a statement"),
        (b"1 Mary moved.\n1 John moved.\n", 2, "ends without a question"),
        (b"1 Mary moved.\n", 2, "ends without a question"),
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, content: bytes, line: int, reason: str) -> None:
    path = given_file(tmp_path, content)
    with pytest.raises(InputError, match=f"qa.txt, line {line}: .*{reason}"):
        read_stories(path)


def test_a_missing_file_is_a_user_mistake(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*absent\.txt"):
        read_stories(tmp_path / "absent.txt")
