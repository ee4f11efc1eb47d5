"""Classes of a model: validation of its head, lookup by name, and matching with the classes of a task."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ..data import Task
from ..errors import InputError, unknown

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

MULTI_LABEL = "multi_label_classification"
"""Name that transformers has for heads that give several labels at once."""
REGRESSION = "regression"
"""Name that transformers has for heads that predict a number."""
MAX_NAMED_CLASSES = 6
"""Maximum number of classes that a message lists."""


def require_classes(config: PreTrainedConfig, label: str | int | None = None) -> None:
    """Raise an InputError unless a head chooses a class, predicts one number, or `label` names its label."""
    if config.problem_type == MULTI_LABEL and config.num_labels > 1:
        if label is None:
            names = list_classes([*map(str, config.id2label.values())])
            raise InputError(
                f"the model gives several labels at once ({names}); choose the one to explain and measure "
                "(label= in fm.load, --class on the command line)"
            )
    elif label is not None:
        chooses = "predicts a number" if predicts_number(config) else "chooses one of its classes"
        raise InputError(
            f"label is {label!r}, and the model {chooses}; leave it out: it is for models that give several "
            "labels at once"
        )
    if config.num_labels != 1 and config.problem_type == REGRESSION:
        raise InputError(
            f"the model predicts {config.num_labels} numbers at once (problem_type regression); expected one "
            "number (num_labels 1), or classes"
        )
    counts = Counter(map(str, config.id2label.values()))
    for name, count in counts.items():
        if count > 1:
            raise InputError(
                f"the model's id2label has {count} classes named {name!r}, which no result could "
                "tell apart; give each a name of its own in its config.json"
            )
    numbers = sorted(config.id2label)
    if numbers != [*range(config.num_labels)]:
        raise InputError(
            f"the model's id2label names the classes {numbers}; expected 0 to {config.num_labels - 1}: "
            "correct its config.json"
        )


def predicts_number(config: PreTrainedConfig) -> bool:
    """Return whether a model's head predicts a number; transformers trains any head of one output so."""
    return bool(config.num_labels == 1)  # whatever problem_type says: many configs leave it out


def require_kind(task: Task, *, number: bool) -> None:
    """Raise an InputError if a model predicts a number and a task has classes, or the reverse."""
    if number != (task.kind == "regression"):
        kinds = ("predicts a number", "classes") if number else ("chooses a class", "numbers")
        raise InputError(
            f"the model {kinds[0]}, and the labels of {task.name} are {kinds[1]}; measure a model on the "
            "kind of task that it was trained on"
        )


def class_names(config: PreTrainedConfig) -> tuple[str, ...]:
    """Return the names of a head's outputs in index order."""
    return tuple(str(name) for _, name in sorted(config.id2label.items()))


def class_number(classes: Sequence[str], label: str | int) -> int:
    """Return the number of a class, given by name or number; raise an InputError if it is unknown."""
    if label in classes:
        return classes.index(str(label))
    if str(label).isdecimal() and int(label) < len(classes):
        return int(label)
    raise unknown("label", str(label), classes)


@dataclass(frozen=True)
class ClassMatch:
    """Mapping from the classes of a task to those of a model."""

    numbers: tuple[int, ...]
    """Class number of the model for each class of the task."""
    note: str = ""
    """Explanation of a match by number; empty if all classes were matched by name."""

    def to_model(self, labels: Tensor) -> Tensor:
        """Convert class numbers of the task to those of the model, Tensor [B]."""
        return torch.tensor(self.numbers)[labels]


def match_classes(model_labels: Sequence[str], task_labels: Sequence[str]) -> ClassMatch:
    """Match the classes of a task with those of a model by name, ignoring case.

    Classes are matched by number if the names of one of them are mere numbers, such as `LABEL_0`.

    Raises:
        InputError: The numbers of classes differ, or a name has no match.
    """
    lists = f"the model's classes are {list_classes(model_labels)}, the task's {list_classes(task_labels)}"
    if len(model_labels) != len(task_labels):
        counts = f"{len(model_labels)} and {len(task_labels)} classes"
        raise InputError(f"{lists}: {counts}; measure a model on the task it was trained on")
    names, task_names = [*map(_class_key, model_labels)], [*map(_class_key, task_labels)]
    # by name where there are names: two heads of one task often number its classes differently
    shared = {*names} & {*task_names}
    if len(shared) == len(names):
        return ClassMatch(tuple(map(names.index, task_names)))
    if not (_named_numbers(names) or _named_numbers(task_names)):
        examples = ",".join(f"{name}=…" for name in task_labels[:MAX_NAMED_CLASSES])
        raise InputError(
            f"{lists}; expected the same names: say which is which, --classes {examples} (in Python "
            "task.with_classes), or correct id2label in the model's config.json"
        )
    numbers = _named_numbers(names) or [*range(len(names))]
    places = tuple(map(numbers.index, _named_numbers(task_names) or range(len(names))))
    pairs = (f"{label} = {model_labels[place]}" for label, place in zip(task_labels, places, strict=True))
    return ClassMatch(places, f"classes of task and model were matched by number: {list_classes([*pairs])}")


def _class_key(name: str) -> str:
    """Return a class name in lower case, with a space for each run of spaces, hyphens and underscores."""
    return re.sub(r"[\s_-]+", " ", name).strip().casefold()


def _named_numbers(names: Sequence[str]) -> list[int]:
    """Return the numbers in names such as `label 1` or `1`; empty unless they number all classes."""
    numbers = []
    for name in names:
        match = re.fullmatch(r"(?:label )?([0-9]{1,9})", name)
        numbers.append(int(match[1]) if match else -1)
    return numbers if sorted(numbers) == [*range(len(names))] else []


def list_classes(names: Sequence[str]) -> str:
    """Return the first `MAX_NAMED_CLASSES` class names, separated by commas, and an ellipsis for others."""
    more = ", …" if len(names) > MAX_NAMED_CLASSES else ""
    return ", ".join(names[:MAX_NAMED_CLASSES]) + more
