"""The live page's API in this process: the library's answers, its limits, and what it refuses."""

from __future__ import annotations

import asyncio
import copy
import json
import re
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch
from fastapi import FastAPI
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st

import faithmeter as fm
from faithmeter.cli import serve as verb
from faithmeter.cli.options import as_command
from faithmeter.files import plain
from faithmeter.measuring.costs import explain_cost, measure_cost
from faithmeter.measuring.one_text import probe_text
from faithmeter.methods import METHODS, parse
from faithmeter.models.evaluator import Evaluator
from faithmeter.serve import Limits, schemas
from faithmeter.serve.admission import Job, JobStopped, ServedModel, Worker, choose_examples
from faithmeter.serve.app import STATIC, create_app
from faithmeter.serve.security import SECURITY_HEADERS
from faithmeter.serve.server import listen
from serving import OPERATIONS, PAIR, TEXT, fuzz, served
from toy import WORDS, tiny

HOSTILE = [
    "<script>alert(1)</script>",
    "שלום עולם, הסרט טוב",
    "good 😀👩‍👩‍👧 fun",
    "a\u0000b\u202e c",
    "'\"`${x}",
]
STREAM = {"Accept": "application/x-ndjson"}
CHEAP_TO_LOAD = [*(name for name in METHODS if name != "shapley"), "beam(width=2)"]


@pytest.fixture(scope="module")
def model() -> ServedModel:
    return served()


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint that says nothing of how it was trained."""
    folder = tmp_path_factory.mktemp("trained")
    clf = tiny()
    clf.model.save_pretrained(folder)
    clf.tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def app(model: ServedModel) -> Iterator[FastAPI]:
    app = create_app(
        model, limits=Limits(max_words=300, max_evaluations=3000), hosts=["localhost", "testserver"]
    )
    yield app
    app.state.admission.close()


@pytest.fixture(scope="module")
def client(app: FastAPI) -> Iterator[Any]:
    with TestClient(app, base_url="http://localhost") as client:
        yield client


def lines(response: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in response.text.splitlines()]


# the library's answers


def test_model_tells_what_is_served(client: Any) -> None:
    said = schemas.ModelResponse.model_validate(client.get("/api/model").json())
    assert (said.name, said.task, said.tests) == ("tiny", None, ["published", "crossfit"])
    assert [(method.name, method.signed, method.about) for method in said.methods] == [
        (name, method.signed, method.about) for name, method in METHODS.items() if name != "random"
    ]


def test_probe_is_probe_text(client: Any, model: ServedModel) -> None:
    given = {"text": TEXT, "pair": PAIR, "masked": [1, 4]}
    answer = client.post("/api/probe", json=given).json()
    schemas.ProbeResponse.model_validate(answer)
    expected = probe_text(model.clf, TEXT, pair=PAIR, masked=[1, 4], tests=model.tests)
    assert answer == json.loads(json.dumps(plain(expected.to_dict())))


def test_explain_is_explain_text(client: Any, model: ServedModel) -> None:
    given = {"text": TEXT, "pair": PAIR, "methods": ["loo-sign", "beam(width=2)"], "label": "LABEL_1"}
    answer = client.post("/api/explain", json=given).json()
    schemas.ExplainResponse.model_validate(answer)
    expected = fm.explain_text(
        model.clf, TEXT, pair=PAIR, method=["loo-sign", "beam(width=2)"], label="LABEL_1", verify=False
    )
    assert answer["label"] == "LABEL_1"
    for mine, theirs in zip(answer["words"], expected.words, strict=True):
        assert mine["text"] == theirs.text
        assert mine["scores"] == pytest.approx(theirs.scores, abs=1e-4)


def test_words_and_sentences_are_units_of_the_api(client: Any) -> None:
    given = {"text": "the film was good. a dull plot", "pair": PAIR, "unit": "sentence"}
    answer = client.post("/api/explain", json=given).json()
    assert [word["text"] for word in answer["words"]] == ["the film was good.", "a dull plot"]
    curve = client.post("/api/measure", json={**given, "orders": 20}).json()["mean"]
    assert len({*curve}) == 3, "one sentence falls at 50 %, the other at 100 %"
    assert client.post("/api/explain", json={**given, "unit": "letter"}).status_code == 422


def test_measure_is_verified_explain_text(client: Any, model: ServedModel) -> None:
    given = {"text": TEXT, "pair": PAIR, "methods": ["grad-l2"], "orders": 20, "step": 30, "seed": 3}
    answer = client.post("/api/measure", json=given).json()
    schemas.MeasureResponse.model_validate(answer)
    options = {"orders": 20, "seed": 3, "percents": [0, 30, 60, 90, 100], "tests": model.tests}
    expected = fm.explain_text(model.clf, TEXT, pair=PAIR, method=["grad-l2"], **options)
    assert answer["percents"] == [0, 30, 60, 90, 100]
    assert answer["mean"] == pytest.approx(expected.mean, abs=1e-4)
    assert answer["erasures"]["grad-l2"]["acu"] == pytest.approx(expected.erasures["grad-l2"].acu, abs=1e-4)
    assert [doubt["kind"] for doubt in answer["doubts"]] == [d["kind"] for d in expected.to_dict()["doubts"]]


@pytest.mark.parametrize(
    ("what", "given"),
    [
        ("explain", {"methods": ["loo-sign", "beam"]}),
        ("measure", {"methods": ["loo-sign", "beam"], "orders": 200}),
    ],
)
def test_a_stream_ends_with_the_same_result(client: Any, what: str, given: dict[str, Any]) -> None:
    given = {"text": TEXT, **given}
    response = client.post(f"/api/{what}", json=given, headers=STREAM)
    assert response.headers["content-type"].startswith("application/x-ndjson")
    *progress, last = lines(response)
    assert progress
    assert all(
        line.keys() == {"stage", "done", "stages", "evaluations", "max_evaluations"} for line in progress
    )
    assert last["result"] == client.post(f"/api/{what}", json=given).json()


@pytest.mark.parametrize("what", ["explain", "measure"])
def test_progress_counts_evaluations_up_to_the_bound(
    app: FastAPI, client: Any, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Every change of it, not only those that a beat happens to see."""
    made: list[tuple[int, int]] = []
    count = Job.count

    def counted(job: Job[Any], evaluations: int) -> None:
        count(job, evaluations)
        made.append((job.evaluations, job.max_evaluations))

    monkeypatch.setattr(Job, "count", counted)
    monkeypatch.setattr("faithmeter.serve.admission.PROGRESS_SECONDS", 0.0)
    given = {"text": "a text of which the server has not heard", "methods": ["int-grad-sign", "loo-abs"]}
    client.post(f"/api/{what}", json=given, headers=STREAM)
    numbers, bounds = zip(*made, strict=True)
    assert len(set(numbers)) > 3
    assert list(numbers) == sorted(numbers)
    assert numbers[-1] <= bounds[0] == bounds[-1] < 3000


