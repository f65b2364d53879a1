"""What aiokafka makes of the answers."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

import aiokafka
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from tests.interop.kafka_clients.python.case_lines import (
    CONFIGS,
    Cases,
    Server,
    plain,
    say,
    server_of_arguments,
)


def _options(server: Server) -> dict[str, Any]:
    return server.login | ({"ssl_context": ssl.create_default_context(cafile=server.ca)} if server.ca else {})


def aiokafka_cases(server: Server, loop: asyncio.AbstractEventLoop) -> Cases:
    """What an administrator does."""

    async def start() -> AIOKafkaAdminClient:
        client = AIOKafkaAdminClient(client_id="aiokafka", **_options(server))
        await client.start()
        return client

    admin = loop.run_until_complete(start())

    def doing(what: Callable[[], Awaitable[Any]]) -> Callable[[], object]:
        async def done() -> object:
            return plain(await what())

        return lambda: loop.run_until_complete(done())

    def create(
        name: str, partitions: int = 1, rf: int = 1, configs: dict[str, str] | None = None, **more: Any
    ) -> Callable[[], object]:
        topic = [NewTopic(name, partitions, rf, topic_configs=configs or {})]
        return doing(lambda: admin.create_topics(topic, **more))

    def configs(name: str) -> Callable[[], object]:
        async def asked() -> object:
            found = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name)])
            rows = [row for answer in found for row in plain(answer)["resources"]]
            return [(*row[:4], [each for each in row[4] if each[3] == 1]) for row in rows]

        return doing(asked)

    async def listed() -> object:
        return sorted(name for name in await admin.list_topics() if name.startswith(("ak-", "__")))

    async def alter() -> object:
        resource = ConfigResource(ConfigResourceType.TOPIC, "ak-plain", configs={"retention.ms": "1000"})
        return await admin.alter_configs([resource])

    yield "create_with_configs", create("ak-orders", 3, 1, CONFIGS)
    yield "create_plain", create("ak-plain")
    yield "create_validate_only", create("ak-dry", validate_only=True)
    yield "create_duplicate", create("ak-orders")
    yield "create_invalid_name", create("ak bad/name")
    yield "create_partitions_0", create("ak-p", 0)
    yield "create_rf_2_on_one_broker", create("ak-p", 1, 2)
    yield "create_unknown_config", create("ak-p", configs={"no.such": "1"})
    yield "list", doing(listed)
    yield "describe", doing(lambda: admin.describe_topics(["ak-orders", "ak-plain"]))
    yield "describe_unknown", doing(lambda: admin.describe_topics(["ak-none"]))
    yield "configs", configs("ak-orders")
    yield "configs_unknown_topic", configs("ak-none")
    yield "alter", doing(alter)
    yield "configs_of_altered", configs("ak-plain")
    yield "partitions_grow", doing(lambda: admin.create_partitions({"ak-plain": NewPartitions(4)}))
    yield "partitions_fewer", doing(lambda: admin.create_partitions({"ak-plain": NewPartitions(2)}))
    yield "describe_grown", doing(lambda: admin.describe_topics(["ak-plain"]))
    yield "describe_cluster", doing(admin.describe_cluster)
    yield "delete_by_name", doing(lambda: admin.delete_topics(["ak-orders", "ak-plain"]))
    yield "delete_by_name_again", doing(lambda: admin.delete_topics(["ak-orders"]))
    yield "list_at_the_end", doing(listed)
    loop.run_until_complete(admin.close())


def aiokafka_data(server: Server, loop: asyncio.AbstractEventLoop) -> Cases:
    """The answers to producers and consumers about the existing topic `data`."""

    async def produce() -> object:
        async with aiokafka.AIOKafkaProducer(**_options(server)) as producer:
            return await asyncio.wait_for(producer.send_and_wait("data", b"hello"), 15)

    async def consume() -> object:
        consumer = aiokafka.AIOKafkaConsumer(**_options(server))
        await consumer.start()
        try:
            consumer.assign([aiokafka.TopicPartition("data", 0)])
            consumer.seek(aiokafka.TopicPartition("data", 0), 0)
            return await asyncio.wait_for(consumer.getone(), 15)
        finally:
            await consumer.stop()

    async def join() -> object:
        consumer = aiokafka.AIOKafkaConsumer("data", group_id="group", **_options(server))
        try:
            await asyncio.wait_for(consumer.start(), 15)
            return await asyncio.wait_for(consumer.getone(), 15)
        finally:
            await consumer.stop()

    yield "produce", lambda: loop.run_until_complete(produce())
    yield "consume", lambda: loop.run_until_complete(consume())
    yield "join_a_group", lambda: loop.run_until_complete(join())


if __name__ == "__main__":
    _loop = asyncio.new_event_loop()
    _server = server_of_arguments()
    say(_server, (aiokafka_data if _server.data else aiokafka_cases)(_server, _loop))
