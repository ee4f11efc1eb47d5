"""Connection to a Ray cluster: its address, the versions on its nodes, and room for runs."""

from __future__ import annotations

import math
import os
import platform
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from ..errors import InputError
from ..store.run_store import environment

LOSSES = 3
"""Number of workers that may be lost with the same task, to accidents or for lack of memory."""
SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_worker_niceness": "0",
    "RAY_task_oom_retries": str(LOSSES),
}
"""Environment of Ray: no statistics, no warning without a GPU, usual priority, losses for memory counted."""
OBJECT_STORE_BYTES = 2**30
"""Memory for objects in transit on a cluster that is started here; larger ones go to the disk."""
CONNECT_SECONDS = 5.0
"""Seconds within which the head of a cluster must accept a connection."""
REMARK_SECONDS = 60.0
"""Seconds without a node that can hold a worker, after which the user is told."""
LOCAL = "local"
"""Address of a cluster of this machine alone, which is started and ended with the command."""


@dataclass(frozen=True)
class Resources:
    """Resources that Ray reserves for a run: CPUs and GPUs, or parts of a GPU."""

    cpus: float = 1
    gpus: float = 0

    @property
    def options(self) -> dict[str, float]:
        """Options of a Ray task or actor."""
        return {"num_cpus": self.cpus, "num_gpus": self.gpus}

    @property
    def processes(self) -> int:
        """Number of processes that share a training: one for each GPU."""
        return max(1, int(self.gpus))

    def __str__(self) -> str:
        return f"{self.cpus:g} CPUs and {self.gpus:g} GPUs"


@contextmanager
def connected(address: str = "") -> Iterator[None]:
    """Connect to a Ray cluster within the block.

    Args:
        address: HOST:PORT of the head, or `auto` for a cluster that this machine is part of; empty for the
            one in the variable RAY_ADDRESS or, without it, a new cluster of this machine alone.

    Raises:
        InputError: Ray is not installed, there is no cluster at the address, versions differ, or the cluster
            fails within the block.
    """
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError as error:
        raise InputError(
            "engine 'ray' needs the package ray, which is not installed; run: pip install 'faithmeter[ray]'"
        ) from error
    # the same order as Ray's own
    address = address or os.environ.get("RAY_ADDRESS", "") or LOCAL
    _require_listener(address)
    own = {"include_dashboard": False, "object_store_memory": OBJECT_STORE_BYTES} if address == LOCAL else {}
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR", **own)
    except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        cause = " ".join(getattr(error, "message", str(error)).split())
        details = f"{type(error).__name__} {cause} {error.__cause__}"
        advice = next((text for word, text in ADVICE.items() if word in details), HEAD_ADVICE)
        raise InputError(f"no connection to a Ray cluster at {address!r}: {cause}; {advice}") from error
    try:
        yield
    except ray.exceptions.RayError as error:
        raise InputError(
            f"the Ray cluster at {address!r} failed: {last_line(error)}; start the command again: finished "
            "work is kept"
        ) from error
    finally:
        ray.shutdown()


ADVICE = {
    "ersion mismatch": "install the same versions everywhere",
    "Auth": "set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN as on the head",
}
"""Advice for errors of a connection, by a word in their class or message."""
HEAD_ADVICE = "start one with `ray start --head`, and give the address that it prints, or leave --address out"


def _require_listener(address: str) -> None:
    """Raise an InputError if nothing listens at HOST:PORT, for which Ray would wait for minutes."""
    if address in (LOCAL, "auto"):
        return
    host, colon, port = address.rpartition(":")
    if "://" in address or not colon or not port.isdecimal():
        raise InputError(
            f"--address {address!r}: expected HOST:PORT of the head node, or auto on a machine of the cluster"
        )
    try:
        socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS).close()
    except (OSError, OverflowError, UnicodeError) as error:  # a host that IDNA rejects
        raise InputError(f"no Ray cluster at {address}: {error}; {HEAD_ADVICE}") from error


