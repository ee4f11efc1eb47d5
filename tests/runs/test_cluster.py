"""Mistakes with a cluster are told in one line, before any work."""

from __future__ import annotations

import socket
import sys
from threading import Thread

import pytest

import faithmeter as fm
import fake_ray
from faithmeter.runs.cluster import (
    Resources,
    connected,
    count_places,
    find_resources,
    own_versions,
    require_versions,
)


def test_a_missing_package_is_told(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with (
        pytest.raises(fm.InputError, match=r"package ray, .* not installed.*pip install 'faithmeter\[ray\]'"),
        connected(),
    ):
        pass


@pytest.mark.parametrize("address", ["ray://head:10001", "head", "head:port", "head:99999"])
def test_an_address_that_cannot_be_one_is_told(monkeypatch, address: str) -> None:
    fake_ray.install(monkeypatch)
    with pytest.raises(fm.InputError, match=r"expected HOST:PORT|no Ray cluster at"), connected(address):
        pass


def test_an_address_where_nothing_listens_is_told(monkeypatch) -> None:
    fake_ray.install(monkeypatch)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(fm.InputError, match=rf"no Ray cluster at {address}.*ray start --head"):
            connected(address).__enter__()


@pytest.mark.parametrize("answer", [b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 400 Bad Request\r\n\r\n", b""])
def test_an_address_where_another_program_listens_is_told(monkeypatch, answer: bytes) -> None:
    fake_ray.install(monkeypatch)

    def reply(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(100)
            connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        Thread(target=reply, args=[server], daemon=True).start()
        with pytest.raises(fm.InputError, match=rf"no Ray cluster at {address}: another program answers"):
            connected(address).__enter__()


FORBIDDEN = ConnectionError("Failed to connect to Ray cluster")
FORBIDDEN.__cause__ = RuntimeError("RPC error: InvalidAuthToken: token is missing")
MISMATCH = "Version mismatch: The cluster was started with:\n    Ray: 2.40.0\n    Python: 3.11.7"


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ConnectionError("no running Ray instance"), r"at 'auto': no running.*ray start --head"),
        (FORBIDDEN, r"Failed to connect to Ray cluster; set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN as on"),
        (RuntimeError(MISMATCH), r"was started with: Ray: 2.40.0 Python: 3.11.7; install the same versions"),
    ],
)
def test_no_connection_is_told_in_one_line(monkeypatch, error: Exception, line: str) -> None:
    ray = fake_ray.install(monkeypatch)

    def init(**_: object) -> None:
        raise error

    monkeypatch.setattr(ray, "init", init, raising=False)
    with pytest.raises(fm.InputError, match=line) as caught:
        connected("auto").__enter__()
    assert "\n" not in str(caught.value)


def test_a_run_that_no_node_can_hold_is_told(monkeypatch) -> None:
    fake_ray.install(monkeypatch, cpus=2)
    assert find_resources(None, None) == Resources(1, 0)
    assert find_resources(2, 0).options == {"num_cpus": 2, "num_gpus": 0}
    with pytest.raises(fm.InputError, match=r"asks for 4 CPUs and 1 GPUs, and no node has them: here 2 CPUs"):
        find_resources(4, 1)


@pytest.mark.parametrize(("cpus", "places"), [(1, 2), (0.5, 4), (1.5, 1), (3, 0), (0, 1)])
def test_places_are_counted_node_by_node(monkeypatch, cpus: float, places: int) -> None:
    fake_ray.install(monkeypatch, cpus=2)
    assert count_places(Resources(cpus)) == places


def test_a_training_has_a_process_for_each_whole_gpu() -> None:
    assert [Resources(1, gpus).processes for gpus in (0, 0.5, 1, 2, 8)] == [1, 1, 1, 2, 8]


def test_versions_are_compared_by_package() -> None:
    require_versions(own_versions())
    with pytest.raises(fm.InputError, match=r"has torch .* instead of 0.1; install the same"):
        require_versions({**own_versions(), "torch": "0.1"})
