"""Parameters of a command that stand for several options: a listing request, a guard, a running broker.

The options of a group are the fields of a dataclass, or the parameters of a function that makes a value of another
type: each is annotated as typer's own parameters are, and names its option. A parameter of such a type is replaced by
them before typer sees the command, and gets their values as one object. So the options are alike in every command, a
plugin's commands too. A group may have another one among its options.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from typing import Any, Final

from typer.models import ParameterInfo

__all__ = ["expanded", "grouped", "option_group"]

_BUILDERS: Final[dict[str, Callable[..., object]]] = {}


def option_group(kind: type | str, build: Callable[..., object]) -> None:
    """Let each parameter annotated with ``kind`` stand for the options of ``build``, a function that makes its value.

    ``kind`` is a type, or ``module.name`` of a type that is too expensive to import for every command line.
    """
    _BUILDERS[kind if isinstance(kind, str) else _name_of(kind)] = build


def expanded(parameters: list[inspect.Parameter], prefix: str = "") -> list[inspect.Parameter]:
    """The parameters, each group replaced by its own parameters, all keyword-only and with unique names."""
    shown: list[inspect.Parameter] = []
    for parameter in parameters:
        name, build = f"{prefix}{parameter.name}", _builder(parameter)
        if build is None:
            shown.append(parameter.replace(name=name, kind=inspect.Parameter.KEYWORD_ONLY))
        else:
            shown += expanded(_options(build), f"{name}__")
    return shown


def grouped(
    parameters: list[inspect.Parameter], given: Mapping[str, Any], prefix: str = ""
) -> dict[str, Any]:
    """The arguments for a command: typer's values, with the values of each group built into one."""
    values: dict[str, Any] = {}
    for parameter in parameters:
        name, build = f"{prefix}{parameter.name}", _builder(parameter)
        if build is not None:
            values[parameter.name] = build(**grouped(_options(build), given, f"{name}__"))
        elif name in given:
            values[parameter.name] = given[name]
    return values


def _builder(parameter: inspect.Parameter) -> Callable[..., object] | None:
    """The function, or the dataclass, whose options a parameter stands for."""
    kind = parameter.annotation
    if not isinstance(kind, type) or isinstance(parameter.default, ParameterInfo):
        return None  # a parameter whose default is typer's own is one option, with a parser of its type
    return _BUILDERS.get(_name_of(kind), kind if is_dataclass(kind) else None)


def _options(build: Callable[..., object]) -> list[inspect.Parameter]:
    hints = typing.get_type_hints(build, include_extras=True)
    return [
        parameter.replace(annotation=hints[name])
        for name, parameter in inspect.signature(build).parameters.items()
    ]


def _name_of(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
