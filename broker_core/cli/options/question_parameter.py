"""A listing request as a parameter of a command: ``NAMESPACE``, ``--pattern``, ``--mode`` and ``--property`` in one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from broker_core.cli.option_groups import option_group
from broker_core.cli.options.question import (
    ModeOption,
    PatternOption,
    PropertyOption,
    parse_mode,
    parse_namespace,
    parse_properties,
)
from broker_core.names import NamespaceName

if TYPE_CHECKING:
    from broker_core.plugin_api import ListingRequest

__all__ = ["NamespaceArgument", "listing_request"]

NamespaceArgument: TypeAlias = Annotated[
    NamespaceName,
    typer.Argument(metavar="NAMESPACE", help="tenant/namespace", show_default=False, parser=parse_namespace),
]


def listing_request(
    namespace: NamespaceName, pattern: str | None, mode: str, properties: list[str] | None
) -> ListingRequest:
    """The listing request of the options.

    Raises :exc:`~broker_core.cli.options.question.UnusableQuestion`, and :exc:`~broker_core.errors.InvalidPattern`.
    """
    from broker_core.patterns import compile_pattern
    from broker_core.plugin_api import ListingRequest

    return ListingRequest(
        namespace,
        parse_mode(mode),
        pattern=None if pattern is None else compile_pattern(pattern),
        properties=parse_properties(properties),
    )


option_group(
    "broker_core.plugin_api.listing_request.ListingRequest",  # which needs Arrow and RE2
    listing_request,
    namespace=(NamespaceArgument, ...),
    pattern=(PatternOption, None),
    mode=(ModeOption, "persistent"),
    properties=(PropertyOption, None),
)
