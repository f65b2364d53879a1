from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from broker_core.names import DOMAINS, NON_PERSISTENT, PERSISTENT, NamespaceName
from broker_core_postgres.fill.filling_failed import FillingFailed
from broker_core_postgres.fill.sync.cluster_source import ClusterSource
from broker_core_postgres.fill.sync.mirror_source import NamesOfDomain
from broker_core_postgres.fill.sync.pulsar_admin import AdminAddress, AdminRefused, PulsarAdmin
from broker_core_postgres.fill.sync.retry import Retry, TransientFailure
from broker_core_postgres.fill.sync.scope import EVERYTHING, Scope
from tests.support.admin_server import AdminServer, Fault

NAMESPACE = NamespaceName("public", "default")


@pytest.fixture
async def server() -> AsyncIterator[AdminServer]:
    async with AdminServer() as server:
        server.namespace("public/default")
        yield server


@pytest.fixture
async def admin(server: AdminServer) -> AsyncIterator[PulsarAdmin]:
    async with PulsarAdmin(AdminAddress(server.url), retry=Retry(tries=2, first=0.001), parallel=4) as admin:
        yield admin


def told(part: NamesOfDomain) -> dict[str, tuple[str, str | None]]:
    return {
        name: (topic, text)
        for name, topic, text in zip(part.names, part.topics, part.properties, strict=True)
    }


async def test_partitions_have_the_properties_of_their_topic(server: AdminServer, admin: PulsarAdmin) -> None:
    names = ["plain", "x-partition-0", "x-partition-1", "odd-partition-7", "p-partition-01"]
    server.namespace("public/default", names)
    server.partitioned["public/default", PERSISTENT] = ["x", "never-used"]
    prefix = "persistent://public/default/"
    server.properties = {
        f"{prefix}plain": {"of": "plain"},
        f"{prefix}x": {"of": "x"},
        f"{prefix}odd": {"of": "nobody"},
    }
    seen: list[tuple[int, int]] = []
    source = ClusterSource(admin, progress=lambda _, done, total: seen.append((done, total)))
    topics = await source.read_namespace(NAMESPACE)
    assert not topics.unread
    persistent, other = topics.parts
    assert told(persistent) == {
        "plain": ("plain", '{"of":"plain"}'),
        "x-partition-0": ("x", '{"of":"x"}'),
        "x-partition-1": ("x", '{"of":"x"}'),
        # The partitioned topic of this partition is gone, so its properties are unknown.
        "odd-partition-7": ("odd", None),
        "p-partition-01": ("p-partition-01", "{}"),
    }
    assert not other.names
    assert seen == [(number, 4) for number in (1, 2, 3, 4)]
    # One request for a topic, however many partitions it has.
    assert sum(path.endswith("/properties") for path in server.requests) == 4


async def test_of_non_persistent_topics_only_partitioned_ones_have_properties(
    server: AdminServer, admin: PulsarAdmin
) -> None:
    server.namespace("public/default", ["a", "x-partition-0"], domain=NON_PERSISTENT)
    server.partitioned["public/default", NON_PERSISTENT] = ["x"]
    server.properties = {"non-persistent://public/default/x": {"of": "x"}}
    topics = await ClusterSource(admin).read_namespace(NAMESPACE)
    assert told(topics.parts[1]) == {"a": ("a", "{}"), "x-partition-0": ("x", '{"of":"x"}')}
    assert "non-persistent/public/default/a/properties" not in server.requests


async def test_topics_without_properties_are_no_fault(server: AdminServer, admin: PulsarAdmin) -> None:
    """As pulsar-admin, producers and consumers make topics: without properties."""
    system = [
        "__change_events-partition-0",
        "__transaction_buffer_snapshot",
        "x-partition-0-multiTopicsReader",
    ]
    names = ["plain", "auto-partition-0", "auto-partition-1", "a%2Fb?#-partition-0", *system]
    for domain in DOMAINS:
        server.namespace("public/default", names, domain=domain)
        server.partitioned["public/default", domain] = ["auto", "a%2Fb?#", "unused", "__change_events"]
    topics = await ClusterSource(admin).read_namespace(NAMESPACE)
    assert not topics.unread
    for part in topics.parts:
        assert {name: text for name, (_, text) in told(part).items()} == dict.fromkeys(names, "{}")


