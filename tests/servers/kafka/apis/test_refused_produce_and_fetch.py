from __future__ import annotations

import pytest

from broker_core.servers.kafka.apis.refused_produce_and_fetch import FAIL_FAST_ROWS, NO_LOG
from broker_core.servers.kafka.requests.call import CloseClient
from broker_core.wire.kafka import (
    FETCH,
    FIND_COORDINATOR,
    INIT_PRODUCER_ID,
    PRODUCE,
    Api,
    Fields,
    read_response,
    response_frame,
)
from tests.support.kafka_calls import answer_of, call_of

ROWS = {row.api.key: row for row in FAIL_FAST_ROWS}


def ask(api: Api, version: int, body: Fields) -> Fields:
    answer = answer_of(ROWS[api.key], call_of(api, version, body))
    frame = b"".join(response_frame(api, version, 1, answer))
    return read_response(api, version, frame[4:])[1]


def test_a_producer_is_told_why() -> None:
    topics = [{"name": "a", "topic_id": None, "partition_data": [{"index": 3, "records": b"x"}]}]
    for version in range(3, 13):
        answer = ask(PRODUCE, version, {"acks": 1, "topic_data": topics})
        [topic] = answer["responses"]
        [row] = topic["partition_responses"]
        assert (topic["name"], row["index"], row["error_code"]) == ("a", 3, 44)
        assert row["error_message"] == (NO_LOG if version >= 8 else None)


def test_a_producer_that_waits_for_no_answer_is_closed() -> None:
    with pytest.raises(CloseClient, match="keeps no messages"):
        ask(PRODUCE, 9, {"acks": 0})


def test_a_consumer_gets_a_final_error_for_each_partition() -> None:
    body: Fields = {"topics": [{"topic": "a", "topic_id": None, "partitions": [{"partition": 3}]}]}
    for version in range(4, 13):
        [topic] = ask(FETCH, version, body)["responses"]
        [row] = topic["partitions"]
        assert (topic["topic"], row["partition_index"], row["error_code"]) == ("a", 3, 29)


def test_no_coordinator_is_found() -> None:
    for version in range(4):
        assert ask(FIND_COORDINATOR, version, {"key": "g"})["error_code"] == 30
    for version in range(4, 7):
        rows = ask(FIND_COORDINATOR, version, {"coordinator_keys": ["g", "h"], "key_type": 1})["coordinators"]
        assert [(row["key"], row["error_code"], row["error_message"]) for row in rows] == [
            ("g", 53, NO_LOG),
            ("h", 53, NO_LOG),
        ]


def test_a_producer_gets_an_id_so_that_it_reads_the_text_of_produce() -> None:
    for version in range(6):
        answer = ask(INIT_PRODUCER_ID, version, {"transactional_id": None})
        assert (answer["error_code"], answer["producer_id"], answer["producer_epoch"]) == (0, 0, 0)
        answer = ask(INIT_PRODUCER_ID, version, {"transactional_id": "t"})
        assert (answer["error_code"], answer["producer_id"], answer["producer_epoch"]) == (53, -1, -1)
