"""The options that `list` and `explain` have in common: one question about a namespace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from broker_core.errors import BrokerCoreError

if TYPE_CHECKING:
    from broker_core.names import Mode, NamespaceName

__all__ = [
    "HashOption",
    "ModeOption",
    "NamespaceArgument",
    "PatternOption",
    "PropertyOption",
    "UnusableQuestion",
    "parse_mode",
    "parse_namespace",
    "parse_properties",
    "usable",
]


class UnusableQuestion(BrokerCoreError):
    """An option or an argument is no use; the message names it. A command ends with 2 then."""


@contextmanager
def usable() -> Iterator[None]:
    """Inside, a value that does not parse is one that somebody typed."""
    try:
        yield
    except BrokerCoreError as error:
        raise UnusableQuestion(str(error)) from error


def _complete_mode(incomplete: str) -> list[str]:
    """For shells; what is typed may be in capitals too, as Pulsar writes the modes."""
    return [mode for mode in ("persistent", "non-persistent", "all") if mode.startswith(incomplete.lower())]


NamespaceArgument = Annotated[
    str, typer.Argument(metavar="NAMESPACE", help="tenant/namespace", show_default=False)
]
PatternOption = Annotated[
    str | None,
    typer.Option(
        "--pattern",
        metavar="REGEX",
        help="Only topics whose name matches in full, without scheme and partition suffix: 'public/default/orders-.*'.",
        show_default=False,
    ),
]
ModeOption = Annotated[
    str,
    typer.Option(
        "--mode", metavar="MODE", help="persistent, non-persistent or all.", autocompletion=_complete_mode
    ),
]
PropertyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--property",
        metavar="KEY=VALUE",
        help="A property of the consumer that asks; may be repeated.",
        show_default=False,
    ),
]
HashOption = Annotated[
    str | None,
    typer.Option(
        "--hash",
        metavar="HASH",
        help="The topics hash of the last answer: unchanged topics are not sent.",
        show_default=False,
    ),
]


def parse_namespace(text: str) -> NamespaceName:
    """``tenant/namespace``; raises :exc:`UnusableQuestion`."""
    from broker_core.names import NamespaceName

    with usable():
        return NamespaceName.parse(text)


def parse_mode(text: str) -> Mode:
    """The mode of ``--mode``; raises :exc:`UnusableQuestion`."""
    from broker_core.names import Mode

    with usable():
        return Mode.parse(text)


def parse_properties(pairs: Sequence[str] | None, *, option: str = "--property") -> dict[str, str]:
    """Properties of ``KEY=VALUE``; the last of a repeated key counts, and a value may hold ``=``."""
    properties: dict[str, str] = {}
    for pair in pairs or ():
        key, separator, value = pair.partition("=")
        if not separator or not key:
            raise UnusableQuestion(f"{option} {pair!r}: expected KEY=VALUE")
        properties[key] = value
    return properties
