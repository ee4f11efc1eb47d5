"""Mistakes with a cluster are told in one line, before any work."""

from __future__ import annotations

import socket
import sys
from typing import Any

import pytest

import faithmeter as fm
import fake_ray
from faithmeter.cli.options import Workers
from faithmeter.runs import cluster
from faithmeter.runs.cluster import (
    Resources,
    connected,
    count_places,
    find_resources,
    on_every_node,
    own_versions,
    require_versions,
    watch_room,
)


def test_a_missing_package_is_told(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with (
        pytest.raises(fm.InputError, match=r"package ray, .* not installed.*pip install 'faithmeter\[ray\]'"),
        connected(),
    ):
        pass


@pytest.mark.parametrize(
    "address", ["ray://head:10001", "head", "head:port", "head:99999", ".cluster.local:6379"]
)
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


FORBIDDEN = ConnectionError("Failed to connect to Ray cluster")
FORBIDDEN.__cause__ = RuntimeError("RPC error: InvalidAuthToken: token is missing")
MISSING_TOKEN = type("AuthenticationError", (fake_ray.RayError,), {})("no token was found")
MISMATCH = "Version mismatch: The cluster was started with:\n    Ray: 2.40.0\n    Python: 3.11.7"


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ConnectionError("no running Ray instance"), r"at 'auto': no running.*ray start --head"),
        (FORBIDDEN, r"Failed to connect to Ray cluster; set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN as on"),
        (MISSING_TOKEN, r"no token was found; set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN as on the head"),
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


def test_a_cluster_that_fails_within_the_block_is_told_in_one_line(monkeypatch) -> None:
    ray, calls = fake_ray.install(monkeypatch), list[str]()
    monkeypatch.setattr(ray, "init", lambda **_: calls.append("init"), raising=False)
    monkeypatch.setattr(ray, "shutdown", lambda: calls.append("shutdown"), raising=False)
    line = r"^the Ray cluster at 'auto' failed: the head is gone; start the command again: finished work is"
    with pytest.raises(fm.InputError, match=line), connected("auto"):
        raise fake_ray.RayError("lost\nthe head is gone")
    assert calls == ["init", "shutdown"]


@pytest.mark.parametrize("gpus", [1.5, 2.25, float("nan"), float("inf")])
def test_a_part_of_several_gpus_is_refused(gpus: float) -> None:
    with pytest.raises(fm.InputError, match=rf"--gpus-per-run {gpus:g}; expected .*: give"):
        _ = Workers("ray", gpus_per_run=gpus).on_ray


@pytest.mark.parametrize("gpus", [None, 0, 0.5, 1, 2])
def test_a_part_of_one_gpu_or_several_whole_ones_are_accepted(gpus: float | None) -> None:
    assert Workers("ray", gpus_per_run=gpus).on_ray


def two_nodes(monkeypatch: pytest.MonkeyPatch, error: Exception) -> tuple[Any, list[dict[str, Any]]]:
    """A cluster whose second node fails with an error, a function to call there, and the nodes."""
    ray, started = fake_ray.install(monkeypatch), list[int]()
    nodes = [{"Alive": True, "NodeID": name, "NodeManagerHostname": f"host-{name}"} for name in "ab"]
    monkeypatch.setattr(ray, "nodes", lambda: nodes)

    def work() -> str:
        started.append(1)
        if len(started) == 2:
            raise error
        return "fine"

    return work, nodes


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (RuntimeError("failed to import on the worker:\n\nModuleNotFoundError: no faithmeter"), "no faith"),
        (AttributeError("Can't get attribute 'require_versions'"), "Can't get attribute"),
        (fake_ray.RayError("the worker died"), "the worker died"),
    ],
)
def test_a_node_that_cannot_work_is_named(monkeypatch, error: Exception, cause: str) -> None:
    work, _ = two_nodes(monkeypatch, error)
    with pytest.raises(fm.InputError, match=rf"^node host-b cannot work: .*{cause}.*; install") as caught:
        on_every_node(work)
    assert "\n" not in str(caught.value)


def test_an_error_of_the_function_stays_as_it_is(monkeypatch) -> None:
    work, _ = two_nodes(monkeypatch, fm.InputError("other versions"))
    with pytest.raises(fm.InputError, match=r"^other versions$"):
        on_every_node(work)


@pytest.mark.parametrize("is_listed", [True, False])
def test_a_node_that_ends_is_left_out(monkeypatch, is_listed: bool) -> None:
    died = type("NodeDiedError" if is_listed else "WorkerCrashedError", (fake_ray.RayError,), {})
    work, nodes = two_nodes(monkeypatch, died("gone"))
    monkeypatch.setattr(
        fake_ray.sys.modules["ray"],
        "get",
        lambda ref: (nodes[1].update(Alive=is_listed), fake_ray.get(ref))[1],
    )
    on_every_node(work)
    assert nodes[0]["Alive"]


def test_the_command_says_once_in_a_period_that_no_node_can_hold_a_worker(monkeypatch) -> None:
    clock, places, lines = [0.0], [0], []
    fake_ray.install(monkeypatch)
    monkeypatch.setattr(cluster, "count_places", lambda _: places[0])
    monkeypatch.setattr(cluster.time, "monotonic", lambda: clock[0])
    look = watch_room(Resources(2, 1), lines.append)

    def wait(seconds: float) -> int:
        clock[0] += seconds
        look()
        return len(lines)

    assert wait(59) == 0
    assert [wait(1), wait(1000)] == [1, 1]
    assert lines == [
        "no node of the cluster can hold a worker, which needs 2 CPUs and 1 GPUs; waiting for one"
    ]
    places[0] = 1
    assert wait(1000) == 1, "a node has come back"
    places[0] = 0
    assert [wait(59), wait(1)] == [1, 2]
