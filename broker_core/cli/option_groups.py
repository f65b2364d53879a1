"""Parameters of a command that stand for several options: a listing request, a guard, a running broker.

A parameter of such a type is replaced by the arguments and options of its group before typer sees the command, and gets
their values as one object. So the options are alike in every command, a plugin's commands too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["OptionGroup", "expanded", "grouped", "option_group"]


@dataclass(frozen=True, slots=True)
class OptionGroup:
    """The parameters for typer, and the function that makes one value of theirs (by keyword)."""

    parameters: tuple[inspect.Parameter, ...]
    build: Callable[..., object]


_GROUPS: Final[dict[str, OptionGroup]] = {}


def option_group(kind: type | str, build: Callable[..., object], **parameters: tuple[object, object]) -> None:
    """Let parameters annotated with ``kind`` stand for ``parameters``: name to (annotation, default; ``...`` for none).

    One of them may stand for another group that is defined already.

    ``kind`` is a type, or ``module.name`` of a type that is too expensive to import for every command line.
    """
    _GROUPS[kind if isinstance(kind, str) else _name_of(kind)] = OptionGroup(
        tuple(
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if default is ... else default,
                annotation=annotation,
            )
            for name, (annotation, default) in parameters.items()
        ),
        build,
    )


def expanded(parameters: list[inspect.Parameter]) -> list[inspect.Parameter]:
    """The parameters, each group replaced by its own ones, all by keyword."""
    shown: list[inspect.Parameter] = []
    for parameter in parameters:
        group = _group_of(parameter)
        if group is None:
            shown.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
        else:
            shown += expanded(list(group.parameters))
    return shown


def grouped(parameters: list[inspect.Parameter], given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments for a command: typer's values, with the values of each group built into one."""
    values = dict(given)
    for parameter in parameters:
        group = _group_of(parameter)
        if group is not None:
            values = grouped(list(group.parameters), values)
            values[parameter.name] = group.build(
                **{one.name: values.pop(one.name) for one in group.parameters}
            )
    return values


def _group_of(parameter: inspect.Parameter) -> OptionGroup | None:
    kind = parameter.annotation
    return _GROUPS.get(_name_of(kind)) if isinstance(kind, type) else None


def _name_of(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
