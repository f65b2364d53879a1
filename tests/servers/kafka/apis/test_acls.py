"""The APIs of ACLs: their codes, and what a change of ACLs does to the next request of anybody."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from broker_core.catalog import AclRow, CatalogBusy, SqliteCatalog
from broker_core.names import NamespaceName
from broker_core.settings import AuthorizationSettings
from broker_core.wire.kafka import CREATE_ACLS, DELETE_ACLS, DESCRIBE_ACLS, METADATA, Api, Fields
from tests.support.kafka_acls import acl, cluster_acl, put_acls
from tests.support.kafka_serving import RawKafkaClient, kafka_broker, raw_client
from tests.support.kafka_topics import create
from tests.support.vectors import acl_filters

NAMESPACE = NamespaceName.parse("public/default")
ME = "User:ANONYMOUS"
ON: dict[str, Any] = {"super_users": (ME,)}
_ACL = ("resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission_type")
_FILTER = (
    "resource_type_filter",
    "resource_name_filter",
    "pattern_type_filter",
    "principal_filter",
    "host_filter",
    "operation",
    "permission_type",
)
_ALL = (1, None, 1, None, None, 1, 1)


def filter_of(row: Any) -> Fields:
    return dict(zip(_FILTER, row, strict=True))


def creation_of(row: Any) -> Fields:
    fields = dict(zip(_ACL, row, strict=True))
    fields["resource_pattern_type"] = fields.pop("pattern_type")
    return fields


def described(answer: Fields) -> list[Any]:
    return [
        (*(resource[name] for name in _ACL[:3]), *(row[name] for name in _ACL[3:]))
        for resource in answer["resources"]
        for row in resource["acls"]
    ]


def deleted(result: Fields) -> list[Any]:
    return [tuple(row[name] for name in _ACL) for row in result["matching_acls"]]


@asynccontextmanager
async def client(catalog: SqliteCatalog, **kafka: Any) -> AsyncIterator[RawKafkaClient]:
    async with kafka_broker(catalog.path.parent, **kafka) as broker:
        assert broker.kafka_address is not None
        async with raw_client(broker.kafka_address) as opened:
            yield opened


async def codes(client: RawKafkaClient, version: int = 3) -> list[tuple[int, str | None]]:
    """The errors of the three APIs."""
    row = creation_of((2, "t", 3, "User:eve", "*", 3, 2))
    found = await client.ask(DESCRIBE_ACLS, version, filter_of(_ALL))
    (made,) = (await client.ask(CREATE_ACLS, version, {"creations": [row]}))["results"]
    (gone,) = (await client.ask(DELETE_ACLS, version, {"filters": [filter_of((2, "t", 3, *_ALL[3:]))]}))[
        "filter_results"
    ]
    return [(answer["error_code"], answer["error_message"]) for answer in (found, made, gone)]


async def test_without_an_authorizer_they_are_refused(catalog: SqliteCatalog) -> None:
    async with client(catalog) as asked:
        for version in (1, 2, 3):
            assert await codes(asked, version) == [
                (54, "No Authorizer is configured on the broker"),
                (54, "No Authorizer is configured."),
                (54, "No Authorizer is configured."),
            ]


async def test_they_need_describe_and_alter_on_the_cluster(catalog: SqliteCatalog) -> None:
    async with client(catalog) as asked:
        for rows, expected in (
            ([acl("t", "READ", ME)], [31, 31, 31]),
            ([cluster_acl("DESCRIBE", ME)], [0, 31, 31]),
            ([cluster_acl("ALTER", ME)], [0, 0, 0]),
            ([cluster_acl("ALTER", ME), cluster_acl("DESCRIBE", ME, deny=True)], [31, 0, 0]),
        ):
            put_acls(catalog, *rows)
            assert [code for code, _ in await codes(asked)] == expected


async def test_the_rules_of_the_settings_bind_them_too(catalog: SqliteCatalog) -> None:
    rules = AuthorizationSettings(mode="rules")
    async with kafka_broker(catalog.path.parent, tables={"authorization": rules}, **ON) as broker:
        assert broker.kafka_address is not None
        async with raw_client(broker.kafka_address) as asked:
            assert [code for code, _ in await codes(asked)] == [31, 31, 31]


async def test_acls_are_created_described_and_deleted_as_by_kafka(catalog: SqliteCatalog) -> None:
    recorded = acl_filters()
    stored = [tuple(row) for row in recorded["acls"]]
    async with client(catalog, **ON) as asked:
        for _ in range(2):  # one that is there already is no error
            answer = await asked.ask(CREATE_ACLS, 3, {"creations": [creation_of(row) for row in stored]})
            assert {(row["error_code"], row["error_message"]) for row in answer["results"]} == {(0, "")}
        assert sorted(catalog.kafka_acls(NAMESPACE)[1]) == sorted(stored)
        for case in recorded["describe"]:
            if case["error"] is not None:
                found = await asked.ask(DESCRIBE_ACLS, 3, filter_of(case["filter"]))
                assert [found["error_code"], found["error_message"]] == case["error"]
                assert sorted(described(found)) == [tuple(row) for row in case["found"]]
                resources = [tuple(row[name] for name in _ACL[:3]) for row in found["resources"]]
                assert len(resources) == len(set(resources))
        cases = [case for case in recorded["delete"] if case["error"] is not None][:30]
        for case in cases:
            answer = await asked.ask(DELETE_ACLS, 3, {"filters": [filter_of(case["filter"])] * 2})
            for result in answer["filter_results"]:
                assert [result["error_code"], result["error_message"]] == case["error"]
                assert sorted(deleted(result)) == [tuple(row) for row in case["deleted"]]
            left = set(stored) - {tuple(row) for row in case["deleted"]}
            assert set(catalog.kafka_acls(NAMESPACE)[1]) == left
            put_acls(catalog, *(AclRow(*row) for row in stored))


async def test_what_is_unknown_closes_the_connection_as_in_kafka(catalog: SqliteCatalog) -> None:
    closed = [case["filter"] for case in acl_filters()["describe"] if case["error"] is None]
    asked: list[tuple[Api, Fields]] = [(DESCRIBE_ACLS, filter_of(row)) for row in closed]
    asked += [(DELETE_ACLS, {"filters": [filter_of(row)]}) for row in closed]
    asked += [
        (CREATE_ACLS, {"creations": [creation_of(case["acl"])]})
        for case in acl_filters()["create"]
        if case["error"] is None
    ]
    async with kafka_broker(catalog.path.parent, **ON) as broker:
        assert broker.kafka_address is not None
        for api, body in asked:
            async with raw_client(broker.kafka_address) as opened:
                opened.send(api, 3, body)
                assert await opened.message() == b""


async def test_odd_acls_are_refused_one_by_one(catalog: SqliteCatalog) -> None:
    cases = [case for case in acl_filters()["create"] if case["error"] is not None]
    async with client(catalog, **ON) as asked:
        answer = await asked.ask(CREATE_ACLS, 2, {"creations": [creation_of(case["acl"]) for case in cases]})
        for case, result in zip(cases, answer["results"], strict=True):
            if case["error"][0] == -1:  # Kafka refuses the whole request then, and says no reason
                assert result["error_code"] == 42
            else:
                assert [result["error_code"], result["error_message"]] == case["error"]
    stored = set(catalog.kafka_acls(NAMESPACE)[1])
    assert stored == {tuple(case["acl"]) for case in cases if case["error"][0] == 0}


async def test_a_change_of_acls_changes_the_next_listing(catalog: SqliteCatalog) -> None:
    for name in ("orders", "other"):
        create(catalog, name)

    async def listed(client: RawKafkaClient) -> set[str]:
        rows = (await client.ask(METADATA, 12, {"topics": None}))["topics"]
        return {row["name"] for row in rows}

    may_alter = cluster_acl("ALTER", ME)
    put_acls(catalog, may_alter)
    async with client(catalog) as asked:
        assert await listed(asked) == set()
        for prefix, seen in ((3, {"orders"}), (4, {"orders"})):
            row = creation_of((2, "orders" if prefix == 3 else "ord", prefix, ME, "127.0.0.1", 8, 3))
            await asked.ask(CREATE_ACLS, 3, {"creations": [row]})
            assert await listed(asked) == seen
            await asked.ask(DELETE_ACLS, 3, {"filters": [filter_of((2, *_ALL[1:]))]})
            assert await listed(asked) == set()
        with SqliteCatalog(catalog.path) as another_process:
            put_acls(another_process, may_alter, acl("*", "READ", "User:*"))
        assert await listed(asked) == {"orders", "other"}


async def test_large_requests_are_bounded(catalog: SqliteCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Overlapping filters each answer what they match: without a bound they would answer any amount."""
    monkeypatch.setattr("broker_core.servers.kafka.apis.acls.MOST_CHANGES", 3)
    put_acls(catalog, *(acl(f"t-{number}", "READ") for number in range(3)))
    every, one = filter_of((2, None, 1, *_ALL[3:])), filter_of((2, "t-1", 3, *_ALL[3:]))
    creation = creation_of((2, "t", 3, "User:eve", "*", 3, 2))
    async with client(catalog, **ON) as asked:
        refused = await asked.ask(CREATE_ACLS, 3, {"creations": [creation] * 4})
        assert {row["error_code"] for row in refused["results"]} == {44}
        refused = await asked.ask(DELETE_ACLS, 3, {"filters": [every] * 4})
        assert {row["error_code"] for row in refused["filter_results"]} == {44}
        assert len(catalog.kafka_acls(NAMESPACE)[1]) == 3
        rows = (await asked.ask(DELETE_ACLS, 3, {"filters": [one, one, every]}))["filter_results"]
        assert [(row["error_code"], len(row["matching_acls"])) for row in rows] == [(0, 1), (0, 1), (44, 0)]
        assert len(catalog.kafka_acls(NAMESPACE)[1]) == 2
        monkeypatch.setattr("broker_core.servers.kafka.apis.acls._MOST_LOOKS", 3)
        rows = (await asked.ask(DELETE_ACLS, 3, {"filters": [one, every]}))["filter_results"]
        assert [row["error_code"] for row in rows] == [0, 44]


