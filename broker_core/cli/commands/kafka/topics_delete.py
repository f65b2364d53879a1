"""`broker-core kafka topics delete`: topics by name or by id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from broker_core.cli.common_options import Invocation
from broker_core.cli.help_examples import examples
from broker_core.cli.options.kafka_server import GivenKafka
from broker_core.cli.options.kafka_topics import (
    IdOption,
    IfExistsOption,
    TopicsArgument,
    missing_topics,
    shown_topic,
    topic_collection,
)

__all__ = ["EXAMPLES", "delete_topics"]

EXAMPLES: Final = examples(
    "broker-core kafka topics delete orders --bootstrap kafka:9092",
    "# by id: a topic that was made anew with the same name stays",
    "broker-core kafka topics delete --id Ksf6rUojS2iU7DnIrJzHlg",
)


async def delete_topics(
    invocation: Invocation,
    topics: TopicsArgument = None,
    *,
    ids: IdOption = None,
    if_exists: IfExistsOption = False,
    server: GivenKafka,
) -> None:
    """Delete topics, by name or by id."""
    from broker_core.cli.printed_results import print_results

    wanted = topic_collection(topics, ids)
    async with server.connected(invocation) as client:
        result: Mapping[Any, None] = await client.delete_topics(wanted)
    print_results(
        result, lambda topic: f"deleted {shown_topic(topic)}", shown_topic, missing_topics(if_exists)
    )
