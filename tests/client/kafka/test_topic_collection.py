from __future__ import annotations

import uuid

import pytest

from broker_core.client.kafka.topic_collection import (
    TopicCollection,
    TopicIdCollection,
    TopicNameCollection,
    as_collection,
)

ID = uuid.UUID("12345678-9abc-4def-8123-456789abcdef")


def test_names_each_once_in_their_order() -> None:
    names = TopicCollection.of_topic_names(["b", "a", "b"])
    assert isinstance(names, TopicNameCollection)
    assert names.topic_names == ("b", "a")


def test_ids_each_once() -> None:
    ids = TopicCollection.of_topic_ids([ID, ID])
    assert isinstance(ids, TopicIdCollection)
    assert ids.topic_ids == (ID,)
    assert as_collection(ids) is ids


def test_names_as_they_are() -> None:
    wanted = as_collection(name for name in ("a", "b"))
    assert isinstance(wanted, TopicNameCollection)
    assert wanted.topic_names == ("a", "b")


def test_one_name_is_no_names() -> None:
    with pytest.raises(TypeError):
        as_collection("orders")
