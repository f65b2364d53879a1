"""Collections of topics by their names or by their ids (KIP-516)."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Final, TypeAlias

from broker_core.client.kafka.argument_checks import all_of

__all__ = ["TopicCollection", "TopicIdCollection", "TopicNameCollection", "Topics", "as_collection"]


class TopicNameCollection:
    """Topics by name, each once, in the order in which they were given."""

    __slots__ = ("topic_names",)

    def __init__(self, names: Iterable[str]) -> None:
        self.topic_names: Final = tuple(dict.fromkeys(all_of(str, names, "names of topics")))

    def __repr__(self) -> str:
        return f"TopicCollection.of_topic_names({list(self.topic_names)!r})"


class TopicIdCollection:
    """Topics by id, each once, in the order in which they were given."""

    __slots__ = ("topic_ids",)

    def __init__(self, ids: Iterable[uuid.UUID]) -> None:
        self.topic_ids: Final = tuple(dict.fromkeys(all_of(uuid.UUID, ids, "ids of topics")))

    def __repr__(self) -> str:
        return f"TopicCollection.of_topic_ids({list(self.topic_ids)!r})"


class TopicCollection:
    """Makes collections of topics: by name or by id, never both."""

    @staticmethod
    def of_topic_names(names: Iterable[str]) -> TopicNameCollection:
        return TopicNameCollection(names)

    @staticmethod
    def of_topic_ids(ids: Iterable[uuid.UUID]) -> TopicIdCollection:
        return TopicIdCollection(ids)


#: Topics as arguments of methods: names may be given as they are.
Topics: TypeAlias = TopicNameCollection | TopicIdCollection | Iterable[str]


def as_collection(topics: Topics) -> TopicNameCollection | TopicIdCollection:
    """The collection of an argument."""
    if isinstance(topics, TopicNameCollection | TopicIdCollection):
        return topics
    return TopicNameCollection(topics)
