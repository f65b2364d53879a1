"""What kafka-python 3 makes of the answers."""

from __future__ import annotations

import contextlib
import uuid
from typing import Any

import kafka.admin as kp
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from tests.interop.kafka_clients.python.case_lines import (
    CONFIGS,
    NO_SUCH_ID,
    Cases,
    Server,
    say,
    server_of_arguments,
)


def kafka_python_cases(server: Server) -> Cases:
    """What an administrator does."""
    admin = kp.KafkaAdminClient(client_id="kafka-python", **server.kafka_python)

    def create(name: str, validate_only: bool = False, **kw: object) -> object:
        return admin.create_topics({name: kw}, validate_only=validate_only, raise_errors=False)

    def ids() -> dict[str, uuid.UUID]:
        return {t["name"]: uuid.UUID(str(t["topic_id"])) for t in admin.describe_topics()}

    def configs(name: str, **kw: object) -> Any:
        return admin.describe_configs([kp.ConfigResource(kp.ConfigResourceType.TOPIC, name)], **kw)

    yield "create_with_configs", lambda: create("kp-orders", num_partitions=3, configs=CONFIGS)
    yield "create_defaults", lambda: create("kp-plain")
    yield "create_validate_only", lambda: create("kp-dry", validate_only=True, num_partitions=2)
    yield "create_duplicate", lambda: create("kp-orders")
    yield "create_duplicate_raising", lambda: admin.create_topics(["kp-orders"])
    yield "create_invalid_name", lambda: create("kp bad/name")
    yield "create_partitions_0", lambda: create("kp-p", num_partitions=0)
    yield "create_rf_2_on_one_broker", lambda: create("kp-p", replication_factor=2)
    yield "create_unknown_config", lambda: create("kp-p", configs={"no.such": "1"})
    yield (
        "create_good_and_bad",
        lambda: admin.create_topics({"kp-good": {}, "kp bad": {}, "kp-orders": {}}, raise_errors=False),
    )
    yield "list", lambda: sorted(n for n in admin.list_topics() if n.startswith(("kp-", "__")))
    yield "describe", lambda: admin.describe_topics(["kp-orders", "kp-plain"])
    yield "describe_unknown", lambda: admin.describe_topics(["kp-none"])
    yield "describe_invalid_name", lambda: admin.describe_topics(["kp bad/name"])
    yield "describe_by_id", lambda: admin.describe_topics([ids()["kp-plain"]])
    yield "describe_unknown_id", lambda: admin.describe_topics([NO_SUCH_ID])
    yield "describe_id_and_name", lambda: admin.describe_topics([ids()["kp-plain"], "kp-orders"])
    yield "pages_limit_2", lambda: admin.describe_topic_partitions(["kp-orders", "kp-plain"], 2)
    yield (
        "pages_cursor",
        lambda: admin.describe_topic_partitions(
            ["kp-orders", "kp-plain"], 2, {"topic_name": "kp-orders", "partition_index": 2}
        ),
    )
    yield (
        "pages_bad_cursor",
        lambda: admin.describe_topic_partitions(
            ["kp-orders"], 2, {"topic_name": "kp-plain", "partition_index": 0}
        ),
    )
    yield "pages_unknown", lambda: admin.describe_topic_partitions(["kp-none"])
    yield "configs_modified", lambda: configs("kp-orders")
    yield "configs_all_names", lambda: sorted(configs("kp-orders", config_filter="all")["topic"]["kp-orders"])
    yield "configs_unknown_topic", lambda: configs("kp-none")
    yield (
        "alter",
        lambda: admin.alter_configs(
            [kp.ConfigResource(kp.ConfigResourceType.TOPIC, "kp-plain", configs={"retention.ms": "1000"})]
        ),
    )
    yield "partitions_grow", lambda: admin.create_partitions({"kp-plain": 4})
    yield "partitions_fewer", lambda: admin.create_partitions({"kp-plain": 2}, raise_errors=False)
    yield "describe_cluster", admin.describe_cluster
    yield "delete_by_name", lambda: admin.delete_topics(["kp-good"], raise_errors=False)
    yield "delete_by_name_again", lambda: admin.delete_topics(["kp-good"], raise_errors=False)
    held: dict[str, uuid.UUID] = {}

    def delete_by_id() -> object:
        held.update(held or ids())
        return admin.delete_topics([held["kp-plain"]], raise_errors=False)

    yield "delete_by_id", delete_by_id
    yield "delete_by_id_again", delete_by_id
    yield "delete_unknown_id", lambda: admin.delete_topics([NO_SUCH_ID], raise_errors=False)
    yield "delete_rest", lambda: admin.delete_topics(["kp-orders"], raise_errors=False)
    admin.close()


def kafka_python_data(server: Server) -> Cases:
    """The answers to producers and consumers about the existing topic `data`."""

    def produce(*, idempotent: bool = False) -> object:
        producer = KafkaProducer(**server.kafka_python, max_block_ms=10_000, enable_idempotence=idempotent)
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
    yield "produce_idempotent", lambda: produce(idempotent=True)
    yield "consume", consume
    yield "join_a_group", join


if __name__ == "__main__":
    _server = server_of_arguments()
    say(_server, (kafka_python_data if _server.data else kafka_python_cases)(_server))
