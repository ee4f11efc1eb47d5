"""A tiny model behind the live page, in this process or by a server in a thread; a fuzzer for its API."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from hypothesis import HealthCheck, given, settings

import faithmeter as fm
from faithmeter.methods import METHODS
from faithmeter.serve.admission import ServedModel
from faithmeter.serve.app import create_app
from faithmeter.serve.schemas import Example
from faithmeter.serve.server import create_server, listen
from toy import WORDS, tiny

TEXT, PAIR = "the film was not good but very fun", "who wrote it"
OPERATIONS = (
    ("/api/model", "GET"),
    ("/api/probe", "POST"),
    ("/api/explain", "POST"),
    ("/api/measure", "POST"),
)


def served() -> ServedModel:
    """With in-distribution tests of its own, and an example."""
    clf = tiny(dtype=torch.float32)
    texts = [" ".join(WORDS[i : i + 5]) for i in range(15)]
    features = clf.features(clf.encode(texts * 2)).detach().numpy()
    tests = {name: fm.MaSF(calibration=name).fit(features) for name in ("published", "crossfit")}
    return ServedModel(clf, "tiny", tests=tests, examples=[Example(text=TEXT, pair=PAIR, label=None)])


@contextmanager
def running(model: ServedModel, **options: Any) -> Iterator[str]:
    """The address of a server in a thread of this process."""
    app = create_app(model, **options)
    with listen("127.0.0.1", 0) as listening:
        server = create_server(app)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        yield f"http://localhost:{listening.getsockname()[1]}"
        server.should_exit = True
        app.state.admission.close()
        thread.join(timeout=10)


def fuzz(app: Any, path: str, verb: str, mode: str, *, examples: int) -> None:
    """Requests that fit the description, or do not (`negative`): none may end in 500 or undescribed."""
    import schemathesis
    from schemathesis.specs.openapi.checks import positive_data_acceptance

    document = copy.deepcopy(app.openapi())
    for name in ("ExplainRequest", "MeasureRequest"):  # known names, or nearly all requests are refused
        document["components"]["schemas"][name]["properties"]["methods"]["items"]["enum"] = list(METHODS)
    description = schemathesis.openapi.from_dict(document)
    description.app = app
    cases = description[path][verb].as_strategy(schemathesis.GenerationMode(mode))

    @settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
        derandomize=True,
    )
    @given(case=cases)
    def holds(case: Any) -> None:
        # what fits may still be refused: a schema cannot say what a model's labels or a text's tokens are
        case.call_and_validate(excluded_checks=[positive_data_acceptance])

    holds()
