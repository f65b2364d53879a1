"""A parameter that stands for several options: the options for typer, and the value for the command."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Annotated

import typer

from broker_core.cli.option_groups import expanded, grouped, option_group


@dataclass(frozen=True)
class Span:
    low: int
    high: int


option_group(
    Span,
    Span,
    low=(Annotated[int, typer.Option("--low")], 1),
    high=(Annotated[int, typer.Option("--high")], ...),
)


def _parameters(function: object) -> list[inspect.Parameter]:
    return list(inspect.signature(function, eval_str=True).parameters.values())  # type: ignore[arg-type]


def shift(name: str, span: Span, *, by: int = 0) -> None:
    raise AssertionError(name, span, by)


def test_a_group_stands_where_its_parameter_stood() -> None:
    shown = expanded(_parameters(shift))
    assert [parameter.name for parameter in shown] == ["name", "low", "high", "by"]
    assert {parameter.kind for parameter in shown} == {inspect.Parameter.KEYWORD_ONLY}
    assert [shown[1].default, shown[2].default] == [1, inspect.Parameter.empty]


def test_a_command_gets_one_value() -> None:
    given = {"name": "x", "low": 3, "high": 9, "by": 2}
    assert grouped(_parameters(shift), given) == {"name": "x", "span": Span(3, 9), "by": 2}
    assert given["low"] == 3


def test_other_parameters_stay_as_they_are() -> None:
    def plain(name: str, numbers: Annotated[list[int], []] = []) -> None:  # noqa: B006 - never called
        raise AssertionError(name, numbers)

    assert [parameter.name for parameter in expanded(_parameters(plain))] == ["name", "numbers"]
    assert grouped(_parameters(plain), {"name": "x", "numbers": [1]}) == {"name": "x", "numbers": [1]}


@dataclass(frozen=True)
class Named:
    span: Span
    of: str


option_group(Named, Named, span=(Span, Span(0, 0)), of=(Annotated[str, typer.Option("--of")], "it"))


def shift_named(named: Named) -> None:
    raise AssertionError(named)


def test_a_group_in_a_group() -> None:
    parameters = _parameters(shift_named)
    assert [parameter.name for parameter in expanded(parameters)] == ["low", "high", "of"]
    assert grouped(parameters, {"low": 3, "high": 9, "of": "x"}) == {"named": Named(Span(3, 9), "x")}
