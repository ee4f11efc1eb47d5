"""Options that choose who executes the work: processes of this machine, or a Ray cluster."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from ..errors import InputError, unknown
from .options import option

ENGINES = ("local", "ray")


@dataclass(frozen=True)
class Workers:
    """Options that choose who executes the work."""

    engine: str = option("local", "local: this machine; ray: a Ray cluster (needs the extra ray)", "--engine")
    address: str = option(
        "",
        "HOST:PORT of the Ray cluster's head, or auto on one of its machines; default: $RAY_ADDRESS, or a "
        "cluster of this machine alone",
    )
    cpus_per_run: float | None = option(
        None, "CPUs that Ray reserves for each worker (1)", min=0.0, show_default=False
    )
    gpus_per_run: float | None = option(
        None,
        "GPUs that Ray reserves for each worker; 0.5: two share one (1 if the cluster has any, else 0)",
        min=0.0,
        show_default=False,
    )

    @property
    def on_ray(self) -> bool:
        """Whether the engine is Ray.

        Raises:
            InputError: The engine is unknown, an option of Ray is given for another one, or Ray cannot
                reserve the GPUs.
        """
        gpus = self.gpus_per_run
        if self.engine not in ENGINES:
            raise unknown("--engine", self.engine, ENGINES)
        of_ray = {"address": self.address or None, "cpus-per-run": self.cpus_per_run, "gpus-per-run": gpus}
        for name, value in of_ray.items():
            if value is not None and self.engine != "ray":
                raise InputError(f"--{name} {value} goes with --engine ray; add that, or leave --{name} out")
        if gpus is not None and not gpus <= 1 and gpus % 1:  # nan and inf, too
            raise InputError(
                f"--gpus-per-run {gpus:g}; expected a part of one GPU, such as 0.5, or a whole number of "
                "GPUs: give 1 or a whole number"
            )
        return self.engine == "ray"


imported: list[str] = []
"""Files and modules given with --import, which the workers of a cluster import too."""


def import_all(names: Sequence[str]) -> None:
    """Import Python files and modules that register the user's own methods, each once in a process.

    Raises:
        InputError: One of them cannot be imported, or ends the program.
    """
    for name in names:
        if name not in imported:
            _import(name)
            imported.append(name)


def _import(name: str) -> None:
    path = Path(name)  # a file is run, so that it needs no package around it
    try:
        if path.suffix == ".py":
            runpy.run_path(str(path), run_name=path.stem)
        else:
            sys.path.append(str(Path.cwd()))  # at the end, so that no file there shadows a library
            import_module(name)
    except SystemExit as stop:
        raise InputError(
            f"--import {name}: it ends the program by sys.exit({stop.code!r}); expected code that only "
            "registers methods or metrics: remove the call, or guard it by if __name__ == '__main__'"
        ) from stop
    except Exception as error:  # the user's code may raise anything
        raise InputError(f"--import {name}: {type(error).__name__}: {error}") from error
