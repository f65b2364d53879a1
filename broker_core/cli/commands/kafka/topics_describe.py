"""`broker-core kafka topics describe`: topics with their partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from broker_core.cli.common_options import Invocation
from broker_core.cli.help_examples import examples
from broker_core.cli.options.kafka_server import GivenKafka
from broker_core.cli.options.kafka_topics import (
    IdOption,
    IfExistsOption,
    TopicsArgument,
    missing_topics,
    topic_collection,
)

if TYPE_CHECKING:
    from broker_core.client.kafka import Node, TopicDescription

__all__ = ["EXAMPLES", "describe_topics"]

EXAMPLES: Final = examples(
    "broker-core kafka topics describe --bootstrap kafka:9092",
    "broker-core kafka topics describe orders",
    "broker-core kafka topics describe --id Ksf6rUojS2iU7DnIrJzHlg --format json",
)


async def describe_topics(
    invocation: Invocation,
    topics: TopicsArgument = None,
    *,
    ids: IdOption = None,
    if_exists: IfExistsOption = False,
    operations: Annotated[
        bool, typer.Option("--operations", help="Show what the user may do.", show_default=False)
    ] = False,
    form: Annotated[Literal["table", "json"], typer.Option("--format", help="How to print it.")] = "table",
    server: GivenKafka,
) -> None:
    """Show topics with their partitions.

    All of them, or those named.
    """
    from broker_core.cli.options.kafka_topics import shown_topic
    from broker_core.cli.printed_output import print_json, print_table
    from broker_core.cli.printed_results import succeeded
    from broker_core.client.kafka import TopicCollection

    wanted = topic_collection(topics, ids) if topics or ids else None
    async with server.connected(invocation) as client:
        if wanted is None:
            listed = await client.list_topics(list_internal=True)
            wanted = TopicCollection.of_topic_names(sorted(topic.name for topic in listed))
        result: Mapping[Any, TopicDescription] = await client.describe_topics(
            wanted, include_authorized_operations=operations
        )
    with succeeded(result, shown_topic, missing_topics(if_exists)) as found:
        rows = [_described(topic) for topic in found.values()]
        if form == "json":
            print_json(rows)
        elif rows:
            columns = ["topic", "topic_id", "partition", "leader", "replicas", "isr"]
            print_table(columns, (cells for row in rows for cells in _cells(row)))
            if operations:
                print_table(
                    ["topic", "operations"], ([row["name"], " ".join(row["operations"])] for row in rows)
                )


def _described(topic: TopicDescription) -> dict[str, Any]:
    from broker_core.names import topic_id_text

    described: dict[str, Any] = {
        "name": topic.name,
        "topic_id": topic_id_text(topic.topic_id),
        "internal": topic.is_internal,
        "partitions": [
            {
                "partition": each.partition,
                "leader": None if each.leader is None else each.leader.id,
                "replicas": _ids(each.replicas),
                "isr": _ids(each.isr),
            }
            for each in topic.partitions
        ],
    }
    if topic.authorized_operations is not None:
        described["operations"] = [each.name for each in sorted(topic.authorized_operations)]
    return described


def _cells(row: dict[str, Any]) -> Iterable[list[object]]:
    for each in row["partitions"]:
        replicas, isr = (",".join(map(str, each[key])) for key in ("replicas", "isr"))
        leader = "none" if each["leader"] is None else each["leader"]
        yield [row["name"], row["topic_id"], each["partition"], leader, replicas, isr]


def _ids(nodes: Iterable[Node]) -> list[int]:
    return [node.id for node in nodes]
