"""A listing request as a parameter of a command: ``NAMESPACE``, ``--pattern``, ``--mode`` and ``--property`` in one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import typer

from broker_core.cli.option_groups import option_group
from broker_core.cli.options.option_values import parse_mode, parse_namespace, parse_properties
from broker_core.names import Mode, NamespaceName

__all__ = [
    "GivenQuestion",
    "HashOption",
    "NamespaceArgument",
    "NamespaceText",
    "given_question",
    "listing_request",
]

#: A namespace as text, for commands of the core, whose help then says `str`.
NamespaceText: TypeAlias = Annotated[
    str, typer.Argument(metavar="NAMESPACE", help="tenant/namespace", show_default=False)
]
NamespaceArgument: TypeAlias = Annotated[
    NamespaceName,
    typer.Argument(metavar="NAMESPACE", help="tenant/namespace", show_default=False, parser=parse_namespace),
]

HashOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--hash",
        metavar="HASH",
        help="The topics hash of the last answer: unchanged topics are not sent.",
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True)
class GivenQuestion:
    """The question of a command, as given: its pattern is not compiled."""

    namespace: NamespaceName
    mode: Mode
    pattern: str | None
    properties: dict[str, str]

    @property
    def shown(self) -> dict[str, Any]:
        """The namespace and the mode, as JSON shows them."""
        return {"namespace": str(self.namespace), "mode": self.mode.name}


def _complete_mode(incomplete: str) -> list[str]:
    """Completions for shells; the input may be in capitals too, as Pulsar writes the modes."""
    return [mode for mode in ("persistent", "non-persistent", "all") if mode.startswith(incomplete.lower())]


def given_question(
    namespace: NamespaceText,
    pattern: Annotated[
        str | None,
        typer.Option(
            "--pattern",
            metavar="REGEX",
            help="Only topics whose name matches in full, without scheme and partition suffix: "
            "'public/default/orders-.*'.",
            show_default=False,
        ),
    ] = None,
    mode: Annotated[
        str,
        typer.Option(
            "--mode",
            metavar="MODE",
            help="persistent, non-persistent or all.",
            autocompletion=_complete_mode,
        ),
    ] = "persistent",
    properties: Annotated[
        list[str] | None,
        typer.Option(
            "--property",
            metavar="KEY=VALUE",
            help="A property of the consumer that asks; may be repeated.",
            show_default=False,
        ),
    ] = None,
) -> GivenQuestion:
    """The question of the options. Raises :exc:`~broker_core.cli.options.option_values.UnusableQuestion`."""
    return GivenQuestion(parse_namespace(namespace), parse_mode(mode), pattern, parse_properties(properties))


def listing_request(question: GivenQuestion) -> Any:
    """The :class:`~broker_core.plugin_api.ListingRequest` of a question.

    Raises :exc:`~broker_core.errors.InvalidPattern`.
    """
    from broker_core.patterns import compile_pattern
    from broker_core.plugin_api import ListingRequest

    return ListingRequest(
        question.namespace,
        question.mode,
        pattern=None if question.pattern is None else compile_pattern(question.pattern),
        properties=question.properties,
    )


option_group(GivenQuestion, given_question)
option_group("broker_core.plugin_api.listing_request.ListingRequest", listing_request)  # needs Arrow and RE2
