from __future__ import annotations

from typing import Any

from broker_core.catalog import SqliteCatalog
from broker_core.servers.kafka.apis.log_dirs import LOG_DIRS_ROW
from broker_core.servers.kafka.callers.authorizer import Authorizer
from broker_core.wire.kafka import DESCRIBE_LOG_DIRS, Fields, read_response, response_frame
from tests.support.kafka_acls import AllowAll
from tests.support.kafka_calls import call_of, services_of
from tests.support.kafka_topics import OnlyA, create, kafka_topics


async def ask(
    catalog: SqliteCatalog, version: int, topics: Any, authorizer: Authorizer | None = None
) -> Fields:
    async with kafka_topics(catalog, authorizer=authorizer) as m:
        services = services_of(topics=m.topics, named=m.named, authorizer=authorizer)
        call = call_of(DESCRIBE_LOG_DIRS, version, {"topics": topics}, services=services)
        frame = b"".join(response_frame(DESCRIBE_LOG_DIRS, version, 1, await LOG_DIRS_ROW.answered(call)))
        call.release()
        return read_response(DESCRIBE_LOG_DIRS, version, frame[4:])[1]


def logs(answer: Fields) -> list[tuple[str, list[int]]]:
    (directory,) = answer["results"]
    assert (directory["error_code"], directory["total_bytes"], directory["usable_bytes"]) == (0, -1, -1)
    return [
        (topic["name"], [row["partition_index"] for row in topic["partitions"]])
        for topic in directory["topics"]
    ]


async def test_one_directory_has_the_empty_logs_of_all_topics(catalog: SqliteCatalog) -> None:
    create(catalog, "a", 2)
    create(catalog, "b", 1)
    for version in range(1, 6):
        for authorizer in (AllowAll(), OnlyA()):  # ACLs of topics are not asked, as in Kafka
            answer = await ask(catalog, version, None, authorizer)
            assert logs(answer) == [("a", [0, 1]), ("b", [0])]
            partitions = answer["results"][0]["topics"][0]["partitions"]
            sizes = {(row["partition_size"], row["offset_lag"], row["is_future_key"]) for row in partitions}
            assert sizes == {(0, 0, False)}


async def test_of_named_topics_there_is_what_is_there(catalog: SqliteCatalog) -> None:
    create(catalog, "a", 2)
    asked = [
        {"topic": "a", "partitions": [1, 9, 1]},
        {"topic": "nope", "partitions": [0]},
        {"topic": "a b", "partitions": [0]},
    ]
    assert logs(await ask(catalog, 4, asked)) == [("a", [1])]
    assert logs(await ask(catalog, 4, [*asked, {"topic": "a", "partitions": [0]}])) == [("a", [1, 0])]
    assert logs(await ask(catalog, 4, [])) == []


async def test_it_takes_the_right_to_describe_the_cluster(catalog: SqliteCatalog) -> None:
    class Nobody(AllowAll):
        enabled = True

        def allows(self, *_: Any) -> bool:
            return False

    assert [(await ask(catalog, version, None, Nobody()))["error_code"] for version in (2, 3)] == [0, 31]
    assert (await ask(catalog, 2, None, Nobody()))["results"] == []
