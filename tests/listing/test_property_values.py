"""Values of selecting properties: counted, and seen to go with the last topic that has one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from broker_core.broker.opened_core import opened_pipeline
from broker_core.catalog import SqliteCatalog
from broker_core.listing.listing import Listing
from broker_core.listing.property_values import count_texts, count_values, has_property_values
from broker_core.names import Mode, NamespaceName, TopicName
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.settings import Settings

NAMESPACE = NamespaceName("a", "b")


@given(st.lists(st.none() | st.sampled_from(["eu", "us", "ap", "é", ""]), max_size=40))
def test_texts_are_counted_the_most_frequent_first(texts: list[str | None]) -> None:
    counted = Counter(text for text in texts if text is not None)
    expected = sorted(counted.items(), key=lambda item: (-item[1], item[0].encode()))
    found = count_texts(pa.array(texts, pa.large_string())).to_pylist()
    assert [(row["value"], row["count"]) for row in found] == expected


def test_a_listing_without_values_is_not_counted() -> None:
    listing = Listing.from_names(NamespaceName("t", "n"), Mode.ALL, ["persistent://t/n/a"])
    assert count_values(listing.all(), "region") is None


async def test_values_are_seen_and_seen_to_go(tmp_path: Path) -> None:
    settings = Settings.model_validate(
        {"catalog": {"path": tmp_path / "c.sqlite", "property_keys": ["region"]}}
    )
    with SqliteCatalog(tmp_path / "c.sqlite") as catalog:
        async with opened_pipeline(settings) as pipeline:

            async def values() -> bool:
                result = await pipeline.lister.list_topics(ListingRequest(NAMESPACE))
                assert isinstance(result.topics, Listing)
                return has_property_values(result.topics)

            assert not await values()
            topics = [TopicName("persistent", NAMESPACE, f"t{number}") for number in range(10)]
            for topic in topics:
                catalog.create(topic, properties={"other": "1"})
            assert not await values()
            catalog.set_properties(topics[3], {"region": "eu"})
            assert await values()
            catalog.set_properties(topics[3], {})
            assert not await values()


def test_a_listing_of_names_has_none() -> None:
    listing = Listing.from_names(NAMESPACE, Mode.PERSISTENT, ["persistent://a/b/x"])
    assert not has_property_values(listing)
