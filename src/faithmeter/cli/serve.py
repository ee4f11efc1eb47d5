"""`faithmeter serve`: a web page and a JSON API that explain and measure single texts."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ..config import MeasureConfig
from ..errors import InputError
from ..serve import Limits
from .explain import Checkpoint
from .lean import load_lean
from .measure import TrainedWithOption, as_strategy
from .options import Computing, option
from .progress import phases
from .screen import console, quiet
from .texts import ClassName, DataDir, TaskName

if TYPE_CHECKING:
    from ..serve.admission import ServedModel

ANY_ADDRESS = ("0.0.0.0", "::")
"""Addresses that stand for all network interfaces; not every browser can open them as a URL."""


@dataclass(frozen=True)
class Training:
    """Options on what the model was trained on, where nothing beside it tells."""

    task: TaskName = ""
    data_dir: DataDir = None
    trained_with: TrainedWithOption = ""
    name: ClassName = None


@dataclass(frozen=True)
class Listening:
    """Options on where the server listens, and how much it does for a request."""

    host: str = option("127.0.0.1", "address to listen on; any but this machine's own requires a token")
    port: int = option(8000, "port to listen on; 0 chooses a free one", min=0, max=65535)
    allowed: list[str] = option([], "additional Host header to accept; may be repeated", "--allowed-host")
    max_words: int = option(Limits.max_words, "maximum words in a text", min=1)
    max_evaluations: int = option(Limits.max_evaluations, "model evaluations allowed per request", min=1)


def serve(checkpoint: Checkpoint, training: Training, computing: Computing, listening: Listening) -> None:
    """Serve a page that masks, explains and measures a text as you type it.

    Example: faithmeter serve runs/train-bAbI-1-half-0-…
    """
    if not all(map(find_spec, ("fastapi", "uvicorn"))):
        raise InputError("serve needs FastAPI and uvicorn; pip install 'faithmeter[serve]'")
    from ..serve.app import LOOPBACK_NAMES, create_app
    from ..serve.server import is_loopback, listen, run_server

    host = listening.host
    hosts = [*LOOPBACK_NAMES, _format_host(host), *map(_check_pattern, listening.allowed)]
    with listen(host, listening.port) as socket:  # before the model is loaded: a busy port is told at once
        local = is_loopback(socket)  # of the socket, as a host name may mean any address
        token = None if local else secrets.token_urlsafe(32)
        model = _load_model(checkpoint, training, computing)
        limits = Limits(max_words=listening.max_words, max_evaluations=listening.max_evaluations)
        app = create_app(model, limits=limits, hosts=hosts, token=token)
        name = "localhost" if local or host in ANY_ADDRESS else _format_host(host)
        address = f"http://{name}:{socket.getsockname()[1]}"
        console.print(
            f"the page: {address}{f'/?token={token}' if token else ''}  (Ctrl-C stops it)", soft_wrap=True
        )
        if token:
            console.print(
                f"other machines can reach {host}, so each request needs the token of this link, which is "
                f"shown only once; connections are not encrypted. Accepted host names: {', '.join(hosts)} "
                "(--allowed-host adds others)",
                soft_wrap=True,
            )
        run_server(app, socket)
        console.print("stopped")


def _load_model(checkpoint: str, training: Training, computing: Computing) -> ServedModel:
    """Load a model, with the in-distribution tests and examples of its task if the task is known."""
    from ..runs.fitted_tests import load_tests
    from ..runs.measured import Origin, measured_task
    from ..serve.admission import ServedModel, choose_examples

    config = MeasureConfig(
        task=training.task,
        label=training.name or "",
        precision=computing.number_type,
        strategy=as_strategy(training.trained_with),
    )
    quiet()
    clf = load_lean(
        checkpoint, device=computing.device, precision=config.precision, label=config.label or None
    )
    name = Path(checkpoint).resolve().name
    with phases() as advance:
        tests = load_tests(clf, checkpoint, config, data_dir=training.data_dir, progress=advance)
    if tests is None:
        console.print("the training task is not known, so there are no p-values; name it with --task")
        return ServedModel(clf, name)
    try:
        measured, *_ = measured_task(clf, checkpoint, config, Origin(training.data_dir))
    except InputError:  # the data were moved; explaining single texts does not need them
        return ServedModel(clf, name, None, tests)
    return ServedModel(clf, name, measured, tests, choose_examples(measured))


def _format_host(host: str) -> str:
    """Return a host as it appears in a URL: an IPv6 address in brackets, any other unchanged."""
    return f"[{host}]" if ":" in host else host


def _check_pattern(host: str) -> str:
    # Starlette takes a star only before the first dot, and answers any other by an assertion
    if host != "*" and not re.fullmatch(r"(\*\.)?[\w.-]+|\[[\da-fA-F:]+\]", host):
        raise InputError(
            f"--allowed-host {host!r}; expected a name such as box.example.com, *.example.com or *"
        )
    return host
