"""The lookup client of this project against a real broker, past the gateway and through it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker_core.client import BlockingLookupClient, LookupClient, ServerRefused, topics_hash
from broker_core.errors import ServerError
from broker_core.names import Mode
from tests.interop.conftest import gateway_settings
from tests.interop.pulsar_peer import PulsarBroker
from tests.support.eventually import eventually
from tests.support.ports import free_ports
from tests.support.served import Served

pytestmark = pytest.mark.interop

NAMESPACE = "public/asked"
#: Longer than what the broker compiles (its subscriptionPatternMaxLength): it sends all topics, and the client filters.
LONG = f"persistent://{NAMESPACE}/orders-(eu|us)(|-[a-z]+|-{'x' * 200})"


@pytest.fixture(scope="module")
def topics(pulsar_broker: PulsarBroker) -> list[str]:
    """What is in the namespace, as a listing has it."""
    admin = pulsar_broker.admin
    admin.create_namespace(NAMESPACE)
    for name, partitions in {"orders-eu": 2, "orders-us-old": 0, "orders-us x": 0, "bills": 0}.items():
        admin.create_topic(f"persistent://{NAMESPACE}/{name}", partitions)
    return sorted(admin.topics(NAMESPACE))


@pytest.fixture(scope="module", params=["pulsar", "http"])
def service_url(request: pytest.FixtureRequest, pulsar_broker: PulsarBroker) -> str:
    if request.param == "pulsar":
        return pulsar_broker.service_url
    return f"http://127.0.0.1:{pulsar_broker.http_port}"


@pytest.fixture(scope="module")
def restarted(pulsar_broker: PulsarBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway on ports that stay the same when it is started again."""
    pulsar, http = free_ports(2)
    tables: dict[str, dict[str, object]] = {
        **gateway_settings(pulsar_broker),
        "pulsar": {"listen": f"127.0.0.1:{pulsar}"},
        "http": {"listen": f"127.0.0.1:{http}"},
    }
    folder: Path = tmp_path_factory.mktemp("restarted")
    with Served(folder, tables) as served:
        yield served


async def test_a_broker_lists_all_topics(service_url: str, topics: list[str]) -> None:
    async with LookupClient(service_url) as client:
        found = await client.get_topics_under_namespace(NAMESPACE)
        assert sorted(found) == topics
        assert found.topics_hash == topics_hash(topics)
        assert not (await client.get_topics_under_namespace(NAMESPACE, topics_hash=found.topics_hash)).changed
        assert set(await client.get_topics_under_namespace(NAMESPACE, Mode.ALL)) >= set(topics)


async def test_the_pattern_counts_whether_the_broker_applies_it_or_not(
    service_url: str, topics: list[str]
) -> None:
    matching = [name for name in topics if "/orders-" in name and " " not in name]
    async with LookupClient(service_url) as client:
        for pattern, by_broker in ((LONG, False), (f"persistent://{NAMESPACE}/orders-[a-z-]+", True)):
            found = await client.get_topics_under_namespace(NAMESPACE, topics_pattern=pattern)
            assert sorted(found) == matching
            assert found.filtered is (by_broker and service_url.startswith("pulsar"))
            again = await client.get_topics_under_namespace(
                NAMESPACE, topics_pattern=pattern, topics_hash=found.topics_hash
            )
            assert not again.changed


def test_partitions_and_brokers(service_url: str, pulsar_broker: PulsarBroker) -> None:
    with BlockingLookupClient(service_url) as client:
        assert client.partitioned_metadata(f"persistent://{NAMESPACE}/orders-eu") == 2
        assert client.partitioned_metadata(f"persistent://{NAMESPACE}/orders-us x") == 0
        with pytest.raises(ServerRefused) as refused:
            client.partitioned_metadata(f"persistent://{NAMESPACE}/none")
        assert refused.value.code is ServerError.TopicNotFound
        found = client.lookup(f"persistent://{NAMESPACE}/orders-us x")
        assert found.url == pulsar_broker.service_url


@pytest.mark.parametrize("road", ["pulsar", "http"])
async def test_a_gateway_is_killed_and_asked_again(
    restarted: Served, pulsar_broker: PulsarBroker, topics: list[str], road: str
) -> None:
    broker_url = pulsar_broker.service_url
    url = restarted.service_url if road == "pulsar" else f"http://{restarted.ready['http']}"
    async with LookupClient(url) as client:
        assert sorted(await client.get_topics_under_namespace(NAMESPACE)) == topics
        await asyncio.to_thread(restarted.kill)
        asked = asyncio.create_task(client.get_topics_under_namespace(NAMESPACE, timeout=300))
        await eventually(lambda: "cannot connect" in str(client._service.problem))
        await asyncio.to_thread(restarted.start)
        assert sorted(await asked) == topics
        assert await client.partitioned_metadata(f"persistent://{NAMESPACE}/orders-eu") == 2
        assert (await client.lookup(f"persistent://{NAMESPACE}/bills")).url == broker_url
