"""Limits of the server against slow, many and foreign clients: time, connections, log, token, headers."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from fastapi.testclient import TestClient

from faithmeter.cli import serve as verb
from faithmeter.serve import server
from faithmeter.serve.admission import ServedModel
from faithmeter.serve.app import create_app
from faithmeter.serve.security import SECURITY_HEADERS
from faithmeter.serve.server import LogFormatter, LogLimit, is_loopback, listen
from serving import TEXT, running, served

HALF_HEADER = b"POST /api/probe HTTP/1.1\r\nHost: localhost\r\n"
HALF_BODY = HALF_HEADER + b'Content-Length: 1000\r\nContent-Type: application/json\r\n\r\n{"text": "half'
SECRET = "a-token-of-the-test"


@pytest.fixture(scope="module")
def model() -> ServedModel:
    return served()


@pytest.fixture
def quick_timeout(monkeypatch: pytest.MonkeyPatch) -> float:
    monkeypatch.setattr(server, "REQUEST_SECONDS", 0.5)
    return 0.5


def connect(address: str, data: bytes) -> socket.socket:
    url = urlsplit(address)
    connection = socket.create_connection((str(url.hostname), url.port or 80), timeout=10)
    connection.sendall(data)
    return connection


def is_closed(connection: socket.socket) -> bool:
    connection.settimeout(0.05)
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


@pytest.mark.parametrize("data", [b"", HALF_HEADER, HALF_BODY], ids=["nothing", "header", "body"])
def test_half_a_request_is_ended_in_time(model: ServedModel, quick_timeout: float, data: bytes) -> None:
    with running(model) as address, connect(address, data) as connection:
        begin = time.monotonic()
        response = b"".join(iter(lambda: connection.recv(4096), b""))
        assert quick_timeout / 2 < time.monotonic() - begin < 8
        assert response.startswith(b"HTTP/1.1 408 ") or data == b""


def test_many_half_sent_requests_keep_nobody_out(model: ServedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MAX_CONNECTIONS", 10)
    with running(model) as address:
        slow = [connect(address, HALF_BODY) for _ in range(60)]
        response = httpx.post(f"{address}/api/probe", json={"text": TEXT}, timeout=10)
        assert response.status_code == 200
        assert sum(not is_closed(connection) for connection in slow) <= 10
        for connection in slow:
            connection.close()


def test_a_request_in_time_is_not_cut_off_by_its_work(model: ServedModel, quick_timeout: float) -> None:
    with running(model) as address:
        body = {
            "text": TEXT,
            "methods": ["loo-sign", "beam(width=20)", "int-grad-sign(steps=100)"],
            "orders": 500,
        }
        assert httpx.post(f"{address}/api/measure", json=body, timeout=60).status_code == 200


def test_the_log_is_bounded_and_commands_no_terminal() -> None:
    record = logging.LogRecord("a", logging.WARNING, "", 0, "\x1b[31m%s", ("x" * 50_000,), None)
    line = LogFormatter("%(levelname)s: %(message)s").format(record)
    assert len(line) < 6000
    assert "\x1b" not in line
    limit = LogLimit()
    records = [logging.LogRecord("a", logging.WARNING, "", 0, "lost", (), None) for _ in range(1000)]
    assert sum(map(limit.filter, records)) == server.MAX_LOG_RECORDS
    limit.window_start -= server.LOG_WINDOW_SECONDS
    assert limit.filter(record)
    assert record.getMessage().endswith("(990 records were dropped)")


@pytest.mark.parametrize("place", ["app.explain_texts", "admission.Admission.count_tokens"])
def test_a_failure_has_the_security_headers_and_tells_nothing(
    model: ServedModel, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("a secret of the server")

    monkeypatch.setattr(f"faithmeter.serve.{place}", fail)
    app = create_app(model)
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as client:
        response = client.post("/api/explain", json={"text": TEXT})
    app.state.admission.close()
    assert response.status_code == 500
    assert {name: response.headers.get(name) for name in SECURITY_HEADERS} == SECURITY_HEADERS
    assert "secret" not in response.text


@pytest.fixture
def guarded(model: ServedModel) -> Iterator[TestClient]:
    app = create_app(model, token=SECRET)
    with TestClient(app, base_url="http://localhost", follow_redirects=False) as client:
        yield client
    app.state.admission.close()


@pytest.mark.parametrize(
    "path", ["/", "/page.js", "/heat.css", "/api/model", "/openapi.json", "/?token=wrong"]
)
def test_without_the_token_nothing_is_served(guarded: TestClient, path: str) -> None:
    response = guarded.get(path)
    assert response.status_code == 401
    assert "token" in response.json()["detail"]
    assert {name: response.headers.get(name) for name in SECURITY_HEADERS} == SECURITY_HEADERS


def test_the_token_is_taken_from_the_link_once_or_as_bearer(guarded: TestClient) -> None:
    assert guarded.get("/api/model", headers={"Authorization": f"Bearer {SECRET}"}).status_code == 200
    opened = guarded.get(f"/?token={SECRET}")
    assert opened.status_code == 303
    assert SECRET not in opened.headers["location"]
    assert "httponly" in opened.headers["set-cookie"].lower()
    assert guarded.get("/api/model").status_code == 200, "by the cookie"


@pytest.mark.parametrize(("host", "local"), [("127.0.0.1", True), ("localhost", True), ("0.0.0.0", False)])
def test_only_loopback_needs_no_token(
    model: ServedModel, monkeypatch, capsys, host: str, local: bool
) -> None:
    with listen(host, 0) as listening:
        assert is_loopback(listening) == local
    monkeypatch.setattr(verb, "_load_model", lambda *_: model)
    apps: list[Any] = []
    monkeypatch.setattr(server, "run_server", lambda app, _: apps.append(app))
    verb.serve("checkpoint", verb.Training(), verb.Computing(), verb.Listening(host=host, port=0))
    printed = capsys.readouterr().err
    assert printed.count("?token=") == (0 if local else 1)
    assert ("other machines can reach" in printed) != local
    with TestClient(apps[0], base_url="http://localhost") as client:
        assert client.get("/api/model").status_code == (200 if local else 401)
    apps[0].state.admission.close()
