"""Whether topics have values of selecting properties, also after the last value has gone."""

from __future__ import annotations

from pathlib import Path

from broker_core.broker.opened_core import opened_pipeline
from broker_core.catalog import SqliteCatalog
from broker_core.listing.listing import Listing
from broker_core.listing.properties.property_values import has_property_values
from broker_core.names import Mode, NamespaceName, TopicName
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.settings import Settings

NAMESPACE = NamespaceName("a", "b")


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
