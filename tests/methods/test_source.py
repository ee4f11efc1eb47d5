"""Digests of own methods: they show a change of all that the scores depend on, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import faithmeter as fm
from faithmeter.methods.registry import METHODS

HEAD = (
    "import dataclasses, enum, functools, re\nimport numpy as np, torch\n"
    "import faithmeter as fm\nfrom faithmeter.methods import adapters\n"
)
PLAIN = "@fm.method('mine')\ndef mine(clf, batch, labels):\n    "
CALLED = "def mine(clf, batch, labels, *, factor=1):\n    return factor\nfm.method('mine'{flags})({made})\n"
WRAPPED = (
    "def twice(function, factor):\n    @functools.wraps(function)\n"
    "    def inner(*values):\n        return {outer} * function(*values)\n    return inner\n"
    "@fm.method('mine')\n@functools.partial(twice, factor=3)\n"
    "def mine(clf, batch, labels):\n    return {body}\n"
)
OBJECT = (
    "class Base:\n    SHIFT = {shift}\n"
    "    def total(self, values):\n        return values + self.SHIFT\n"
    "class Mine(Base):\n    def __init__(self, **values):\n        vars(self).update(values)\n"
    "    def __call__(self, clf, batch, labels):\n        return self.total(labels){more}\n"
    "fm.method('mine')(Mine({state}))\n"
)
OBJECT_WITH = {"shift": "1", "more": "", "state": "a=1"}
SUBCLASS = (
    "from captum.attr import FeatureAblation\n"
    "class Middle(FeatureAblation):\n    def attribute(self, *values, **options):\n        return {body}\n"
    "class Mine(Middle):\n    pass\n"
    "own = adapters.captum(Mine, name='own'{flags})\n"
)
ROWS = {
    "body": (PLAIN + "return 1", PLAIN + "return 2"),
    "constant": ("K = 1\n" + PLAIN + "return K", "K = 2\n" + PLAIN + "return K"),
    "constant below": (PLAIN + "return K\nK = 1", PLAIN + "return K\nK = 2"),
    "table": ("K = {'a': [1]}\n" + PLAIN + "return K", "K = {'a': [2]}\n" + PLAIN + "return K"),
    "pattern": (
        "K = re.compile('a+')\n" + PLAIN + "return K",
        "K = re.compile('a+', re.I)\n" + PLAIN + "return K",
    ),
    "array": (
        "K = np.arange(9999)\n" + PLAIN + "return K",
        "K = np.arange(9999) // 2\n" + PLAIN + "return K",
    ),
    "tensor": (
        "K = torch.ones(3, dtype=torch.bfloat16)\n" + PLAIN + "return K",
        "K = torch.zeros(3, dtype=torch.bfloat16)\n" + PLAIN + "return K",
    ),
    "weights": (
        "K = torch.nn.Linear(2, 2)\nK.weight.data[:] = K.bias.data[:] = 1\n" + PLAIN + "return K(1)",
        "K = torch.nn.Linear(2, 2)\nK.weight.data[:] = K.bias.data[:] = 2\n" + PLAIN + "return K(1)",
    ),
    "helper": (
        PLAIN + "return first()\ndef first():\n    return second()\ndef second():\n    return 1",
        PLAIN + "return first()\ndef first():\n    return second()\ndef second():\n    return 2",
    ),
    "helper that is cached": (
        "@functools.cache\ndef first():\n    return 1\n" + PLAIN + "return first()",
        "@functools.cache\ndef first():\n    return 2\n" + PLAIN + "return first()",
    ),
    "helper in an inner function": (
        "K = 1\n" + PLAIN + "return [(lambda: K)() for _ in labels]",
        "K = 2\n" + PLAIN + "return [(lambda: K)() for _ in labels]",
    ),
    "module": (PLAIN + "return helpers.one()", PLAIN + "return helpers.two()"),
    "lambda on a line": (
        "one, two = lambda *_: 1, lambda *_: 2\nfm.method('mine')(one)",
        "one, two = lambda *_: 1, lambda *_: 2\nfm.method('mine')(two)",
    ),
    "default": (
        "K = 1\ndef mine(clf, batch, labels, *, k=K): return k\nfm.method('mine')(mine)",
        "K = 2\ndef mine(clf, batch, labels, *, k=K): return k\nfm.method('mine')(mine)",
    ),
    "partial argument": (
        CALLED.format(flags="", made="functools.partial(mine, factor=2)"),
        CALLED.format(flags="", made="functools.partial(mine, factor=3)"),
    ),
    "recursive": (
        CALLED.format(flags="", made="mine"),
        CALLED.format(flags=", recursive=False", made="mine"),
    ),
    "signed": (CALLED.format(flags="", made="mine"), CALLED.format(flags=", signed=False", made="mine")),
    "directed": (CALLED.format(flags="", made="mine"), CALLED.format(flags=", directed=False", made="mine")),
    "version": (CALLED.format(flags="", made="mine"), CALLED.format(flags=", version='2'", made="mine")),
    "built-in function": (
        "from faithmeter.methods.occlusion import leave_one_out as loo\nfm.method('mine')(loo)",
        "from faithmeter.methods.occlusion import leave_one_out as loo\nfm.method('mine', signed=False)(loo)",
    ),
    "wrapper": (WRAPPED.format(outer="2", body="1"), WRAPPED.format(outer="3", body="1")),
    "wrapper's closure": (
        WRAPPED.format(outer="factor", body="1"),
        WRAPPED.format(outer="factor", body="1").replace("factor=3", "factor=4"),
    ),
    "wrapped": (WRAPPED.format(outer="2", body="1"), WRAPPED.format(outer="2", body="2")),
    "wrapped by a library": (
        PLAIN.replace("def", "@torch.no_grad()\ndef") + "return K\nK = 1",
        PLAIN.replace("def", "@torch.no_grad()\ndef") + "return K\nK = 2",
    ),
    "state": (OBJECT.format(**OBJECT_WITH), OBJECT.format(**OBJECT_WITH | {"state": "a=2"})),
    "state within": (
        OBJECT.format(**OBJECT_WITH | {"state": "a={'b': (1, np.ones(2))}"}),
        OBJECT.format(**OBJECT_WITH | {"state": "a={'b': (1, np.zeros(2))}"}),
    ),
    "class": (OBJECT.format(**OBJECT_WITH), OBJECT.format(**OBJECT_WITH | {"more": " * 2"})),
    "base class": (OBJECT.format(**OBJECT_WITH), OBJECT.format(**OBJECT_WITH | {"shift": "2"})),
    "method of an object": (
        OBJECT.format(**OBJECT_WITH).replace("a=1))", "a=1).__call__)"),
        OBJECT.format(**OBJECT_WITH).replace("a=1))", "a=2).__call__)"),
    ),
    "class of a table": (
        "class Table(dict):\n    SHIFT = 1\nK = Table(a=1)\n" + PLAIN + "return K",
        "class Table(dict):\n    SHIFT = 2\nK = Table(a=1)\n" + PLAIN + "return K",
    ),
    "member of an enumeration": (
        "class Way(enum.Enum):\n    A = 1\n    B = 2\nK = Way.A\n" + PLAIN + "return K",
        "class Way(enum.Enum):\n    A = 1\n    B = 2\nK = Way.B\n" + PLAIN + "return K",
    ),
    "data class": (
        "@dataclasses.dataclass\nclass D:\n    a: int = 1\nK = D()\n" + PLAIN + "return K",
        "@dataclasses.dataclass\nclass D:\n    a: int = 1\nK = D(2)\n" + PLAIN + "return K",
    ),
    "explainer's base class": (SUBCLASS.format(body="1", flags=""), SUBCLASS.format(body="2", flags="")),
    "explainer's option": (SUBCLASS.format(body="1", flags=""), SUBCLASS.format(body="1", flags=", n=2")),
    "explainer's flag": (
        SUBCLASS.format(body="1", flags=""),
        SUBCLASS.format(body="1", flags=", recursive=False"),
    ),
    "explainer's object": (
        "from captum.attr import FeatureAblation as F\nown = adapters.captum(F(lambda ids: 1))",
        "from captum.attr import FeatureAblation as F\nown = adapters.captum(F(lambda ids: 2))",
    ),
    "texts": (
        "def f(texts): return K\nK = 1\nown = adapters.texts(f, name='own')",
        "def f(texts): return K\nK = 2\nown = adapters.texts(f, name='own')",
    ),
}
HELPERS = "def one():\n    return 1\ndef two():\n    return 2\n"


def code_of(source: str, file: Path) -> str:
    """Return the digest of the method that a file defines, by the name `mine` or as `own`."""
    file.write_text(HEAD + "import helpers\n" * ("helpers" in source) + source)
    module = sys.modules["mine"] = ModuleType("mine")
    module.__file__, space = str(file), vars(module)
    exec(compile(file.read_text(), str(file), "exec"), space)
    return (space["own"] if "own" in space else METHODS["mine"]).code


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("faithmeter.methods.registry.METHODS", METHODS.copy())
    monkeypatch.setattr(sys.modules[__name__], "METHODS", sys.modules["faithmeter.methods.registry"].METHODS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "helpers", raising=False)
    monkeypatch.setitem(sys.modules, "mine", None)
    (tmp_path / "helpers.py").write_text(HELPERS)
    return tmp_path / "mine.py"


@pytest.mark.parametrize(("before", "after"), ROWS.values(), ids=ROWS)
def test_a_change_of_what_the_scores_depend_on_is_another_method(file: Path, before: str, after: str) -> None:
    first = code_of(before, file)
    assert code_of("\n\n" + before, file) == first, "it may be moved in its file"
    METHODS.pop("mine", None)
    assert code_of(after, file) != first


def test_the_helper_of_a_module_is_followed(file: Path) -> None:
    codes = []
    for place in ("helpers.one()", "helpers.one()\n", "two()"):
        for body in (HELPERS, HELPERS.replace("2", "3"), HELPERS.replace("1", "0")):
            (file.parent / "helpers.py").write_text(body)
            sys.modules.pop("helpers", None)
            inside = "from helpers import two\n    " * (place == "two()")
            codes.append(code_of(f"{PLAIN}{inside}return {place}", file))
    assert codes[0] == codes[1] != codes[2], "only what the body may call"
    assert len({*codes[6:]}) == 3, "a module that the body imports is one whole"


@pytest.mark.parametrize(
    ("source", "what"),
    [
        (
            "K = np.random.default_rng(0)\n" + PLAIN + "return K",
            "'K', a value of type numpy.random._generator",
        ),
        ("K = open(__file__)\n" + PLAIN + "return K", "'K', a value of type _io.TextIOWrapper"),
        (OBJECT.format(**OBJECT_WITH | {"state": "lock=__import__('threading').Lock()"}), "'lock', a value"),
    ],
)
def test_what_cannot_be_compared_needs_a_version(file: Path, source: str, what: str) -> None:
    source = source.replace("__file__", repr(str(file.parent / "helpers.py")))
    with pytest.raises(fm.InputError, match=f"method 'mine' depends on {what}.*give version=\"1\"") as caught:
        code_of(source, file)
    assert "\n" not in str(caught.value)
    codes = [code_of(source.replace("('mine'", f"('mine', version='{n}'"), file) for n in (1, 1, 2)]
    assert codes[0] == codes[1] != codes[2]


def test_what_a_function_fills_itself_is_no_constant(file: Path) -> None:
    body = "MODEL = None\n" + PLAIN + "global MODEL\n    MODEL = MODEL or open('x')\n    return MODEL"
    assert code_of(body, file) == code_of(body.replace("= None", "= 1"), file)


def test_equal_methods_have_one_digest_in_every_process(tmp_path: Path) -> None:
    """The hash seed orders sets of words, and memory is laid out otherwise."""
    sources = [after for _, after in ROWS.values()]
    sources += ["K = {'a', 'b', ('c',), frozenset('defg')}\n" + PLAIN + "return {*K} - {'x', 'y', 'z'}"]
    sources += [PLAIN + "return (lambda: labels in {'x', 'y', 'z', 'w'})()"]
    sources += ["f = lambda a, b, labels: labels in {'x', 'y', 'z', 'w'}\nfm.method('mine')(f)"]
    (tmp_path / "helpers.py").write_text(HELPERS)
    script = (
        "import sys; from pathlib import Path; from faithmeter.methods.registry import METHODS\n"
        "import json\nfrom test_source import code_of\n"
        "for source in json.loads(sys.stdin.read()):\n"
        "    METHODS.pop('mine', None); print(code_of(source, Path(sys.argv[1])))"
    )
    path = os.pathsep.join([*sys.path, str(Path(__file__).parent), str(tmp_path)])
    outputs = [
        subprocess.run(
            [sys.executable, "-c", script, str(tmp_path / "mine.py")],
            input=json.dumps(sources),
            env={**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for seed in (1, 2)
    ]
    assert outputs[0] == outputs[1]
    assert len(outputs[0]) == len(sources)
