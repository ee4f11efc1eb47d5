"""A stand-in for Ray in one process: tasks are functions, actors are objects, and losses happen on demand."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import pytest


class RayError(Exception):
    pass


class RayTaskError(RayError):
    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


class RayActorError(RayError):
    pass


class Ref:
    """The result of a call, or its error, computed at once."""

    def __init__(self, function: Callable[..., Any], arguments: Iterable[Any]) -> None:
        self.error: Exception | None = None
        try:
            self.value = function(*(get(value) if isinstance(value, Ref) else value for value in arguments))
        except RayError as error:
            self.error = error
        except Exception as error:
            self.error = RayTaskError(error)


def get(refs: Any) -> Any:
    if isinstance(refs, list):
        return [get(ref) for ref in refs]
    if refs.error is not None:
        raise refs.error
    return refs.value


class Remote:
    settings: ClassVar[list[dict[str, Any]]] = []
    """Options of all tasks and actors, in the order of their calls."""

    def __init__(self, target: Callable[..., Any], lost: Callable[..., bool], retries: int = 0) -> None:
        self.target, self.lost, self.retries = target, lost, retries

    def options(self, **settings: Any) -> Any:
        """Return an object with `remote` alone, as Ray does."""
        self.settings.append(settings)
        copy = Remote(self.target, self.lost, settings.get("max_retries", 0))
        return SimpleNamespace(remote=copy.remote)

    def remote(self, *arguments: Any) -> Any:
        if not isinstance(self.target, type):

            def call(*values: Any) -> Any:
                for _ in range(1 + self.retries):
                    if not self.lost(self.target, values):
                        return self.target(*values)
                raise RayError("the worker died")

            return Ref(call, arguments)
        return Actor(self.target(*(get(a) if isinstance(a, Ref) else a for a in arguments)), self.lost)


class Actor:
    def __init__(self, instance: Any, lost: Callable[..., bool]) -> None:
        self.instance, self.lost = instance, lost

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.instance, name)

        def call(*values: Any) -> Any:
            if self.lost(method, values):
                raise RayActorError("the actor died")
            return method(*values)

        return SimpleNamespace(remote=lambda *arguments: Ref(call, arguments))


def install(
    monkeypatch: pytest.MonkeyPatch, *, lost: Callable[..., bool] = lambda *_: False, cpus: float = 2.0
) -> ModuleType:
    """Replace the module `ray`; a call of a worker for which `lost(function, arguments)` holds is lost."""
    monkeypatch.setattr(Remote, "settings", [])
    ray, strategies = ModuleType("ray"), ModuleType("ray.util.scheduling_strategies")

    def remote(target: Callable[..., Any] | None = None, **settings: Any) -> Any:
        """Like Ray's decorator, with options or without."""
        if target is None:
            Remote.settings.append(settings)
            return lambda target: Remote(target, lost, settings.get("max_retries", 0))
        return Remote(target, lost)

    node = {"Alive": True, "NodeID": "1", "NodeManagerHostname": "here", "Resources": {"CPU": cpus}}
    ray.__dict__.update(
        exceptions=SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError, RayActorError=RayActorError),
        remote=remote,
        put=lambda value: Ref(lambda: value, ()),
        get=get,
        wait=lambda refs, num_returns=1, timeout=None: (refs[:num_returns], refs[num_returns:]),
        nodes=lambda: [node],
        cluster_resources=lambda: {"CPU": cpus},
        kill=lambda actor: None,
    )
    strategies.NodeAffinitySchedulingStrategy = lambda node, soft: node  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setitem(sys.modules, "ray.util", ModuleType("ray.util"))
    monkeypatch.setitem(sys.modules, "ray.util.scheduling_strategies", strategies)
    return ray