def test_an_undefined_area_is_null(client: Any) -> None:
    """A model that takes no notice of the words: random erasure loses nothing to divide by."""
    clf = tiny()
    with torch.no_grad():
        clf.model.classifier.out_proj.weight.zero_()
    app = create_app(ServedModel(clf, "flat"))
    with TestClient(app, base_url="http://localhost") as client:
        answer = client.post("/api/measure", json={"text": TEXT, "orders": 20}).json()
    app.state.admission.close()
    schemas.MeasureResponse.model_validate(answer)
    assert answer["erasures"]["loo-sign"]["racu"] is None
    assert "unchecked" in [doubt["kind"] for doubt in answer["doubts"]]


def test_examples_have_different_labels_and_a_comfortable_length() -> None:
    examples = choose_examples(fm.task("bAbI-1"))
    assert len(examples) == len({example.label for example in examples}) == 4
    assert all(5 <= len(example.text.split()) <= 45 and example.pair for example in examples)


# hostile texts


@pytest.mark.parametrize("text", HOSTILE)
def test_any_text_comes_back_as_it_is(client: Any, text: str) -> None:
    answer = client.post("/api/probe", json={"text": text, "pair": text, "masked": [0]}).json()
    assert answer["text"] == text
    for piece in answer["words"] + answer["tokens"]:
        assert piece["text"] == (text[piece["start"] : piece["end"]] or "␣")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"text": ""}, "text: String should have at least 1 character"),
        ({"text": " \n"}, "is empty after tokenizing"),
        ({"text": "good " * 10_000}, "text has 10000 words; expected at most 300"),
        ({"text": "g" * 6001}, "text has 6001 characters; expected at most 6000"),
        ({"text": "a", "pair": "good " * 301}, "pair has 301 words"),
        ({}, "text: Field required"),
        ({"text": "a", "txet": "b"}, "txet: Extra inputs are not permitted"),
        ({"text": "a", "masked": [1]}, "masked holds 1; expected numbers of explained tokens, 0 to 0"),
        ({"text": "a", "masked": [-1]}, "masked.0: Input should be greater than or equal to 0"),
        ({"text": "a", "masked": [10**30]}, "masked.0: Input should be less than"),
    ],
)
def test_what_cannot_be_probed_is_refused_in_one_line(client: Any, given: dict[str, Any], said: str) -> None:
    response = client.post("/api/probe", json=given)
    assert response.status_code == 422
    assert said in response.json()["detail"]


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b'{"text": "\\ud800"}', 422, "text: "),
        (b'{"text": NaN}', 422, "text: Input should be a valid string"),
        (b"[]", 422, "Input should be a valid dictionary"),
        (b"", 422, "Field required"),
        (b'{"text":', 400, "the body is not JSON: Expecting value"),
        (b"\xff", 400, "There was an error parsing the body"),
    ],
)
def test_what_is_no_text_at_all_is_refused(client: Any, body: bytes, status: int, said: str) -> None:
    response = client.post("/api/probe", content=body, headers={"Content-Type": "application/json"})
    assert response.status_code == status
    assert response.json()["detail"].startswith(said)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"methods": ["loo"]}, "unknown method 'loo'; did you mean"),
        ({"methods": ["random"]}, "random explains nothing"),
        ({"methods": ["random(seed=-1)"]}, "random(seed=-1): expected at least 0"),
        ({"methods": ["beam(width=0)"]}, "beam(width=0): expected at least 1"),
        ({"methods": ["beam(width=1000000)"]}, "evaluations of the model; expected at most 3000"),
        ({"methods": ["beam(width=9)", "int-grad-abs(steps=1000000000)"]}, "evaluations of the model"),
        ({"methods": ["beam"], "text": "good " * 60}, "this could take 1"),
        ({"methods": []}, "methods: List should have at least 1 item"),
        ({"label": "LABEL_7"}, "unknown label 'LABEL_7'"),
        ({"label": "9" * 999}, "unknown label"),
    ],
)
@pytest.mark.parametrize("what", ["explain", "measure"])
def test_what_is_too_much_or_unknown_is_refused_before_work_begins(
    client: Any, what: str, given: dict[str, Any], said: str
) -> None:
    response = client.post(f"/api/{what}", json={"text": TEXT, **given})
    assert response.status_code == 422
    assert said in response.json()["detail"]


