"""What kafka-python 2.3 makes of the answers."""

from __future__ import annotations

import contextlib
from typing import Any

import kafka.admin as kp
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from tests.interop.kafka_clients.python.case_lines import (
    CONFIGS,
    Cases,
    Server,
    plain,
    say,
    server_of_arguments,
)


def kafka_python_2_cases(server: Server) -> Cases:
    """What an administrator does."""
    admin = kp.KafkaAdminClient(client_id="kafka-python-2", **server.kafka_python)

    def create(
        name: str, partitions: int = 1, rf: int = 1, configs: dict[str, str] | None = None, **more: Any
    ) -> object:
        topic = kp.NewTopic(name, partitions, rf, topic_configs=configs or {})
        return plain(admin.create_topics([topic], **more))

    def configs(name: str) -> object:
        found = admin.describe_configs([kp.ConfigResource(kp.ConfigResourceType.TOPIC, name)])
        rows = [row for answer in found for row in plain(answer)["resources"]]
        return [(*row[:4], [each for each in row[4] if each[3] == 1]) for row in rows]

    def alter() -> object:
        resource = kp.ConfigResource(
            kp.ConfigResourceType.TOPIC, "k2-plain", configs={"retention.ms": "1000"}
        )
        return plain(admin.alter_configs([resource]))

    def listed() -> object:
        return sorted(name for name in admin.list_topics() if name.startswith(("k2-", "__")))

    yield "create_with_configs", lambda: create("k2-orders", 3, 1, CONFIGS)
    yield "create_defaults", lambda: create("k2-plain", -1, -1)
    yield "create_validate_only", lambda: create("k2-dry", validate_only=True)
    yield "create_duplicate", lambda: create("k2-orders")
    yield "create_invalid_name", lambda: create("k2 bad/name")
    yield "create_partitions_0", lambda: create("k2-p", 0)
    yield "create_rf_2_on_one_broker", lambda: create("k2-p", 1, 2)
    yield "create_unknown_config", lambda: create("k2-p", configs={"no.such": "1"})
    yield "list", listed
    yield "describe", lambda: admin.describe_topics(["k2-orders", "k2-plain"])
    yield "describe_unknown", lambda: admin.describe_topics(["k2-none"])
    yield "configs", lambda: configs("k2-orders")
    yield "configs_unknown_topic", lambda: configs("k2-none")
    yield "alter", alter
    yield "configs_of_altered", lambda: configs("k2-plain")
    yield "partitions_grow", lambda: plain(admin.create_partitions({"k2-plain": kp.NewPartitions(4)}))
    yield "partitions_fewer", lambda: plain(admin.create_partitions({"k2-plain": kp.NewPartitions(2)}))
    yield "describe_cluster", admin.describe_cluster
    yield "delete_by_name", lambda: plain(admin.delete_topics(["k2-orders", "k2-plain"]))
    yield "delete_by_name_again", lambda: plain(admin.delete_topics(["k2-orders"]))
    yield "list_at_the_end", listed
    admin.close()


def kafka_python_2_data(server: Server) -> Cases:
    """The answers to producers and consumers about the existing topic `data`."""

    def produce() -> object:
        producer = KafkaProducer(**server.kafka_python, max_block_ms=10_000, retries=0)
        try:
            return producer.send("data", b"hello").get(15).offset
        finally:
            producer.close(1)

    def consume() -> object:
        with contextlib.closing(KafkaConsumer(**server.kafka_python)) as consumer:
            consumer.assign([TopicPartition("data", 0)])
            consumer.seek(TopicPartition("data", 0), 0)
            return consumer.poll(10_000)

    def join() -> object:
        with contextlib.closing(KafkaConsumer("data", group_id="group", **server.kafka_python)) as consumer:
            return consumer.poll(10_000)

    yield "produce", produce
    yield "consume", consume
    yield "join_a_group", join


if __name__ == "__main__":
    _server = server_of_arguments()
    say(_server, (kafka_python_2_data if _server.data else kafka_python_2_cases)(_server))
