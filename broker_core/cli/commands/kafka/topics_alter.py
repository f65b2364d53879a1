"""`broker-core kafka topics alter`: more partitions for topics."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from broker_core.cli.common_options import Invocation
from broker_core.cli.help_examples import examples
from broker_core.cli.options.kafka_server import GivenKafka
from broker_core.cli.options.kafka_topics import IfExistsOption, missing_topics
from broker_core.counted import counted

__all__ = ["EXAMPLES", "alter_topics"]

EXAMPLES: Final = examples("broker-core kafka topics alter orders --partitions 6 --bootstrap kafka:9092")


async def alter_topics(
    invocation: Invocation,
    topics: Annotated[list[str], typer.Argument(metavar="TOPIC...", help="Names.", show_default=False)],
    *,
    partitions: Annotated[
        int, typer.Option(metavar="N", help="How many partitions in all.", min=1, show_default=False)
    ],
    validate_only: Annotated[
        bool,
        typer.Option("--validate-only", help="Change nothing, say what would happen.", show_default=False),
    ] = False,
    if_exists: IfExistsOption = False,
    server: GivenKafka,
) -> None:
    """Add partitions to topics."""
    from broker_core.cli.printed_results import print_results

    async with server.connected(invocation) as client:
        result = await client.create_partitions(
            dict.fromkeys(topics, partitions), validate_only=validate_only
        )
    said = "would have" if validate_only else "has"
    print_results(
        result,
        lambda name: f"{name} {said} {counted(partitions, 'partition')}",
        passed=missing_topics(if_exists),
    )