async def test_many_acls_are_looked_through_by_a_thread(catalog: SqliteCatalog) -> None:
    names = [f"t-{number:04}" for number in range(1_500)]
    put_acls(catalog, *(acl(name, "READ") for name in names))
    async with client(catalog, **ON) as asked:
        found = await asked.ask(DESCRIBE_ACLS, 3, filter_of(_ALL))
        assert [row["resource_name"] for row in found["resources"]] == names
        (gone,) = (await asked.ask(DELETE_ACLS, 3, {"filters": [filter_of(_ALL)]}))["filter_results"]
        assert len(gone["matching_acls"]) == 1_500
    assert catalog.kafka_acls(NAMESPACE)[1] == ()


async def test_a_catalogue_that_cannot_be_written_is_told_in_each_row(
    catalog: SqliteCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: object) -> int:
        raise CatalogBusy("somebody else writes")

    monkeypatch.setattr(SqliteCatalog, "change_kafka_acls", busy)
    row = creation_of((2, "t", 3, "User:eve", "*", 3, 2))
    async with client(catalog, **ON) as asked:
        answer = await asked.ask(CREATE_ACLS, 3, {"creations": [row, row | {"resource_name": ""}]})
    assert [(each["error_code"], each["error_message"]) for each in answer["results"]] == [
        (7, "somebody else writes"),
        (42, "Invalid empty resource name"),
    ]