async def test_properties_may_be_left_alone(server: AdminServer, admin: PulsarAdmin) -> None:
    server.namespace("public/default", ["a", "a"])
    topics = await ClusterSource(admin, properties=False).read_namespace(NAMESPACE)
    assert told(topics.parts[0]) == {"a": ("a", None)}
    assert len(topics) == 1
    assert not any(path.endswith("/properties") for path in server.requests)


async def test_properties_that_nobody_can_ask_for_are_left_and_told(
    server: AdminServer, admin: PulsarAdmin
) -> None:
    names = ["gone", "odd", "wrong", "nul", "good"]
    server.namespace("public/default", names)
    path = "persistent/public/default/{}/properties"
    server.fail(path.format("gone"), Fault(404), always=True)
    server.fail(path.format("odd"), Fault(412, '{"reason": "no such path"}'), always=True)
    server.answers[path.format("wrong")] = ["no", "map"]
    server.answers[path.format("nul")] = {"a": "\0"}
    topics = await ClusterSource(admin).read_namespace(NAMESPACE)
    of = told(topics.parts[0])
    assert [of[name][1] for name in names] == [None, None, None, None, "{}"]
    assert {name.rpartition("/")[2]: why for name, why in topics.unread.items()}.keys() == {
        "odd",
        "wrong",
        "nul",
    }
    assert "no such path" in topics.unread["persistent://public/default/odd"]


@pytest.mark.parametrize("status", [401, 403, 500])
async def test_a_fault_that_is_not_one_topics_own_fails_the_namespace(
    server: AdminServer, admin: PulsarAdmin, status: int
) -> None:
    server.namespace("public/default", [f"topic-{number}" for number in range(20)])
    server.fail("persistent/public/default/topic-7/properties", Fault(status), always=True)
    with pytest.raises(TransientFailure if status == 500 else AdminRefused, match=str(status)):
        await ClusterSource(admin).read_namespace(NAMESPACE)


async def test_a_namespace_that_went_meanwhile_has_no_topics(server: AdminServer, admin: PulsarAdmin) -> None:
    gone = NamespaceName("public", "gone")
    assert len(await ClusterSource(admin).read_namespace(gone)) == 0
    # The tenant still lists the namespace: the 404 is not believed.
    server.fail("persistent/public/default", Fault(404), always=True)
    with pytest.raises(AdminRefused, match="404"):
        await ClusterSource(admin).read_namespace(NAMESPACE)


async def test_the_inventory_is_that_of_the_scope(server: AdminServer, admin: PulsarAdmin) -> None:
    for name in ("a/b", "a/c", "team/b"):
        server.namespace(name)
    source = ClusterSource(admin)
    assert list(map(str, (await source.inventory(EVERYTHING)).namespaces)) == [
        "a/b",
        "a/c",
        "public/default",
        "team/b",
    ]
    server.requests.clear()
    found = await source.inventory(Scope.parse(["a"], ["*/b"]))
    assert list(map(str, found.namespaces)) == ["a/b"]
    assert server.requests == ["tenants", "namespaces/a"]


async def test_a_tenant_that_cannot_be_read_is_told(server: AdminServer, admin: PulsarAdmin) -> None:
    server.namespace("secret/one")
    server.fail("namespaces/secret", Fault(403, '{"reason": "no"}'), always=True)
    inventory = await ClusterSource(admin).inventory(EVERYTHING)
    assert list(map(str, inventory.namespaces)) == ["public/default"]
    assert inventory.failed.keys() == {"secret"}
    server.fail("namespaces/public", Fault(500), always=True)
    with pytest.raises(FillingFailed, match="No tenant of the cluster can be read"):
        await ClusterSource(admin).inventory(EVERYTHING)


async def test_who_is_not_let_in_reads_nothing(server: AdminServer, admin: PulsarAdmin) -> None:
    server.namespace("other/one")
    server.fail("namespaces/other", Fault(401), always=True)
    with pytest.raises(AdminRefused, match="401"):
        await ClusterSource(admin).inventory(EVERYTHING)


async def test_a_cluster_without_tenants_is_none(server: AdminServer, admin: PulsarAdmin) -> None:
    server.answers["tenants"] = []
    with pytest.raises(FillingFailed, match="no tenants at all"):
        await ClusterSource(admin).inventory(EVERYTHING)
