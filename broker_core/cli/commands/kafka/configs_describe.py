"""`broker-core kafka configs describe`: the configs of topics, or of a node."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import typer

from broker_core.cli.common_options import Invocation
from broker_core.cli.help_examples import examples
from broker_core.cli.options.kafka_configs import NodeOption, config_resources, shown_resource
from broker_core.cli.options.kafka_server import GivenKafka
from broker_core.cli.options.kafka_topics import TopicsArgument

__all__ = ["EXAMPLES", "describe_configs"]

EXAMPLES: Final = examples(
    "broker-core kafka configs describe orders --bootstrap kafka:9092",
    "broker-core kafka configs describe orders --changed --format json",
    "broker-core kafka configs describe --node 1",
)


async def describe_configs(
    invocation: Invocation,
    topics: TopicsArgument = None,
    *,
    node: NodeOption = None,
    changed: Annotated[
        bool,
        typer.Option("--changed", help="Only configs that are not Kafka's defaults.", show_default=False),
    ] = False,
    form: Annotated[Literal["table", "json"], typer.Option("--format", help="How to print it.")] = "table",
    server: GivenKafka,
) -> None:
    """Show the configs of topics, or of a node."""
    from broker_core.cli.printed_output import print_rows
    from broker_core.cli.printed_results import succeeded

    resources = config_resources(topics, node)
    async with server.connected(invocation) as client:
        result = await client.describe_configs(resources)
    with succeeded(result, shown_resource) as found:
        rows: list[dict[str, Any]] = [
            {
                "resource": shown_resource(resource),
                "name": entry.name,
                "value": entry.value,
                "source": entry.source.name,
                "read_only": entry.is_read_only,
                "sensitive": entry.is_sensitive,
            }
            for resource, config in found.items()
            for entry in config.values()
            if not (changed and entry.is_default)
        ]
        print_rows(["resource", "name", "value", "source"], rows, form)
