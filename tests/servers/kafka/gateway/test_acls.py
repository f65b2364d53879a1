"""ACLs of topics that may be hidden, through a gateway before a cluster that stores them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from broker_core.client.kafka import (
    AclBinding,
    AclFilter,
    AdminClient,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from broker_core.settings import AuthenticationSettings, AuthorizationRule, AuthorizationSettings
from tests.support.kafka_gateway import NAMESPACE, Cluster, Secrets, address_of, gateway, small_cluster

_TOPIC, _GROUP = ResourceType.TOPIC, ResourceType.GROUP
_PREFIXED, _LITERAL, _MATCH = PatternType.PREFIXED, PatternType.LITERAL, PatternType.MATCH
_PRINCIPALS: Final = ("User:ann", "User:bob")
_HIDDEN: Final = (_TOPIC, "secret.keys", _LITERAL)
_NOT_THERE: Final = (_TOPIC, "to.come", _LITERAL)
#: Resources that have ACLs of both principals, in order.
_THERE: Final = [
    (_TOPIC, "*", _LITERAL),
    (_TOPIC, "mail", _LITERAL),
    (_TOPIC, "secret.", _PREFIXED),
    _HIDDEN,
    _NOT_THERE,
    (_GROUP, "secret.keys", _LITERAL),
]
_MAY_ALL: Final = AuthorizationRule(roles=("anyone",), namespaces=(NAMESPACE,), actions=("*",))
_RULES: Final = {
    "authentication": AuthenticationSettings(anonymous_role="anyone"),
    "authorization": AuthorizationSettings(mode="rules", rules=(_MAY_ALL,)),
}


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with small_cluster(tmp_path, super_users=("User:ANONYMOUS",)) as cluster:
        bindings = [
            AclBinding(*resource, principal, "*", Operation.READ, Permission.ALLOW)
            for resource in _THERE
            for principal in _PRINCIPALS
        ]
        (await cluster.create_acls(bindings)).all()
        yield cluster


@asynccontextmanager
async def _through(
    folder: Path,
    cluster: Cluster,
    plugins: Mapping[str, object] | None = None,
    tables: Mapping[str, Any] | None = None,
) -> AsyncIterator[AdminClient]:
    async with (
        gateway(folder, cluster.address, plugins, tables) as front,
        AdminClient(address_of(front), api_timeout=10) as client,
    ):
        yield client


async def _resources(client: AdminClient) -> list[tuple[Any, ...]]:
    found = await client.describe_acls()
    assert {row[:3]: None for row in found}.keys() == {row[:3] for row in found}
    return sorted({row[:3] for row in found})


async def test_acls_of_hidden_topics_are_in_no_answer_nor_cursor(tmp_path: Path, cluster: Cluster) -> None:
    # A prefix, and every topic, name none; of a topic that is not there no mask can tell.
    shown = [each for each in _THERE if each not in (_HIDDEN, _NOT_THERE)]
    async with _through(tmp_path, cluster, {"secrets": Secrets()}) as client:
        assert await _resources(client) == shown
        pages = [{row[:3] for row in page} async for page in client.describe_acls_pages(limit=1)]
        assert pages == [{each} for each in sorted(shown, key=lambda row: (row[1], row[0]))]
    async with _through(tmp_path, cluster, tables=_RULES) as client:
        assert await _resources(client) == _THERE


@pytest.mark.parametrize(
    "wanted",
    [
        AclFilter(),
        AclFilter(principal="User:ann"),
        AclFilter(_TOPIC),
        AclFilter(_TOPIC, pattern=_LITERAL),
        AclFilter(_TOPIC, "secret.keys", _MATCH),
        AclFilter(name="secret.keys"),
        AclFilter(_TOPIC, "secret.keys", _LITERAL),
        AclFilter(_TOPIC, "mail", _MATCH),
        AclFilter(_TOPIC, pattern=_PREFIXED),
        AclFilter(_GROUP, principal="User:bob"),
    ],
)
async def test_a_filter_deletes_what_is_shown_and_no_more(
    tmp_path: Path, cluster: Cluster, wanted: AclFilter
) -> None:
    before = set(await cluster.describe_acls())
    async with _through(tmp_path, cluster, {"secrets": Secrets()}) as client:
        shown = set(await client.describe_acls())
        matching = {row for row in shown if wanted.matches(row)}
        every = AclFilter(_GROUP, "other")
        gone = await client.delete_acls([every, wanted, AclFilter(principal="User:nobody")])
        assert [sorted(gone[each].keys()) for each in gone] == [[], sorted(matching), []]
    assert set(await cluster.describe_acls()) == before - matching


async def test_an_acl_on_a_hidden_topic_is_refused_as_on_a_missing_one(
    tmp_path: Path, cluster: Cluster
) -> None:
    asked = {
        resource: AclBinding(*resource, "User:eve", "*", Operation.READ, Permission.ALLOW)
        for resource in ((_TOPIC, "never.there", _LITERAL), *_THERE)
    }
    before = set(await cluster.describe_acls())
    async with _through(tmp_path, cluster, {"secrets": Secrets()}) as client:
        made = await client.create_acls([*asked.values()])
        errors = {row[:3]: (type(error), str(error)) for row, error in made.errors.items()}
        assert errors.keys() == {(_TOPIC, "never.there", _LITERAL), _HIDDEN, _NOT_THERE}
        assert len(set(errors.values())) == 1
        (alone,) = (await client.create_acls([asked[_HIDDEN]])).errors.values()
        assert (type(alone), str(alone)) in errors.values()
        # What is made is shown, and is deleted again.
        mine = AclFilter(principal="User:eve")
        assert {row[:3] for row in await client.describe_acls(mine)} == asked.keys() - errors.keys()
        assert {row[:3] for row in await cluster.describe_acls(mine)} == asked.keys() - errors.keys()
        (await client.delete_acls([mine])).all()
    assert set(await cluster.describe_acls()) == before
    async with _through(tmp_path, cluster, tables=_RULES) as client:
        (await client.create_acls([*asked.values()])).all()


async def test_a_cluster_without_acls_deletes_none(tmp_path: Path) -> None:
    async with (
        small_cluster(tmp_path) as cluster,
        _through(tmp_path, cluster, {"secrets": Secrets()}) as client,
    ):
        # With a look at what is shown, whose error it is then, and without.
        for wanted, where in ((AclFilter(), " on the broker"), (AclFilter(_GROUP), ".")):
            (error,) = (await client.delete_acls([wanted])).errors.values()
            assert str(error) == f"SECURITY_DISABLED: No Authorizer is configured{where}"
