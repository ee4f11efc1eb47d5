"""The options of a verb from the fields of its config, so that each is defined once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import Field
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from ..config import Config

C = TypeVar("C", bound=Config)
Verb = Callable[..., Any]


def configured(config: type[C]) -> Callable[[Callable[..., Any]], Verb]:
    """Give a verb whose first parameter is a config one option for each field of it."""

    def decorate(function: Callable[..., Any]) -> Verb:
        hints = get_type_hints(config)
        names = [option.name for option in config.options()]

        def verb(**arguments: Any) -> Any:
            values = {name: arguments.pop(name) for name in names}
            return function(config(**values), **arguments)

        own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
        parameters = [_parameter(option, hints[option.name]) for option in config.options()]
        parameters += [parameter.replace(kind=parameter.KEYWORD_ONLY) for parameter in own]
        verb.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        verb.__annotations__ = {p.name: p.annotation for p in parameters}
        verb.__name__, verb.__doc__ = function.__name__, function.__doc__
        return verb

    return decorate


def _parameter(option: Field[Any], hint: Any) -> inspect.Parameter:
    text, choices = option.metadata["help"], option.metadata["choices"]
    text = f"{text} ({', '.join(choices)})" if choices else text
    flag = "--" + option.name.replace("_", "-")
    annotated = Annotated[
        hint, typer.Option(flag, help=text, show_default=option.default != "" and option.default is not False)
    ]
    return inspect.Parameter(
        option.name, inspect.Parameter.KEYWORD_ONLY, default=option.default, annotation=annotated
    )
