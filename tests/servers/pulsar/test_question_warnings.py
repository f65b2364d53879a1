"""Warnings about questions over Pulsar's protocol: for the clients of this project, and for no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker_core.client import BlockingLookupClient, ListingWarning, LookupClient
from tests.support.api_serving import api_served
from tests.support.eventually import eventually
from tests.support.raw_client import RawClient

ALL = (
    "persistent://public/default/bills",
    *(f"persistent://public/default/orders-partition-{n}" for n in (0, 1)),
)


async def test_a_client_is_told_of_a_property_that_nothing_selects_by(tmp_path: Path) -> None:
    async with api_served(tmp_path) as served:
        host, port = served.broker.pulsar_address
        async with LookupClient(f"pulsar://{host}:{port}") as client:
            with pytest.warns(ListingWarning, match="selected by the property 'tint'"):
                found = await client.get_topics_under_namespace(
                    "public/default", topics_pattern="public/default/.*", properties={"tint": "teal"}
                )
            assert tuple(found) == ALL
            assert len(found.warnings) == 1
            with pytest.warns(ListingWarning, match="property 'tint'"):  # beside a hash that still holds, too
                again = await client.get_topics_under_namespace(
                    "public/default", topics_hash=found.topics_hash, properties={"tint": "teal"}
                )
            assert (again.changed, again.warnings) == (False, found.warnings)
            assert not (await client.get_topics_under_namespace("public/default")).warnings
        assert served.sample("listing_warnings_total", kind="properties") == 2


async def test_a_property_that_selects_has_no_warning(tmp_path: Path) -> None:
    async with api_served(tmp_path, catalog={"property_keys": ["region"]}) as served:
        host, port = served.broker.pulsar_address
        async with LookupClient(f"pulsar://{host}:{port}") as client:
            found = await client.get_topics_under_namespace("public/default", properties={"region": "us"})
            assert (list(found), found.warnings) == (["persistent://public/default/bills"], ())


async def test_the_answer_to_another_client_is_pulsars_own(tmp_path: Path) -> None:
    async with api_served(tmp_path) as served:
        frames = []
        for version in ("Pulsar-Java-v4.2.4", "broker-core-1"):
            async with await RawClient.open(served.broker.pulsar_address, client_version=version) as client:
                await client.send(client.question(properties={"tint": "teal"})[1])
                frames.append(await client.receive_raw())
        others, ours = map(bytes, frames)
        assert b"tint" not in others
        assert b"tint" in ours
        await eventually(lambda: served.sample("listing_warnings_total", kind="properties") == 2)


async def test_without_asyncio_it_is_the_same(tmp_path: Path) -> None:
    import asyncio

    async with api_served(tmp_path) as served:
        host, port = served.broker.pulsar_address

        def ask() -> tuple[str, ...]:
            with BlockingLookupClient(f"pulsar://{host}:{port}") as client, pytest.warns(ListingWarning):
                return client.get_topics_under_namespace(
                    "public/default", properties={"tint": "teal"}
                ).warnings

        assert len(await asyncio.to_thread(ask)) == 1
