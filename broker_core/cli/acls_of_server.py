"""ACLs of a Kafka server, for `broker-core kafka acls ... --bootstrap`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Literal

from broker_core.cli.printed_output import print_json, print_lines
from broker_core.cli.printed_results import print_results
from broker_core.errors import BrokerCoreError
from broker_core.kafka.acls import binding_text

if TYPE_CHECKING:
    from broker_core.cli.common_options import Invocation
    from broker_core.cli.options.kafka_server import GivenKafka
    from broker_core.kafka.acls import AclBinding, AclFilter

__all__ = ["add_at_server", "bindings_of_server", "print_bindings", "remove_at_server"]


def add_at_server(invocation: Invocation, server: GivenKafka, bindings: Sequence[AclBinding]) -> None:
    """Add bindings, each by itself."""

    async def add() -> None:
        async with server.connected(invocation) as client:
            results = await client.create_acls(bindings)
        print_results(results, binding_text, binding_text)

    asyncio.run(add())


def bindings_of_server(
    invocation: Invocation, server: GivenKafka, filters: Sequence[AclFilter]
) -> list[AclBinding]:
    """The bindings that any filter finds, each once, in order."""

    async def found() -> set[AclBinding]:
        async with server.connected(invocation) as client:
            return {each for one in filters for each in await client.describe_acls(one)}

    return sorted(asyncio.run(found()))


def print_bindings(bindings: Sequence[AclBinding], form: Literal["lines", "json"]) -> None:
    """Print bindings, one a line, or as JSON: a list of objects with Kafka's words."""
    if form == "lines":
        print_lines(binding_text(each) for each in bindings)
        return
    print_json(
        [
            {
                key: value.name if isinstance(value, IntEnum) else value
                for key, value in each._asdict().items()
            }
            for each in bindings
        ]
    )


def remove_at_server(invocation: Invocation, server: GivenKafka, bindings: Sequence[AclBinding]) -> None:
    """Remove bindings. A missing one is an error, and the others are removed all the same."""
    from broker_core.client.kafka import AclFilter

    async def remove() -> None:
        async with server.connected(invocation) as client:
            by_filter = await client.delete_acls(AclFilter(*each) for each in bindings)
        results = {each: by_filter[AclFilter(*each)] for each in bindings}
        for removed in results.values():
            print_results(removed, lambda each: f"removed {binding_text(each)}", binding_text)
        missing = [binding_text(each) for each, removed in results.items() if not removed]
        if missing:
            raise BrokerCoreError(f"There is no binding: {'; '.join(missing)}")

    asyncio.run(remove())
