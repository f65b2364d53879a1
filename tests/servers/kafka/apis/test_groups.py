from __future__ import annotations

from broker_core.servers.kafka.apis.groups import GROUP_ROWS
from broker_core.wire.kafka import CONSUMER_GROUP_DESCRIBE, DESCRIBE_GROUPS, LIST_GROUPS
from tests.support.kafka_acls import AllowAll
from tests.support.kafka_calls import Nobody, answer_of, call_of, services_of

LIST_GROUPS_ROW, DESCRIBE_GROUPS_ROW, CONSUMER_GROUP_DESCRIBE_ROW = GROUP_ROWS


def test_there_are_no_groups() -> None:
    assert answer_of(LIST_GROUPS_ROW, call_of(LIST_GROUPS, 5)) == {"groups": []}


def test_a_group_is_dead_and_from_version_6_on_not_found() -> None:
    rows = []
    for version, authorizer in ((5, AllowAll()), (6, AllowAll()), (6, Nobody())):
        services = services_of(authorizer=authorizer)
        answer = answer_of(
            DESCRIBE_GROUPS_ROW, call_of(DESCRIBE_GROUPS, version, {"groups": ["g"]}, services=services)
        )
        rows += answer["groups"]
    assert [row["group_id"] for row in rows] == ["g"] * 3
    assert [(row.get("error_code", 0), row.get("group_state")) for row in rows] == [
        (0, "Dead"),
        (69, "Dead"),
        (30, None),
    ]


def test_a_consumer_group_is_not_found_behind_those_without_a_name() -> None:
    body = {"group_ids": ["g", "", "g"]}
    answer = answer_of(CONSUMER_GROUP_DESCRIBE_ROW, call_of(CONSUMER_GROUP_DESCRIBE, 1, body))
    assert [(row["group_id"], row["error_code"]) for row in answer["groups"]] == [
        ("", 24),
        ("g", 69),
        ("g", 69),
    ]
    denied = answer_of(
        CONSUMER_GROUP_DESCRIBE_ROW,
        call_of(CONSUMER_GROUP_DESCRIBE, 1, body, services=services_of(authorizer=Nobody())),
    )
    assert {row["error_code"] for row in denied["groups"]} == {30}