def test_an_error_in_a_stream_is_its_last_line(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise fm.InputError("it went wrong")

    monkeypatch.setitem(METHODS, "broken", replace(METHODS["grad-l2"], name="broken", function=fail))
    given = {"text": TEXT, "methods": ["broken"]}
    assert "it went wrong" in lines(client.post("/api/explain", json=given, headers=STREAM))[-1]["error"]


@pytest.mark.parametrize("method", ["grad-l2", "int-grad-abs(steps=7)", "loo-sign", "beam(width=3)"])
@pytest.mark.parametrize("words", [1, 2, 9])
def test_the_estimated_cost_is_an_upper_bound(model: ServedModel, method: str, words: int) -> None:
    text, evaluator = " ".join(WORDS[:words]), Evaluator(model.clf)
    fm.explain_text(evaluator, text, method=[method], verify=False)
    assert evaluator.evaluations <= explain_cost([parse(method)], words)
    evaluator.forget()
    before = evaluator.evaluations
    fm.explain_text(evaluator, text, method=[method], orders=20)
    cost = measure_cost([parse(method)], words, orders=20, steps=11)
    assert evaluator.evaluations - before <= cost


# borders


def test_bodies_are_bounded_whether_their_length_is_told_or_not(client: Any) -> None:
    long = json.dumps({"text": "x" * 500_000}).encode()
    pieces = (long[i : i + 10_000] for i in range(0, len(long), 10_000))
    for content in (long, pieces):
        response = client.post("/api/probe", content=content, headers={"Content-Type": "application/json"})
        assert response.status_code == 413
        assert "bytes" in response.json()["detail"]


def test_only_known_hosts_are_answered(client: Any) -> None:
    assert client.get("/api/model", headers={"Host": "localhost:8000"}).status_code == 200
    for host in ("evil.example", "localhost.evil.example", "127.0.0.1.nip.io", ""):
        response = client.get("/api/model", headers={"Host": host})
        assert response.status_code == 400
        schemas.Problem.model_validate(response.json())
        assert "--allowed-host" in response.json()["detail"]


@pytest.mark.parametrize("path", [path for path, verb in OPERATIONS if verb == "POST"])
def test_only_the_own_page_and_no_browser_can_ask(client: Any, path: str) -> None:
    """A page of another port of this machine is of the same site, and has another origin."""
    host = client.base_url.host
    own, other, tls = f"http://{host}", f"http://{host}:9999", f"https://{host}"
    allowed: list[dict[str, str]] = [{}, {"Origin": own}, {"Origin": tls}, {"Sec-Fetch-Site": "none"}]
    allowed += [{"Sec-Fetch-Site": "same-origin", "Origin": own}]
    refused = [
        {"Origin": origin} for origin in (other, "http://localhost:9999", "null", "http://evil.example")
    ]
    refused += [{"Sec-Fetch-Site": site, "Origin": other} for site in ("same-site", "cross-site")]
    for expected, rows in ((200, allowed), (403, refused)):
        for headers in rows:
            response = client.post(path, json={"text": TEXT}, headers=headers)
            assert response.status_code == expected, headers


def test_only_methods_that_are_answered_are_named_as_allowed(client: Any) -> None:
    verbs = ("GET", "HEAD", "POST", "PUT", "DELETE")
    for path in (*(path for path, _ in OPERATIONS), "/", "/page.js", "/heat.css", "/openapi.json"):
        allowed = {name.strip() for name in client.options(path).headers["allow"].split(",")}
        for method in verbs:
            status = client.request(
                method, path, json={"text": TEXT} if method == "POST" else None
            ).status_code
            assert (status == 200) == (method in allowed), f"{method} {path}: {status}"


def test_an_example_of_the_description_is_answered(client: Any, model: ServedModel) -> None:
    """By a model of pairs, of single texts, and one of which neither is known."""
    for takes_pair in (True, False, None):
        clf = copy.copy(model.clf)
        clf.takes_pair = takes_pair
        app = create_app(ServedModel(clf, "tiny"), hosts=["testserver"])
        document = app.openapi()
        for path, method in OPERATIONS[1:]:
            body = document["paths"][path][method.lower()]["requestBody"]["content"]["application/json"]
            [example] = document["components"]["schemas"][body["schema"]["$ref"].split("/")[-1]]["examples"]
            response = TestClient(app).request(method, path, json=example)
            assert response.status_code == 200, response.json()
        app.state.admission.close()


@pytest.mark.parametrize("path", ["/", "/page.js", "/api/model", "/api/nothing", "/nothing", "/openapi.json"])
def test_every_answer_has_the_headers(client: Any, path: str) -> None:
    for headers in ({}, {"Host": "evil.example"}):
        response = client.get(path, headers=headers)
        assert {name: response.headers.get(name) for name in SECURITY_HEADERS} == SECURITY_HEADERS


def test_nothing_is_inline_and_nothing_comes_from_elsewhere(client: Any) -> None:
    assert client.get("/").text.startswith("<!doctype html>")
    assert client.get("/docs").status_code == client.get("/redoc").status_code == 404
    for path in STATIC.iterdir():
        text = path.read_text(encoding="utf-8")
        assert set(re.findall(r"https?://[^\s\"'`]+", text)) <= {"http://www.w3.org/2000/svg"}
        if path.suffix == ".html":
            assert not re.search(r"\son\w+=|\sstyle=|<style|<script(?![^>]*\ssrc=)", text)
        if path.suffix == ".js":
            assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", text)


def test_beyond_the_queue_one_is_asked_to_come_again(model: ServedModel) -> None:
    app = create_app(model, limits=Limits(max_queued=0))
    with TestClient(app, base_url="http://localhost") as client:
        response = client.post("/api/probe", json={"text": TEXT})
    app.state.admission.close()
    assert response.status_code == 503
    assert int(response.headers["Retry-After"]) > 0


# workers


def endless(evaluator: Evaluator, job: Job[dict[str, Any]]) -> dict[str, Any]:
    batch = evaluator.encode([TEXT])
    while True:
        evaluator.forget()
        evaluator.logits(batch)


def test_a_stopped_job_ends_soon_and_the_next_one_runs(model: ServedModel) -> None:
    async def scenario() -> None:
        worker = Worker(model.clf, max_queued=2)
        job = Job(endless)
        future = worker.start(job)
        while not job.evaluations:
            await asyncio.sleep(0.01)
        job.stop()
        with pytest.raises(JobStopped):
            await asyncio.wait_for(future, timeout=5)
        assert await asyncio.wait_for(worker.start(Job(lambda *_: {"a": 1})), timeout=5) == {"a": 1}
        worker.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("accept", ["application/json", "application/x-ndjson"])
def test_who_goes_away_stops_the_work(app: FastAPI, monkeypatch: pytest.MonkeyPatch, accept: str) -> None:
    started, ended = threading.Event(), threading.Event()

    def slow(evaluator: Evaluator, *_: Any, **__: Any) -> Any:
        started.set()
        try:
            return endless(evaluator, Job(endless))
        finally:
            ended.set()

    monkeypatch.setattr("faithmeter.serve.app.verify_text", slow)

    async def scenario() -> None:
        asked = iter([{"type": "http.request", "body": json.dumps({"text": TEXT}).encode()}])

        async def receive() -> dict[str, Any]:
            if message := next(asked, None):
                return message
            while not started.is_set():
                await asyncio.sleep(0.01)
            return {"type": "http.disconnect"}

        async def send(_: Any) -> None: ...

        headers = [
            (b"host", b"localhost"),
            (b"content-type", b"application/json"),
            (b"accept", accept.encode()),
        ]
        scope = {"type": "http", "method": "POST", "path": "/api/measure", "headers": headers}
        scope |= {"query_string": b"", "asgi": {"spec_version": "2.4"}}
        await asyncio.wait_for(app(scope, receive, send), timeout=10)

    asyncio.run(scenario())
    assert ended.wait(timeout=5)


def test_many_at_a_time_get_the_answers_of_one_at_a_time(app: FastAPI) -> None:
    bodies = [("probe", {"text": " ".join(WORDS[i:]), "masked": [0]}) for i in range(12)]
    bodies += [
        ("explain", {"text": " ".join(WORDS[i:]), "methods": ["loo-sign", "grad-l2"]}) for i in range(6)
    ]
    bodies += [
        ("measure", {"text": " ".join(WORDS[i:]), "orders": 20, "methods": ["grad-l2"]}) for i in range(8, 14)
    ]

    async def answers(*, together: bool) -> list[Any]:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=60) as client:
            asked = [client.post(f"/api/{what}", json=body) for what, body in bodies]
            if together:
                found = await asyncio.gather(*asked)
            else:
                found = [await one for one in asked]
        assert {response.status_code for response in found} == {200}
        return [response.json() for response in found]

    assert asyncio.run(answers(together=True)) == asyncio.run(answers(together=False))


