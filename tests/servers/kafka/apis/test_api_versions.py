from __future__ import annotations

from typing import Any

from broker_core.servers.kafka.apis import HANDLERS
from broker_core.servers.kafka.apis.api_versions import api_versions_row
from broker_core.servers.kafka.requests.call import HandlerRow
from broker_core.wire.kafka import API_VERSIONS, LIST_TOPICS, METADATA, ErrorCode, Fields
from tests.support.kafka_calls import answer_of, call_of, services_of


def told(row: HandlerRow, **kafka: Any) -> Fields:
    return answer_of(row, call_of(API_VERSIONS, 0, services=services_of(**kafka)))


def test_what_is_advertised_is_told_in_the_order_of_keys() -> None:
    rows = [
        HandlerRow(LIST_TOPICS, lambda _: {}),
        HandlerRow(API_VERSIONS, lambda _: {}),
        HandlerRow(METADATA, lambda _: {}, shown_from=1),
    ]
    row = api_versions_row(lambda: rows)
    assert told(row)["api_keys"] == [
        {"api_key": 3, "min_version": 1, "max_version": 13},
        {"api_key": 18, "min_version": 0, "max_version": 4},
        {"api_key": LIST_TOPICS.key, "min_version": 0, "max_version": 0},
    ]
    keys = told(row, advertise_list_topics=False)["api_keys"]
    assert [each["api_key"] for each in keys] == [3, 18]


def test_a_client_needs_a_name_of_letters() -> None:
    row = HANDLERS[API_VERSIONS.key]
    fields = answer_of(
        row, call_of(API_VERSIONS, 3, {"client_software_name": "-", "client_software_version": "1"})
    )
    assert fields == {"error_code": ErrorCode.INVALID_REQUEST}
