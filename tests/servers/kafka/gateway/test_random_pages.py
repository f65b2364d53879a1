"""Pages at random cursors and limits before a cluster, beside its own answers without pages as a model."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker_core.client.kafka import AdminClient, NewTopic
from broker_core.plugin_api.hookspecs import hookimpl
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.servers.kafka.pages import raw_units
from broker_core.servers.kafka.requests import page_parts
from broker_core.wire.kafka import DESCRIBE_LOG_DIRS, LIST_OFFSETS, Api, Fields
from tests.support.examples import examples
from tests.support.kafka_gateway import address_of, gateway, play
from tests.support.kafka_page_requests import CAP, PAGED, ROWS, TOPICS, check_page, has_error, page_requests
from tests.support.kafka_page_units import in_order, units_of
from tests.support.kafka_serving import RawKafkaClient, kafka_broker, raw_client
from tests.support.ports import free_port

#: Random pages of each of 36 versions, before a gateway that hides topics and before one that hides none; 1,400 are
#: some 100,000 in all.
EXAMPLES: Final = int(os.environ.get("KAFKA_GATEWAY_PAGES", "4"))


class _Hiding:
    """Hides topics that begin with ``x``."""

    @hookimpl
    def broker_core_depends_on(self) -> tuple[str, ...]:
        return ()

    @hookimpl
    def broker_core_visible(self, request: ListingRequest, topics: pa.LargeStringArray) -> Any:
        return pc.invert(pc.match_substring(topics, "/x"))


@dataclass
class Gateway:
    """Clients of the node itself, of its port and of the gateway's own port."""

    runner: asyncio.Runner
    direct: RawKafkaClient
    through: RawKafkaClient
    merged: RawKafkaClient
    ids: dict[str, uuid.UUID]
    is_hiding: bool

    @property
    def shown(self) -> dict[str, uuid.UUID]:
        """The topics that are not hidden."""
        return {
            name: each for name, each in self.ids.items() if not (self.is_hiding and name.startswith("x"))
        }

    def ask(self, client: RawKafkaClient, api: Api, version: int, body: Fields) -> Fields:
        """The answer that a client gets."""
        return self.runner.run(client.ask(api, version, body))


@pytest.fixture(scope="module", params=[False, True], ids=["all", "hiding"])
def front(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder: Path = tmp_path_factory.mktemp("random-pages")
    patch = pytest.MonkeyPatch()
    play(ROWS, patch)

    async def start(stack: AsyncExitStack) -> tuple[RawKafkaClient, RawKafkaClient, RawKafkaClient, Any]:
        cluster = await stack.enter_async_context(kafka_broker(folder, node_id=7))
        async with AdminClient(address_of(cluster)) as client:
            (await client.create_topics([NewTopic(name, count) for name, count in TOPICS.items()])).all()
            ids = {name: row.topic_id for name, row in (await client.describe_topics(TOPICS)).items()}
        port = free_port()
        plugins = {"hiding": _Hiding()} if request.param else {}
        kafka = {"max_request_pagination_size_limit": CAP}
        made = gateway(folder, address_of(cluster), plugins, kafka=kafka, max_age=3600, ports=str(port))
        front = await stack.enter_async_context(made)
        assert cluster.kafka_address is not None
        assert front.kafka_address is not None
        clients = [
            await stack.enter_async_context(raw_client(address))
            for address in (cluster.kafka_address, ("127.0.0.1", port), front.kafka_address)
        ]
        return clients[0], clients[1], clients[2], ids

    try:
        with asyncio.Runner() as runner:
            stack = AsyncExitStack()
            try:
                direct, through, merged, ids = runner.run(start(stack))
                yield Gateway(runner, direct, through, merged, ids, request.param)
            finally:
                runner.run(stack.aclose())
    finally:
        patch.undo()


@pytest.mark.many
@pytest.mark.parametrize(("api", "version"), PAGED, ids=lambda each: getattr(each, "name", str(each)))
@settings(max_examples=examples(EXAMPLES), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_page_is_the_part_of_the_clusters_answer(
    api: Api, version: int, front: Gateway, data: st.DataObject, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Rows stay bytes, or are decoded since they are few; their pieces are copied together, or one by one.
    monkeypatch.setattr(page_parts, "FEW_ROWS", data.draw(st.sampled_from([0, 32])))
    monkeypatch.setattr(raw_units, "FEW_PIECES", data.draw(st.sampled_from([0, 256])))
    client = data.draw(st.sampled_from([front.through, front.merged]))
    asked = data.draw(page_requests(api, version, front.ids))
    if client is front.merged and api is LIST_OFFSETS:  # there the rows of one topic are one
        topics = {row["name"]: row for row in asked.body["topics"]}
        asked = asked._replace(body={"topics": [*topics.values()]})
    whole, page = [front.ask(client, api, version, body) for body in (asked.body, asked.paged)]
    if not front.is_hiding and not (client is front.merged and api is DESCRIBE_LOG_DIRS):
        answers = [front.ask(each, api, version, asked.body) for each in (client, front.direct)]
        units = [in_order(units_of(api, asked.body, each, front.ids)) for each in answers]
        assert units[0] == units[1]
    if client is front.merged and api is DESCRIBE_LOG_DIRS:  # refused there, wherever the page begins
        assert has_error(whole, 42)
        assert has_error(page, 42)
        return
    check_page(asked, whole, page, front.shown)