def test_a_click_is_answered_while_long_work_is_done(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    running, answered = threading.Event(), threading.Event()

    def slow(evaluator: Evaluator, *_: Any, **__: Any) -> Any:
        running.set()
        assert answered.wait(timeout=30)
        return fm.explain_text(evaluator, TEXT, verify=False)

    monkeypatch.setattr("faithmeter.serve.app.verify_text", slow)

    async def scenario() -> None:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=60) as client:
            long = asyncio.create_task(client.post("/api/measure", json={"text": TEXT}))
            while not running.is_set():
                await asyncio.sleep(0.01)
            assert (await client.post("/api/probe", json={"text": TEXT})).status_code == 200
            answered.set()
            assert (await long).status_code == 200

    asyncio.run(scenario())


# fuzzing: no answer that the description does not know, and none of 500


@pytest.mark.parametrize("mode", ["positive", "negative"])
@pytest.mark.parametrize(("path", "verb"), OPERATIONS[1:])
def test_fuzzed_requests_find_no_server_error(app: FastAPI, path: str, verb: str, mode: str) -> None:
    pytest.importorskip("schemathesis")
    fuzz(app, path, verb, mode, examples=10)


@settings(max_examples=25)
@given(
    text=st.text(st.sampled_from("a good film <>&\n😀ש") | st.characters(), max_size=40),
    pair=st.none() | st.text(max_size=10),
    methods=st.lists(st.sampled_from(CHEAP_TO_LOAD), min_size=1, max_size=3),
    what=st.sampled_from(["explain", "measure"]),
)
def test_any_text_is_answered_or_refused(
    client: Any, text: str, pair: str | None, methods: list[str], what: str
) -> None:
    body = json.dumps({"text": text, "pair": pair, "methods": methods})
    response = client.post(f"/api/{what}", content=body, headers={"Content-Type": "application/json"})
    assert response.status_code in (200, 422), response.text
    if response.status_code == 200:
        model = schemas.ExplainResponse if what == "explain" else schemas.MeasureResponse
        model.model_validate(response.json())


