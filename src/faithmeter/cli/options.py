"""Options of several verbs: their groups, and the command line made of a verb's parameters."""

from __future__ import annotations

import inspect
import runpy
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer
from typer.models import OptionInfo

from ..config import FILLED, PRECISIONS, Config, Precision
from ..errors import InputError, unknown
from .screen import volume

Device = Annotated[
    str,
    typer.Option(
        "--device",
        help="auto, cpu, cuda, cuda:1, mps, xpu; auto takes the machine's accelerator, else the CPU",
    ),
]
PrecisionOption = Annotated[
    str,
    typer.Option(
        "--precision",
        help="data type to evaluate in: fp32, bf16, fp16; auto: `measure` takes bf16 if it ranks words alike",
    ),
]
Unit = Annotated[
    str, typer.Option(help="what is scored and erased as one piece: token, word or sentence", metavar="UNIT")
]
Resume = Annotated[bool, typer.Option("--resume", help="continue an unfinished run")]
Restart = Annotated[
    bool, typer.Option("--restart", help="delete an unfinished or finished run and start over")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="print results and errors only, no progress")]
Verbose = Annotated[
    bool, typer.Option("--verbose", help="also print messages of the libraries, and tracebacks of errors")
]
Verb = Callable[..., Any]
PANELS = {
    "Data": "task data text label label_kind pair rationale valid test data_dir classes limit "
    "validation_limit file where",
    "Compute": "budget device precision processes workers engine address cpus_per_run gpus_per_run max_words "
    "max_evaluations host port allowed_host",
    "Output": "output resume restart json html csv page_only examples model_card gallery report_to "
    "dry_run require even_if_untrusted quiet verbose",
}
"""Groups of options in `--help`, by the option's name; all others are about the model and its methods."""
OTHERS = "Model and method"
OPTION = "option"
"""Key of an option in the metadata of a field."""


def option(default: Any, text: str, *names: str, **settings: Any) -> Any:
    """Declare an option as a field of a group; one with a list as its default may be repeated.

    Args:
        default: Value without the option.
        text: Text of the help.
        *names: Names on the command line; by default that of the field.
        **settings: Further settings of `typer.Option`.
    """
    metadata = {OPTION: typer.Option(*names, help=text, **settings)}
    if isinstance(default, list):
        return field(default_factory=default.copy, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Computing:
    """Options on where a model is evaluated, and in which numbers."""

    device: Device = "auto"
    precision: PrecisionOption = "fp32"

    @property
    def number_type(self) -> Precision:
        """Value of `--precision`; raise an InputError if it is unknown."""
        return as_precision(self.precision)


@dataclass(frozen=True)
class Loading(Computing):
    """Options on how a model is loaded and evaluated."""

    overlap: int = option(
        0,
        "read a text that is longer than the model's limit in windows that share this many tokens; 0 "
        "truncates it",
        min=0,
    )

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of `load`."""
        return {"device": self.device, "precision": self.number_type, "overlap": self.overlap}


def as_precision(name: str) -> Precision:
    """Return the value of `--precision`; raise an InputError if it is unknown."""
    for precision in PRECISIONS:
        if name == precision:
            return precision
    raise unknown("--precision", name, PRECISIONS)


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


def as_command(verb: Verb) -> Verb:
    """Return a verb with the options --quiet and --verbose, and with single options instead of groups.

    A group is a parameter whose type is a dataclass, whose fields are options that several verbs share, or a
    config, each field of which becomes an option. `Annotated[SomeConfig, "model"]` makes the field `model`
    the command's argument instead.
    """
    groups: dict[str, tuple[Any, list[str]]] = {}  # parameter → its type, the names of its options
    parameters: list[inspect.Parameter] = []
    for own in inspect.signature(verb, eval_str=True).parameters.values():
        group, *argument = get_args(own.annotation) or [own.annotation]
        if is_dataclass(group):
            options = [*_of_group(group)]
        elif isinstance(group, type) and issubclass(group, Config):
            options = [*_of_config(group, argument)]
        else:
            parameters.append(own.replace(kind=own.KEYWORD_ONLY))
            continue
        groups[own.name] = group, [each.name for each in options]
        parameters += options
    parameters += [_parameter("quiet", Quiet, False), _parameter("verbose", Verbose, False)]

    def call(*, quiet: bool = False, verbose: bool = False, **arguments: Any) -> Any:
        # before the groups are made: their errors are printed as loudly as asked for
        volume.quiet, volume.verbose = quiet and not verbose, verbose
        for name, (group, names) in groups.items():
            given = {each: arguments.pop(each) for each in names if each in arguments}
            arguments[name] = group(**given)
        return verb(**arguments)

    for parameter in parameters:
        _choose_panel(parameter)
    # typer reads the command line from the signature, and the help from the docstring
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    call.__name__, call.__doc__ = verb.__name__, verb.__doc__
    return call


def _parameter(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _of_group(group: Any) -> Iterator[inspect.Parameter]:
    """Yield a parameter for each field of a group of options."""
    hints = get_type_hints(group, include_extras=True)
    for each in fields(group):
        # dataclasses take a mutable default only from a factory, typer only as a value
        default = each.default if each.default_factory is MISSING else each.default_factory()
        hint = hints[each.name]
        yield _parameter(
            each.name, Annotated[hint, each.metadata[OPTION]] if each.metadata else hint, default
        )


def _of_config(config: type[Config], argument: list[str]) -> Iterator[inspect.Parameter]:
    """Yield a parameter for each field of a config that the user fills, first that of the argument."""
    for name in argument:
        text = "a folder with a saved classifier, or a hub name"
        yield _parameter(name, Annotated[str, typer.Argument(metavar="CHECKPOINT", help=text)])
    for name, each in config.model_fields.items():
        if name in argument or FILLED in each.metadata:  # what the run itself fills in is no option
            continue
        choices = get_args(each.annotation)
        text = f"{each.description} ({', '.join(choices)})" if choices else str(each.description)
        show_default = each.default != "" and each.default is not False  # these say nothing to a reader
        made = typer.Option("--" + name.replace("_", "-"), help=text, show_default=show_default)
        kind: Any = type(each.default)  # the parser takes a choice as text; the config checks it
        yield _parameter(name, Annotated[kind, made], each.default)


def _choose_panel(parameter: inspect.Parameter) -> None:
    """Put an option into its group of the help."""
    made = parameter.annotation.__metadata__[0]
    if not isinstance(made, OptionInfo):
        return
    # in `Annotated`, the first name of an option arrives as its default
    given = map(str, (made.default, *(made.param_decls or ())))
    names = [name for name in given if name.startswith("--")]
    name = names[0].lstrip("-").replace("-", "_") if names else parameter.name
    made.rich_help_panel = OTHERS
    for panel, members in PANELS.items():
        if name in members.split():
            made.rich_help_panel = panel
