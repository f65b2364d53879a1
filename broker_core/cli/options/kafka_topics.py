"""The arguments of `broker-core kafka topics ...` that name topics, or give their ids."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from broker_core.cli.options.option_values import UnusableQuestion, usable
from broker_core.errors import BrokerCoreError

if TYPE_CHECKING:
    from broker_core.client.kafka import TopicIdCollection, TopicNameCollection

__all__ = [
    "IdOption",
    "IfExistsOption",
    "TopicsArgument",
    "missing_topics",
    "shown_topic",
    "topic_collection",
]

TopicsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[TOPIC...]", help="Names.", show_default=False)
]
IdOption = Annotated[
    list[str] | None,
    typer.Option(
        "--id",
        metavar="ID",
        help="A topic by its id, in base64 or hexadecimal; may be repeated.",
        show_default=False,
    ),
]
IfExistsOption = Annotated[
    bool,
    typer.Option("--if-exists", help="Skip topics that do not exist.", show_default=False),
]


def missing_topics(if_exists: bool) -> tuple[type[BrokerCoreError], ...]:
    """The errors of missing topics, if these are passed over."""
    from broker_core.client.kafka import UnknownTopicIdException, UnknownTopicOrPartitionException

    return (UnknownTopicOrPartitionException, UnknownTopicIdException) if if_exists else ()


def topic_collection(
    names: Sequence[str] | None, ids: Sequence[str] | None
) -> TopicNameCollection | TopicIdCollection:
    """The topics by name or by id. Raises :exc:`UnusableQuestion`."""
    from broker_core.client.kafka import TopicCollection
    from broker_core.names import parse_topic_id

    if bool(names) is bool(ids):
        raise UnusableQuestion("name topics, or give --id: one of the two")
    with usable():
        if ids:
            return TopicCollection.of_topic_ids([parse_topic_id(text) for text in ids])
    return TopicCollection.of_topic_names(names or ())


def shown_topic(topic: str | uuid.UUID) -> str:
    """A name, or the text of an id."""
    from broker_core.names import topic_id_text

    return topic if isinstance(topic, str) else topic_id_text(topic)