def find_resources(cpus: float | None, gpus: float | None) -> Resources:
    """Return the resources of a run; by default one CPU, and one GPU if the cluster has any.

    Raises:
        InputError: No node is large enough.
    """
    import ray

    if gpus is None:
        gpus = float(ray.cluster_resources().get("GPU", 0) >= 1)
    resources = Resources(1 if cpus is None else cpus, gpus)
    if not count_places(resources):
        nodes = [
            f"{node['NodeManagerHostname']} {_resources(node, 'CPU'):g} CPUs and "
            f"{_resources(node, 'GPU'):g} GPUs"
            for node in _nodes()
        ]
        raise InputError(
            f"a run asks for {resources}, and no node has them: {'; '.join(nodes)}; lower --cpus-per-run or "
            "--gpus-per-run, or add a larger node"
        )
    return resources


def count_places(resources: Resources) -> int:
    """Return how many runs the nodes of the cluster can execute at the same time."""
    wanted = {"CPU": resources.cpus, "GPU": resources.gpus}
    places = 0
    for node in _nodes():
        # a node has room for as many as its scarcest resource allows; 1e-9 for parts of a GPU in floats
        room = [_resources(node, name) / amount for name, amount in wanted.items() if amount]
        places += math.floor(min(room, default=math.inf) + 1e-9) if room else 1
    return places


def watch_room(resources: Resources, remark: Callable[[str], object]) -> Callable[[], None]:
    """Return a function that remarks, once in a period, that no node can hold a worker."""
    last = time.monotonic()

    def look() -> None:
        nonlocal last
        if count_places(resources):
            last = time.monotonic()
        elif time.monotonic() - last >= REMARK_SECONDS:
            remark(f"no node of the cluster can hold a worker, which needs {resources}; waiting for one")
            # once is enough until there is room again
            last = math.inf

    return look


def _nodes() -> list[dict[str, Any]]:
    import ray

    return list(filter(itemgetter("Alive"), ray.nodes()))


def _resources(node: Mapping[str, Any], name: str) -> float:
    return float(node["Resources"].get(name, 0.0))


def own_versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that results depend on, in this process."""
    return {"python": platform.python_version(), **environment()["versions"]}


def require_versions(expected: Mapping[str, str]) -> None:
    """Raise an InputError if this process has other versions than those of the command's."""
    here = own_versions()
    others = []
    for name, version in expected.items():
        if here.get(name) != version:
            others.append(f"{name} {here.get(name)} instead of {version}")
    if others:
        raise InputError(
            f"node {platform.node()} has {', '.join(others)}; install the same versions on all nodes"
        )


def on_every_node(function: Callable[..., Any], *arguments: Any) -> None:
    """Call a function on each node of the cluster; nodes that end meanwhile are left out.

    Raises:
        InputError: The function raised one on a node, or the node cannot call it.
    """
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    # pinned to each node: a task that Ray places itself could run twice on one
    task, calls = ray.remote(function), []
    for node in _nodes():
        there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        options = {"num_cpus": 0, "max_retries": 0, "scheduling_strategy": there}
        calls.append((node, task.options(**options).remote(*arguments)))
    for node, call in calls:
        try:
            ray.get(call)
        except ray.exceptions.RayError as error:
            cause = getattr(error, "cause", error)  # of an error of the function
            if isinstance(cause, InputError):
                raise InputError(str(cause)) from None
            if _is_alive(node, cause):
                raise InputError(
                    f"node {node['NodeManagerHostname']} cannot work: {last_line(cause)}; install the same "
                    "versions on all nodes, or take it out of the cluster"
                ) from error


def _is_alive(node: Mapping[str, Any], error: Exception) -> bool:
    """Return whether a node that caused an error is alive; Ray may list a dead one for some seconds."""
    is_listed = node["NodeID"] in map(itemgetter("NodeID"), _nodes())
    return is_listed and type(error).__name__ not in ("NodeDiedError", "TaskUnschedulableError")


def last_line(error: Exception) -> str:
    """Return the last line of an error's message, which is the cause in a traceback, in 300 characters."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[-1].strip().removeprefix("faithmeter.errors.InputError: ")[:300]
