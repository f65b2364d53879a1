"""`broker-core kafka configs alter`: changing some configs of topics, or of a node."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from broker_core.cli.common_options import Invocation
from broker_core.cli.help_examples import examples
from broker_core.cli.options.kafka_configs import NodeOption, config_resources, shown_resource
from broker_core.cli.options.kafka_server import GivenKafka
from broker_core.cli.options.kafka_topics import TopicsArgument
from broker_core.cli.options.option_values import UnusableQuestion, parse_properties

__all__ = ["EXAMPLES", "alter_configs"]

EXAMPLES: Final = examples(
    "broker-core kafka configs alter orders --set retention.ms=3600000 --bootstrap kafka:9092",
    "broker-core kafka configs alter orders --delete retention.ms --append cleanup.policy=compact",
)


def _pairs(option: str, metavar: str, text: str) -> object:
    return typer.Option(option, metavar=metavar, help=text, show_default=False)


async def alter_configs(
    invocation: Invocation,
    topics: TopicsArgument = None,
    *,
    node: NodeOption = None,
    values: Annotated[
        list[str] | None, _pairs("--set", "KEY=VALUE", "Give a config a value; may be repeated.")
    ] = None,
    deleted: Annotated[
        list[str] | None, _pairs("--delete", "KEY", "Reset a config to its default; may be repeated.")
    ] = None,
    appended: Annotated[
        list[str] | None, _pairs("--append", "KEY=VALUE", "Add a value to a list; may be repeated.")
    ] = None,
    subtracted: Annotated[
        list[str] | None, _pairs("--subtract", "KEY=VALUE", "Take a value from a list; may be repeated.")
    ] = None,
    validate_only: Annotated[
        bool,
        typer.Option("--validate-only", help="Change nothing, say what would happen.", show_default=False),
    ] = False,
    server: GivenKafka,
) -> None:
    """Change some configs of topics, or of a node, and leave the others."""
    from broker_core.cli.printed_results import print_results
    from broker_core.client.kafka import AlterConfigOp, ConfigOperation

    changes = [
        *(AlterConfigOp(key, value) for key, value in parse_properties(values, option="--set").items()),
        *(AlterConfigOp(key, None, ConfigOperation.DELETE) for key in deleted or ()),
        *(
            AlterConfigOp(key, value, ConfigOperation.APPEND)
            for key, value in parse_properties(appended, option="--append").items()
        ),
        *(
            AlterConfigOp(key, value, ConfigOperation.SUBTRACT)
            for key, value in parse_properties(subtracted, option="--subtract").items()
        ),
    ]
    if not changes:
        raise UnusableQuestion("nothing to change: give --set, --delete, --append or --subtract")
    resources = config_resources(topics, node)
    async with server.connected(invocation) as client:
        result = await client.incremental_alter_configs(
            dict.fromkeys(resources, changes), validate_only=validate_only
        )
    said = "would change" if validate_only else "changed"
    print_results(result, lambda resource: f"{said} {shown_resource(resource)}", shown_resource)
