from __future__ import annotations

import uuid

import pytest

from broker_core.cli.options.kafka_topics import shown_topic, topic_collection
from broker_core.cli.options.option_values import UnusableQuestion
from broker_core.client.kafka import TopicIdCollection, TopicNameCollection
from tests.support.narrowed import of_type

ID = uuid.UUID("92c7faad-4a23-4b68-94ec-39c8ac9cc796")


def test_names_or_ids() -> None:
    names, ids = (
        topic_collection(["a", "b"], None),
        topic_collection(None, [str(ID), "ksf6rUojS2iU7DnIrJzHlg"]),
    )
    assert of_type(names, TopicNameCollection).topic_names == ("a", "b")
    assert of_type(ids, TopicIdCollection).topic_ids == (ID,)


@pytest.mark.parametrize(("names", "ids"), [(None, None), ([], []), (["a"], [str(ID)])])
def test_one_of_the_two(names: list[str] | None, ids: list[str] | None) -> None:
    with pytest.raises(UnusableQuestion, match="one of the two"):
        topic_collection(names, ids)


def test_a_text_that_is_no_id() -> None:
    with pytest.raises(UnusableQuestion, match="Invalid topic id 'x'"):
        topic_collection(None, ["x"])


def test_what_is_shown() -> None:
    assert (shown_topic("orders"), shown_topic(ID)) == ("orders", "ksf6rUojS2iU7DnIrJzHlg")
