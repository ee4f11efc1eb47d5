"""Command-line options generated from the fields of a config."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

import typer
from pydantic.fields import FieldInfo
from typer.models import OptionInfo

from ..config import FILLED, PRECISIONS, Config, Precision
from ..errors import unknown
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
Overlap = Annotated[
    int,
    typer.Option(
        min=0,
        help="read a text that is longer than the model's limit in windows that share this many tokens; "
        "0 truncates it",
    ),
]
Resume = Annotated[bool, typer.Option("--resume", help="continue an unfinished run")]
Restart = Annotated[
    bool, typer.Option("--restart", help="delete an unfinished or finished run and start over")
]
C = TypeVar("C", bound=Config)
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


Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="print results and errors only, no progress")]
Verbose = Annotated[
    bool, typer.Option("--verbose", help="also print messages of the libraries, and tracebacks of errors")
]


@dataclass(frozen=True)
class Loading:
    """Options on how a model is loaded and evaluated."""

    overlap: Overlap = 0
    device: Device = "auto"
    precision: PrecisionOption = "fp32"

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of `load`."""
        return {"device": self.device, "precision": as_precision(self.precision), "overlap": self.overlap}


def as_command(verb: Callable[..., Any]) -> Verb:
    """Return a verb with the options --quiet and --verbose, and with single options instead of groups.

    A group is a parameter whose type is a dataclass; its fields are options that several verbs share.
    """
    own = inspect.signature(verb, eval_str=True).parameters.values()
    groups: dict[str, Any] = {each.name: each.annotation for each in own if is_dataclass(each.annotation)}

    def call(*, quiet: bool = False, verbose: bool = False, **arguments: Any) -> Any:
        volume.quiet, volume.verbose = quiet and not verbose, verbose
        for name, group in groups.items():
            arguments[name] = group(**{field.name: arguments.pop(field.name) for field in fields(group)})
        return verb(**arguments)

    parameters: list[inspect.Parameter] = []
    for parameter in own:
        if parameter.name in groups:
            parameters += _fields(parameter.annotation)
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
    for name, annotation in (("quiet", Quiet), ("verbose", Verbose)):
        parameters.append(
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=annotation)
        )
    for parameter in parameters:
        _choose_panel(parameter)
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    call.__name__, call.__doc__ = verb.__name__, verb.__doc__
    return call


def _fields(group: Any) -> Iterator[inspect.Parameter]:
    """Yield a parameter for each field of a group of options."""
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        default = field.default if field.default_factory is MISSING else field.default_factory()
        yield inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[field.name]
        )


def _choose_panel(parameter: inspect.Parameter) -> None:
    """Put an option into its group of the help."""
    option = parameter.annotation.__metadata__[0]
    if not isinstance(option, OptionInfo):
        return
    # in `Annotated`, the first name of an option arrives as its default
    given = map(str, (option.default, *(option.param_decls or ())))
    names = [name for name in given if name.startswith("--")]
    name = names[0].lstrip("-").replace("-", "_") if names else parameter.name
    panels = (panel for panel, members in PANELS.items() if name in members.split())
    option.rich_help_panel = next(panels, OTHERS)


def as_precision(name: str) -> Precision:
    """Return the value of `--precision`; raise an InputError if it is unknown."""
    for precision in PRECISIONS:
        if name == precision:
            return precision
    raise unknown("--precision", name, PRECISIONS)


def configured(config: type[C], *, argument: str = "") -> Callable[[Callable[..., Any]], Verb]:
    """Return a decorator that replaces the first parameter, a config, with one option for each field.

    The field named by `argument` becomes the command's first argument, a checkpoint, instead of an option.
    """

    fields = {
        name: field
        for name, field in config.model_fields.items()
        if name != argument and FILLED not in field.metadata
    }

    def decorate(function: Callable[..., Any]) -> Verb:
        def verb(**arguments: Any) -> Any:
            values = {name: arguments.pop(name) for name in [argument, *fields] if name}
            return function(config(**values), **arguments)

        own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
        parameters = [_checkpoint(argument)] if argument else []
        parameters += [_parameter(name, field) for name, field in fields.items()]
        parameters += [parameter.replace(kind=parameter.KEYWORD_ONLY) for parameter in own]
        verb.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        verb.__annotations__ = {p.name: p.annotation for p in parameters}
        verb.__name__, verb.__doc__ = function.__name__, function.__doc__
        return verb

    return decorate


def _checkpoint(name: str) -> inspect.Parameter:
    text = "a folder with a saved classifier, or a hub name"
    kind = Annotated[str, typer.Argument(metavar="CHECKPOINT", help=text)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind)


def _parameter(name: str, field: FieldInfo) -> inspect.Parameter:
    choices = get_args(field.annotation)
    text = f"{field.description} ({', '.join(choices)})" if choices else field.description
    show_default = field.default != "" and field.default is not False
    option = typer.Option("--" + name.replace("_", "-"), help=text, show_default=show_default)
    kind: Any = type(field.default)  # the parser takes a choice as text; the config checks it
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=Annotated[kind, option]
    )
