"""The authorizer of the catalogue's ACLs: when it is on, and that a change binds the next request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest

from broker_core.access.asker import Asker
from broker_core.catalog import KafkaAclReader, SqliteCatalog
from broker_core.kafka.acls.bindings import (
    CLUSTER_NAME,
    CLUSTER_OPERATIONS,
    TOPIC_OPERATIONS,
    Operation,
    ResourceType,
)
from broker_core.names import NamespaceName
from broker_core.servers.kafka.callers.authorizer import Authorizer, Caller
from broker_core.settings import KafkaSettings
from tests.support.kafka_acls import acl, cluster_acl, put_acls
from tests.support.kafka_topics import create, kafka_topics, names

_TOPIC, _DESCRIBE = ResourceType.TOPIC, Operation.DESCRIBE


def caller(role: str | None = "ann", namespace: str = "public/default", host: str = "10.0.0.1") -> Caller:
    asker = Asker(role=role, remote_address=f"{host}:5000", transport="kafka")
    return Caller(asker=asker, namespace=NamespaceName.parse(namespace), deadline=float("inf"))


@pytest.fixture
async def made(catalog: SqliteCatalog) -> AsyncIterator[Any]:
    opened = []

    def make(**settings: Any) -> Authorizer:
        opened.append(Authorizer(KafkaSettings(**settings), KafkaAclReader(catalog)))
        return opened[-1]

    yield make
    for each in opened:
        each.close()


async def allowed(authorizer: Authorizer, call: Caller, name: str = "orders") -> bool:
    if not authorizer.is_current(call):
        await authorizer.refresh(call)
    return authorizer.allows(call, _DESCRIBE, _TOPIC, name)


async def test_without_settings_and_acls_all_is_allowed(made: Any) -> None:
    authorizer = made()
    assert await allowed(authorizer, caller())
    assert not authorizer.enabled
    assert authorizer.topic_operations(caller(), "orders") == TOPIC_OPERATIONS
    assert authorizer.cluster_operations(caller()) == CLUSTER_OPERATIONS
    assert authorizer.bindings(caller()) == ()


async def test_the_first_acl_turns_it_on_and_the_last_one_off(catalog: SqliteCatalog, made: Any) -> None:
    authorizer = made()
    for _ in range(2):
        assert await allowed(authorizer, caller())
        put_acls(catalog, acl("orders", "READ"))
        assert await allowed(authorizer, caller())
        assert authorizer.enabled
        assert not await allowed(authorizer, caller(), "other")
        assert not await allowed(authorizer, caller("bob"))
        # None is stored in vain: the ACLs of one namespace bind in the others too.
        assert not await allowed(authorizer, caller(namespace="public/other"))
        put_acls(catalog)
        assert await allowed(authorizer, caller("bob"))
        assert not authorizer.enabled


async def test_super_users_turn_it_on_and_are_bound_by_nothing(catalog: SqliteCatalog, made: Any) -> None:
    authorizer = made(super_users=("User:root",))
    put_acls(catalog, acl("*", "ALL", "User:*", deny=True))
    assert await allowed(authorizer, caller("root"))
    assert not await allowed(authorizer, caller("ann"))
    assert authorizer.enabled
    assert authorizer.topic_operations(caller("root"), "orders") == TOPIC_OPERATIONS


async def test_everybody_may_do_what_no_acl_is_about_where_the_settings_say_so(
    catalog: SqliteCatalog, made: Any
) -> None:
    authorizer = made(allow_everyone_if_no_acl_found=True)
    put_acls(catalog, acl("orders", "READ", "User:bob"))
    assert await allowed(authorizer, caller(), "other")
    assert not await allowed(authorizer, caller(), "orders")
    assert authorizer.enabled


async def test_what_was_not_read_yet_is_denied(catalog: SqliteCatalog, made: Any) -> None:
    authorizer = made(super_users=("User:root",), allow_everyone_if_no_acl_found=True)
    assert not authorizer.is_current(caller())
    assert not authorizer.allows(caller(), _DESCRIBE, _TOPIC, "orders")


async def test_a_slow_read_does_not_undo_what_a_later_one_has_found(
    catalog: SqliteCatalog, made: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    authorizer, call = made(), caller("bob")
    reader = authorizer._reader
    earlier = await reader.read(call.namespace)  # nothing is stored, and all is allowed
    put_acls(catalog, acl("orders", "READ"))
    assert not await allowed(authorizer, call)

    async def overtaken(_namespace: NamespaceName) -> Any:
        return earlier

    monkeypatch.setattr(reader, "read", overtaken)
    await authorizer.refresh(call)
    assert authorizer.enabled
    assert not authorizer.allows(call, _DESCRIBE, _TOPIC, "orders")
    assert authorizer.allows(caller("ann"), _DESCRIBE, _TOPIC, "orders")


async def test_without_a_catalogue_the_settings_decide() -> None:
    authorizer = Authorizer(KafkaSettings(super_users=("User:root",)), None)
    assert await allowed(authorizer, caller("root"))
    assert not await allowed(authorizer, caller())
    everyone = Authorizer(KafkaSettings(allow_everyone_if_no_acl_found=True), None)
    assert await allowed(everyone, caller())
    await everyone.refresh(caller())
    everyone.close()


async def test_acls_are_those_of_the_namespace_the_host_and_the_principal(
    catalog: SqliteCatalog, made: Any
) -> None:
    authorizer = made()
    put_acls(catalog, acl("orders", "READ", host="10.0.0.1"), acl("free", "READ", "User:ANONYMOUS"))
    put_acls(catalog, cluster_acl("ALTER"), namespace="public/other")
    assert await allowed(authorizer, caller())
    assert not await allowed(authorizer, caller(host="10.0.0.2"))
    assert await allowed(authorizer, caller(None), "free")
    other = caller(namespace="public/other")
    assert not await allowed(authorizer, other)
    assert authorizer.allows(other, Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME)
    assert authorizer.cluster_operations(other) == (1 << Operation.ALTER) + (1 << Operation.DESCRIBE)
    assert [row.name for row in authorizer.bindings(caller())] == ["free", "orders"]


async def test_a_listing_shows_what_acls_let_describe_and_its_operations(
    catalog: SqliteCatalog, made: Any
) -> None:
    for name in ("a", "orders-eu", "orders-us", "z"):
        create(catalog, name)
    authorizer = made()

    async def seen(rows: Iterable[Any], role: str = "ann") -> list[str]:
        put_acls(catalog, *rows)
        await allowed(authorizer, caller(role))
        return names(await kafka.topics.of(caller(role)))

    async with kafka_topics(catalog, authorizer=authorizer) as kafka:
        assert await seen([]) == ["a", "orders-eu", "orders-us", "z"]
        prefixed = acl("orders-", "READ", prefix=True)
        assert await seen([prefixed]) == ["orders-eu", "orders-us"]
        assert await seen([prefixed], role="bob") == []
        assert await seen([prefixed, acl("orders-us", "DESCRIBE", deny=True)]) == ["orders-eu"]
        (chunk,) = (await kafka.topics.of(caller())).table.chunks
        (bits,) = authorizer.chunk_operations(caller(), [chunk])
        assert bits is not None
        assert bits.tolist() == [0, (1 << 3) + (1 << 8), 1 << 3, 0]
