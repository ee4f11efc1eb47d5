"""`faithmeter serve`: a page and a JSON API to probe one model, on this machine."""

from __future__ import annotations

import os
import re
import socket
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..config import MeasureConfig
from ..errors import InputError
from .explain import Checkpoint
from .measure import DataDir, TaskName
from .screen import bars, console, quiet

if TYPE_CHECKING:
    from fastapi import FastAPI

    from ..serve.admission import Served

GRACE_SECONDS = 3
Allowed = Annotated[
    list[str],
    typer.Option("--allowed-host", help="one more name that the page may be asked by; may be repeated"),
]


def serve(
    checkpoint: Checkpoint,
    task: TaskName = "",
    data_dir: DataDir = None,
    host: Annotated[str, typer.Option(help="the address to listen on; the default lets no one else in")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one")] = 8000,
    allowed: Allowed = [],  # noqa: B006
    max_words: Annotated[int, typer.Option(min=1, help="of a text; longer ones are refused")] = 1000,
    max_evaluations: Annotated[int, typer.Option(min=1, help="of the model, in one request")] = 50_000,
) -> None:
    """Open a page where a click masks a word, and explanations are shown and measured on the spot.

    Example: faithmeter serve runs/train-bAbI-1-half-0-…
    """
    if any(find_spec(module) is None for module in ("fastapi", "uvicorn")):
        raise InputError("serve needs FastAPI and uvicorn; pip install 'faithmeter[serve]'")
    from ..serve.app import LOOPBACK, create_app
    from ..serve.limits import Limits

    hosts = [*LOOPBACK, _name(host), *map(_pattern, allowed)]
    with _listening(host, port) as listening:
        served = _served(checkpoint, MeasureConfig(task=task), data_dir)
        app = create_app(served, limits=Limits(words=max_words, evaluations=max_evaluations), hosts=hosts)
        shown = f"http://{'localhost' if host in LOOPBACK else _name(host)}:{listening.getsockname()[1]}"
        console.print(f"the page: {shown}  (Ctrl-C stops it)")
        if host not in LOOPBACK:
            console.print(f"answers as {', '.join(hosts)}; --allowed-host adds names")
        _run(app, listening)


def _served(checkpoint: str, config: MeasureConfig, data_dir: Path | None) -> Served:
    """The model, with its task's examples and in-distribution tests where its task is known."""
    from ..models.classifier import load
    from ..runs import run as runs
    from ..serve.admission import Served, examples_of

    quiet()
    clf, name = load(checkpoint), Path(checkpoint).resolve().name
    if not (config.task or runs.trained_as(checkpoint)):
        console.print("not known what it was trained on, so without p-values; --task names it")
        return Served(clf, name)
    measured, config = runs.measured_task(clf, checkpoint, config, data_dir)
    with bars() as progress:
        bar = progress.add_task("check", total=None, note="", visible=False)

        def moved(done: int, total: int) -> None:
            progress.update(bar, advance=done, total=total, visible=True)

        tests = runs.fitted_tests(clf, checkpoint, measured, config, progress=moved)
    return Served(clf, name, measured, tests, examples_of(measured))


def _listening(host: str, port: int) -> socket.socket:
    """A socket, before the model is loaded: a port that is taken should be known at once.

    Its protocol is named: asyncio lets small packets go without delay (40 ms) only where it sees TCP.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, proto=socket.IPPROTO_TCP)[0]
        listening = socket.socket(family, kind, protocol)
        try:
            if os.name == "posix":  # a port that was ours a moment ago is free; elsewhere it means more
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen()
        except OSError:
            listening.close()
            raise
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(
            f"cannot listen on {host}, port {port}: {why}; try another --port or --host"
        ) from error
    return listening


def _name(host: str) -> str:
    """As browsers write it."""
    return f"[{host}]" if ":" in host else host


def _pattern(host: str) -> str:
    if host != "*" and not re.fullmatch(r"(\*\.)?[\w.-]+|\[[\da-fA-F:]+\]", host):
        raise InputError(
            f"--allowed-host {host!r}; expected a name such as box.example.com, *.example.com or *"
        )
    return host


def _run(app: FastAPI, listening: socket.socket) -> None:
    """Answer until Ctrl-C. Running work is stopped first, as connections end with their work."""
    import uvicorn

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            app.state.desk.close()
            await super().shutdown(sockets)

    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    with suppress(KeyboardInterrupt):
        Server(config).run(sockets=[listening])
    console.print("stopped")
