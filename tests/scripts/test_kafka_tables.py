from __future__ import annotations

import re
from typing import Any

import pytest

from broker_core.wire.kafka import LIST_TOPICS, Api, Reader
from broker_core.wire.kafka.fields import STRING, Cursor, Versions
from scripts.kafka_tables import APIS, DEFINITIONS, OWN, TABLES, api_table, definition, tables
from tests.support.kafka_oracles import DIRECTIONS
from tests.support.kafka_values import versions_of, written
from tests.support.narrowed import of_type
from tests.support.one_test import in_one_test

#: Kafka keeps their files, without versions.
REMOVED = {"ControlledShutdown", "LeaderAndIsr", "StopReplica", "UpdateMetadata"}
NAMES = {path.stem.removesuffix("Request") for path in DEFINITIONS.glob("*Request.json")}


def apis_of(source: str) -> dict[str, Api]:
    """The APIs of a module of tables, by name."""
    module: dict[str, Any] = {}
    exec(source, module)
    return {api.name: api for api in module["KAFKA_APIS"]}


#: Every API that Kafka has.
EACH = apis_of(tables(sorted(NAMES - REMOVED)))


def test_the_tables_are_those_of_the_definitions() -> None:
    assert TABLES.read_text(encoding="utf-8") == tables(APIS), "run `make kafka-tables`"


def test_the_definitions_are_of_all_keys_but_ours() -> None:
    assert {file.stem for file in DEFINITIONS.glob("*.json")} == {
        f"{name}{direction}" for name in NAMES for direction in ("Request", "Response")
    }
    keys = {definition(f"{name}Request")["apiKey"] for name in NAMES}
    assert keys == set(range(93))
    assert LIST_TOPICS.key not in keys


@in_one_test("api", EACH.values())
def test_each_api_of_kafka_can_have_a_table(api: Api) -> None:
    for _, version in versions_of(api):
        for direction in DIRECTIONS:
            value = getattr(api, direction).defaults()
            reader = Reader(written(api, direction, version, value))
            assert getattr(api, f"read_{direction}")(reader, version) == value
            assert reader.left == 0


@pytest.mark.parametrize("name", sorted(REMOVED))
def test_an_api_that_kafka_has_removed_can_have_none(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} has no versions"):
        tables([name])


def test_a_version_that_brokers_do_not_have_by_default_is_left_out() -> None:
    request = definition("InitProducerIdRequest")
    assert (request["validVersions"], request["latestVersionUnstable"]) == ("0-6", True)
    assert EACH["InitProducerId"].versions == (0, 5)
    assert "enable2_pc" not in EACH["InitProducerId"].request.defaults()


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"flexible": "3+"}, "Brokers: ['flexible'] mean nothing here"),
        ({"tag": 0, "taggedVersions": "9+"}, "Brokers has its tag in some of its versions alone"),
        ({"type": "int32", "default": "many"}, "many"),
    ],
)
def test_what_no_table_can_say_is_refused(
    change: dict[str, Any], fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(OWN, "MetadataResponse", [{"name": "Brokers", **change}])
    with pytest.raises(ValueError, match=re.escape(fault)):
        tables(["Metadata"])


def test_a_request_and_a_response_of_other_versions_are_refused() -> None:
    with pytest.raises(ValueError, match="Metadata: apiKey of the request and of the response"):
        api_table(definition("MetadataRequest"), definition("FetchResponse"))


@pytest.mark.parametrize("name", sorted(name.removesuffix("Request") for name in OWN if "Request" in name))
def test_pages_stand_beside_kafkas_fields(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = apis_of(tables([name]))[name]
    for direction in ("Request", "Response"):
        message = f"{name}{direction}"
        monkeypatch.setitem(OWN, message, [each for each in OWN[message] if "tag" not in each])
    kafkas = apis_of(tables([name]))[name]
    first = next(each for each in ours.request.fields if each.name == "cursor")
    inside = of_type(first.kind, Cursor)
    cursor = inside.defaults() | {
        each.name: "a" if each.kind is STRING else 7 for each in inside.fields if each.tag is None
    }
    page = {"response_pagination_limit": 7, "cursor": cursor}
    for _, version in versions_of(ours):
        assert written(ours, "request", version, {}) == written(kafkas, "request", version, {})
        assert written(ours, "response", version, {}) == written(kafkas, "response", version, {})
        data = written(ours, "request", version, page)
        if version not in Versions.parse(first.versions):
            assert data == written(kafkas, "request", version, {})
            continue
        assert ours.read_request(Reader(data), version) == ours.request.defaults() | page
        assert kafkas.read_request(Reader(data), version) == kafkas.request.defaults()
        for unreadable in (b"\x7fa", b"\x02\xff"):  # too long, and no UTF-8
            changed = data.replace(b"\x02a", unreadable)
            assert ours.read_request(Reader(changed), version)["cursor"] == {}
