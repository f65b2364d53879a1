"""`broker-core kafka topics create`: new topics of a Kafka cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from broker_core.cli.common_options import Invocation
from broker_core.cli.help_examples import examples
from broker_core.cli.options.kafka_server import GivenKafka
from broker_core.cli.options.option_values import parse_properties
from broker_core.counted import counted

if TYPE_CHECKING:
    from broker_core.client.kafka import CreateTopicsResult

__all__ = ["EXAMPLES", "create_topics"]

EXAMPLES: Final = examples(
    "broker-core kafka topics create orders payments --partitions 3 --bootstrap kafka:9092",
    "broker-core kafka topics create orders --config-entry retention.ms=3600000 --validate-only",
)


async def create_topics(
    invocation: Invocation,
    topics: Annotated[list[str], typer.Argument(metavar="TOPIC...", help="Names.", show_default=False)],
    *,
    partitions: Annotated[
        int | None,
        typer.Option(metavar="N", help="How many partitions; the server's default.", show_default=False),
    ] = None,
    replication_factor: Annotated[
        int | None,
        typer.Option(metavar="N", help="How many replicas; the server's default.", show_default=False),
    ] = None,
    configs: Annotated[
        list[str] | None,
        typer.Option(
            "--config-entry", metavar="KEY=VALUE", help="A config; may be repeated.", show_default=False
        ),
    ] = None,
    validate_only: Annotated[
        bool,
        typer.Option("--validate-only", help="Create nothing, say what would happen.", show_default=False),
    ] = False,
    if_not_exists: Annotated[
        bool,
        typer.Option("--if-not-exists", help="Skip topics that exist.", show_default=False),
    ] = False,
    form: Annotated[Literal["lines", "json"], typer.Option("--format", help="How to print it.")] = "lines",
    server: GivenKafka,
) -> None:
    """Create topics."""
    from broker_core.cli.printed_output import print_json, print_lines
    from broker_core.cli.printed_results import succeeded
    from broker_core.client.kafka import NewTopic, TopicExistsException

    given = parse_properties(configs, option="--config-entry")
    wanted = [NewTopic(name, partitions, replication_factor, given) for name in dict.fromkeys(topics)]
    async with server.connected(invocation) as client:
        result = await client.create_topics(wanted, validate_only=validate_only)
    with succeeded(result, passed=(TopicExistsException,) if if_not_exists else ()) as made:
        if form == "json":
            print_json([_described(result, name) for name in made])
        else:
            said = "would create" if validate_only else "created"
            print_lines(f"{said} {name}{_facts(result, name)}" for name in made)


def _described(result: CreateTopicsResult, name: str) -> dict[str, Any]:
    """The facts of a new topic; ``null`` if the server does not send them."""
    from broker_core.client.kafka import KafkaException
    from broker_core.names import topic_id_text

    try:
        return {
            "name": name,
            "topic_id": topic_id_text(result.topic_id(name)),
            "partitions": result.num_partitions(name),
            "replication_factor": result.replication_factor(name),
            "configs": {entry.name: entry.value for entry in result.config(name).values()},
        }
    except KafkaException:
        return dict.fromkeys(("name", "topic_id", "partitions", "replication_factor", "configs")) | {
            "name": name
        }


def _facts(result: CreateTopicsResult, name: str) -> str:
    facts = _described(result, name)
    if facts["topic_id"] is None:
        return ""
    count = facts["partitions"]
    return f" with {counted(count, 'partition')}, id {facts['topic_id']}"
