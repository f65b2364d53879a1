"""A parameter that stands for several options: the options for typer, and the value for the command."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Annotated

import typer

from broker_core.cli.option_groups import expanded, grouped, option_group


@dataclass(frozen=True)
class Span:
    low: Annotated[int, typer.Option("--low")]
    high: Annotated[int, typer.Option("--high")] = 9


class Half:
    """A type whose options are those of a function."""

    def __init__(self, end: int) -> None:
        self.end = end


def _half(twice: Annotated[int, typer.Option("--twice")] = 2) -> Half:
    return Half(twice // 2)


option_group(Half, _half)


def _parameters(function: object) -> list[inspect.Parameter]:
    return list(inspect.signature(function, eval_str=True).parameters.values())  # type: ignore[arg-type]


def shift(name: str, span: Span, *, by: int = 0) -> None:
    raise AssertionError(name, span, by)


def test_a_group_stands_where_its_parameter_stood() -> None:
    shown = expanded(_parameters(shift))
    assert [parameter.name for parameter in shown] == ["name", "span__low", "span__high", "by"]
    assert {parameter.kind for parameter in shown} == {inspect.Parameter.KEYWORD_ONLY}
    assert [shown[1].default, shown[2].default] == [inspect.Parameter.empty, 9]


def test_a_command_gets_one_value() -> None:
    given = {"name": "x", "span__low": 3, "span__high": 9, "by": 2}
    assert grouped(_parameters(shift), given) == {"name": "x", "span": Span(3, 9), "by": 2}


def test_other_parameters_stay_as_they_are() -> None:
    def plain(name: str, numbers: Annotated[list[int], []] = []) -> None:  # noqa: B006 - never called
        raise AssertionError(name, numbers)

    assert [parameter.name for parameter in expanded(_parameters(plain))] == ["name", "numbers"]
    assert grouped(_parameters(plain), {"name": "x", "numbers": [1]}) == {"name": "x", "numbers": [1]}


def test_a_dataclass_with_a_parser_is_one_option() -> None:
    """A command of a plugin may have a type of its own so, whose fields are no options."""

    def parsed(
        span: Span = typer.Option(..., parser=lambda text: Span(int(text))),  # noqa: B008 - before Annotated
    ) -> None:
        raise AssertionError(span)

    (shown,) = expanded(_parameters(parsed))
    assert (shown.name, shown.annotation) == ("span", Span)
    assert grouped(_parameters(parsed), {"span": Span(1)}) == {"span": Span(1)}


@dataclass(frozen=True)
class Named:
    span: Span
    of: Annotated[str, typer.Option("--of")] = "it"


def shift_named(named: Named, half: Half, span: Span) -> None:
    raise AssertionError(named, half, span)


def test_a_group_in_a_group() -> None:
    parameters = _parameters(shift_named)
    names = ["named__span__low", "named__span__high", "named__of", "half__twice", "span__low", "span__high"]
    assert [parameter.name for parameter in expanded(parameters)] == names
    values = grouped(parameters, dict(zip(names, (3, 9, "x", 8, 1, 2), strict=True)))
    assert (values["named"], values["half"].end, values["span"]) == (Named(Span(3, 9), "x"), 4, Span(1, 2))