# the verb

run_verb = as_command(verb.serve)


def test_a_port_in_use_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            fm.InputError, match=f"cannot listen on 127.0.0.1, port {port}: .*try another --port"
        ):
            run_verb(checkpoint="embedded", port=port)


def test_packets_are_sent_without_delay() -> None:
    """A request of one connection after the other: with Nagle's algorithm each would take 40 ms more."""

    async def accepted() -> Any:
        options: list[int] = []

        def connected(_: Any, writer: asyncio.StreamWriter) -> None:
            options.append(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        listening = listen("127.0.0.1", 0)
        async with await asyncio.start_server(connected, sock=listening):
            reader, writer = await asyncio.open_connection(*listening.getsockname())
            await reader.read()
            writer.close()
        return options

    assert all(asyncio.run(accepted()))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"checkpoint": "/nowhere/at/all", "port": 0}, "/nowhere/at/all"),
        ({"checkpoint": "embedded", "port": 0}, "no trained classifier head"),
        ({"checkpoint": "embedded", "allowed": ["a*b"]}, "--allowed-host 'a\\*b'; expected a name"),
        ({"checkpoint": "embedded", "host": "not a host", "port": 0}, "cannot listen on not a host"),
    ],
)
def test_wrong_arguments_are_one_line(options: dict[str, Any], said: str) -> None:
    with pytest.raises(fm.InputError, match=said) as error:
        run_verb(**options)
    assert "\n" not in str(error.value)


