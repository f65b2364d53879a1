"""What confluent-kafka (librdkafka) makes of the answers."""

from __future__ import annotations

from typing import Any

import confluent_kafka
import confluent_kafka.admin as ck

from tests.interop.kafka_clients.python.case_lines import CONFIGS, Cases, Server, say, server_of_arguments


def _options(server: Server) -> dict[str, Any]:
    found: dict[str, Any] = {
        "bootstrap.servers": server.bootstrap,
        "client.id": "confluent-kafka",
        "security.protocol": server.protocol,
    }
    if server.mechanism:
        found |= {
            "sasl.mechanism": server.mechanism,
            "sasl.username": server.user,
            "sasl.password": server.password,
        }
    return found | ({"ssl.ca.location": server.ca} if server.ca else {})


def confluent_cases(server: Server) -> Cases:
    """What an administrator does."""
    admin = ck.AdminClient(_options(server))

    def shown(value: object) -> object:
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, (list, tuple)):
            return [shown(v) for v in value]
        if isinstance(value, dict):
            return {str(k): shown(v) for k, v in value.items()}
        if isinstance(value, confluent_kafka.KafkaError):
            return {
                "code": value.code(),
                "name": value.name(),
                "message": value.str(),
                "retriable": value.retriable(),
            }
        if isinstance(value, confluent_kafka.Uuid):
            return "<id>"
        if isinstance(value, confluent_kafka.Node):
            return value.id
        return {k: shown(v) for k, v in vars(value).items()} if hasattr(value, "__dict__") else str(value)

    def wait(futures: dict[Any, Any]) -> object:
        rows = {}
        for key, future in futures.items():
            try:
                rows[str(getattr(key, "name", key))] = shown(future.result(30))
            except confluent_kafka.KafkaException as error:
                rows[str(getattr(key, "name", key))] = {"error": shown(error.args[0])}
        return rows

    def create(
        name: str, partitions: int = -1, rf: int = -1, config: dict[str, str] | None = None, **kw: object
    ) -> object:
        topic = ck.NewTopic(name, num_partitions=partitions, replication_factor=rf, config=config or {})
        return wait(admin.create_topics([topic], **kw))

    def listed(**kw: object) -> object:
        found = admin.list_topics(timeout=30, **kw)
        return {
            name: {"error": shown(t.error), "partitions": {p: shown(x) for p, x in t.partitions.items()}}
            for name, t in sorted(found.topics.items())
            if name.startswith(("ck", "__"))
        }

    def topics(*names: str) -> object:
        return wait(admin.describe_topics(confluent_kafka.TopicCollection(list(names)), request_timeout=30))

    def configs(name: str, modified: bool = True) -> object:
        rows = {}
        for future in admin.describe_configs([ck.ConfigResource(ck.RESOURCE_TOPIC, name)]).values():
            try:
                for key, entry in future.result(30).items():
                    if not modified or entry.source == ck.ConfigSource.DYNAMIC_TOPIC_CONFIG.value:
                        rows[key] = {
                            "value": entry.value,
                            "source": entry.source,
                            "read_only": entry.is_read_only,
                        }
            except confluent_kafka.KafkaException as error:
                return {"error": shown(error.args[0])}
        return rows if modified else sorted(rows)

    def alter() -> object:
        entry = ck.ConfigEntry("retention.ms", "1000", incremental_operation=ck.AlterConfigOpType.SET)
        resource = ck.ConfigResource(ck.RESOURCE_TOPIC, "ck-plain", incremental_configs=[entry])
        return wait(admin.incremental_alter_configs([resource]))

    yield "create_with_configs", lambda: create("ck-orders", 3, 1, CONFIGS)
    yield "create_defaults", lambda: create("ck-plain")
    yield "create_validate_only", lambda: create("ck-dry", 2, 1, validate_only=True)
    yield "create_duplicate", lambda: create("ck-orders")
    yield "create_invalid_name", lambda: create("ck bad/name")
    yield "create_partitions_0", lambda: create("ck-p", 0, 1)
    yield "create_rf_2_on_one_broker", lambda: create("ck-p", 1, 2)
    yield "create_unknown_config", lambda: create("ck-p", config={"no.such": "1"})
    yield (
        "create_good_and_bad",
        lambda: wait(admin.create_topics([ck.NewTopic(n) for n in ("ck-good", "ck bad", "ck-orders")])),
    )
    yield "list", listed
    yield "list_one_unknown", lambda: listed(topic="ck-none")
    yield "describe", lambda: topics("ck-orders", "ck-plain")
    yield "describe_unknown", lambda: topics("ck-none")
    yield "describe_invalid_name", lambda: topics("ck bad/name")
    yield "configs_modified", lambda: configs("ck-orders")
    yield "configs_all_names", lambda: configs("ck-orders", modified=False)
    yield "configs_unknown_topic", lambda: configs("ck-none")
    yield "alter", alter
    yield "partitions_grow", lambda: wait(admin.create_partitions([ck.NewPartitions("ck-plain", 4)]))
    yield "partitions_fewer", lambda: wait(admin.create_partitions([ck.NewPartitions("ck-plain", 2)]))
    yield "describe_cluster", lambda: shown(admin.describe_cluster(request_timeout=30).result(30))
    yield "delete_by_name", lambda: wait(admin.delete_topics(["ck-good"]))
    yield "delete_by_name_again", lambda: wait(admin.delete_topics(["ck-good"]))
    yield "delete_rest", lambda: wait(admin.delete_topics(["ck-orders", "ck-plain"]))


def confluent_data(server: Server) -> Cases:
    """The answers to producers and consumers about the existing topic `data`."""

    def produce(*, idempotent: bool = False) -> object:
        said: list[object] = []
        options = {"message.timeout.ms": 15_000, "enable.idempotence": idempotent}
        producer = confluent_kafka.Producer(_options(server) | options)
        producer.produce("data", b"hello", on_delivery=lambda error, message: said.append(str(error)))
        producer.flush(20)
        return said

    def consume() -> object:
        consumer = confluent_kafka.Consumer(_options(server) | {"group.id": "group"})
        consumer.assign([confluent_kafka.TopicPartition("data", 0, 0)])
        return _polled(consumer)

    def join() -> object:
        consumer = confluent_kafka.Consumer(_options(server) | {"group.id": "group"})
        consumer.subscribe(["data"])
        return _polled(consumer)

    yield "produce", produce
    yield "produce_idempotent", lambda: produce(idempotent=True)
    yield "consume", consume
    yield "join_a_group", join


def _polled(consumer: Any) -> object:
    try:
        message = consumer.poll(15)
        return None if message is None else str(message.error())
    finally:
        consumer.close()


if __name__ == "__main__":
    _server = server_of_arguments()
    say(_server, (confluent_data if _server.data else confluent_cases)(_server))