def test_an_unknown_task_is_one_line(trained: Path) -> None:
    with pytest.raises(fm.InputError, match="unknown task 'bAbI-9'; did you mean"):
        run_verb(checkpoint=str(trained), task="bAbI-9", port=0)


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verb, "find_spec", lambda _: None)
    with pytest.raises(fm.InputError, match=r"pip install 'faithmeter\[serve\]'"):
        run_verb(checkpoint="embedded")


def test_the_verb_serves_a_model_of_unknown_training_without_pvalues(
    trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to the server itself, which the browser tests run."""
    seen: list[Any] = []
    monkeypatch.setattr(
        "faithmeter.serve.server.run_server",
        lambda app, listening: seen.append((app, listening.getsockname()[1])),
    )
    run_verb(checkpoint=str(trained), port=0, allowed=["box.example"], max_words=7)
    ((app, port),) = seen
    with TestClient(app, base_url="http://box.example") as client:
        said = client.get("/api/model").json()
        probe = client.post("/api/probe", json={"text": "Mary is here"}).json()
    app.state.admission.close()
    assert port > 0
    assert (said["name"], said["task"], said["max_words"], said["tests"]) == (trained.name, None, 7, [])
    assert [doubt["kind"] for doubt in probe["doubts"]] == ["unchecked"]


def test_a_model_that_predicts_a_number_is_served() -> None:
    clf = tiny(dtype=torch.float32, labels=1)
    app = create_app(ServedModel(clf, "numbers"), hosts=["localhost"])
    value = float(clf.logits(clf.encode([TEXT]))[0, 1])
    with TestClient(app, base_url="http://localhost") as client:
        assert client.get("/api/model").json()["predicts_number"] is True
        probe = client.post("/api/probe", json={"text": TEXT, "masked": []}).json()
        assert probe["value"] == pytest.approx(value, abs=1e-5)
        assert (probe["prediction"], probe["probabilities"]) == (f"{value:.2f}", {})
        explained = client.post("/api/explain", json={"text": TEXT, "methods": ["loo-sign"]}).json()
        assert explained["label"] == ("higher value" if value > 0 else "lower value")
        body = {"text": TEXT, "methods": ["loo-sign"], "orders": 19, "label": "lower value"}
        measured = client.post("/api/measure", json=body).json()
        assert (measured["quantity"], measured["label"]) == ("number", "lower value")
        assert measured["erasures"]["loo-sign"]["probability"][0] == pytest.approx(value, abs=1e-5)
    app.state.admission.close()
