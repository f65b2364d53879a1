"""How the settings of [kafka.upstream] become the way that a cluster is asked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from broker_core.catalog import SqliteCatalog
from broker_core.client import CredentialsFailed, LookupClient
from broker_core.client.kafka import AdminClient, NewTopic, OAuthBearer, Plain, Sasl, Scram
from broker_core.kafka_gateway import NamespaceTaken, cluster_options
from broker_core.names import NamespaceName, TopicName
from broker_core.settings import KafkaUpstreamSettings, UpstreamSettings, UpstreamTlsSettings
from tests.support.fake_cluster import FakeCluster
from tests.support.kafka_gateway import NAMESPACE, Cluster, address_of, gateway, small_cluster


@pytest.fixture
async def pulsar() -> AsyncIterator[FakeCluster]:
    async with FakeCluster() as cluster:
        yield cluster


@pytest.fixture
async def kafka(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with small_cluster(tmp_path) as cluster:
        yield cluster


def before(pulsar: FakeCluster) -> dict[str, object]:
    return {"upstream": UpstreamSettings(service_url=pulsar.url)}


async def test_clusters_of_pulsar_and_kafka_are_behind_one_gateway(
    tmp_path: Path, pulsar: FakeCluster, kafka: Cluster
) -> None:
    pulsar.topics["acme/pulsar"] = ["persistent://acme/pulsar/a", "persistent://acme/pulsar/b"]
    async with gateway(tmp_path, kafka.address, tables=before(pulsar)) as broker:
        async with LookupClient("pulsar://{}:{}".format(*broker.pulsar_address)) as client:
            names = await client.get_topics_under_namespace(NamespaceName.parse("acme/pulsar"))
            assert list(names) == pulsar.topics["acme/pulsar"]
            names = await client.get_topics_under_namespace(NamespaceName.parse(NAMESPACE))
            assert [name.rpartition("/")[2] for name in names] == [
                "mail-partition-0",
                *(f"orders-partition-{number}" for number in range(3)),
                "secret.keys-partition-0",
            ]
        async with AdminClient(address_of(broker)) as admin:
            (await admin.create_topics([NewTopic("new", 2)])).all()
            assert {row.name for row in await admin.list_topics()} == {"mail", "new", "orders", "secret.keys"}
            (await admin.delete_topics(["new"])).all()
        assert "new" not in {row.name for row in await kafka.list_topics()}
        assert broker.http_address is not None
        url = "http://{}:{}/v1/namespaces".format(*broker.http_address)
        async with aiohttp.ClientSession() as http, http.get(url) as answer:
            listed = {row["namespace"] for row in (await answer.json())["items"]}
            assert listed == {NAMESPACE, "acme/pulsar"}
        # Each cluster has the changes of its own namespaces, or an error says whose they are.
        async with aiohttp.ClientSession() as http:
            async with http.put(f"{url}/{NAMESPACE}/topics/made", json={"partitions": 2}) as answer:
                made = await answer.json()
                assert (answer.status, made["partitions"]) == (201, 2)
            assert len((await kafka.describe_topics(["made"]))["made"].partitions) == 2
            async with http.put(f"{url}/acme/pulsar/topics/made", json={"partitions": 2}) as answer:
                assert answer.status == 501
                assert "the brokers behind it hold the topics" in (await answer.json())["detail"]
            for namespace, writes in ((NAMESPACE, True), ("acme/pulsar", False)):
                async with http.get(f"{url.rpartition('/')[0]}/me?namespace={namespace}") as answer:
                    assert (await answer.json())["server"]["writes"] is writes
            kind = {"Content-Type": "application/x-ndjson"}
            for namespace, status in (("acme/pulsar", 501), (NAMESPACE, 403)):
                path = f"{url}/{namespace}/topics:import"
                async with http.post(path, data=b"{}", headers=kind) as answer:
                    assert answer.status == status
            async with http.delete(f"{url}/{NAMESPACE}/topics/made") as answer:
                assert answer.status == 204
            assert "made" not in (await kafka.list_topics()).names()
        # One that is gone takes nothing of the other.
        await pulsar.server.stop()
        async with AdminClient(address_of(broker)) as admin:
            assert len(await admin.list_topics()) == 3


async def test_a_namespace_of_two_clusters_is_an_error_at_the_start(
    tmp_path: Path, pulsar: FakeCluster, kafka: Cluster
) -> None:
    pulsar.topics[NAMESPACE] = [f"persistent://{NAMESPACE}/a"]
    said = r"kafka\.upstream\.namespace: acme/kafka holds 1 topic of the Pulsar cluster of \[upstream\]"
    with pytest.raises(NamespaceTaken, match=said):
        async with gateway(tmp_path, kafka.address, tables=before(pulsar)):
            raise AssertionError


async def test_a_namespace_of_the_catalogue_too_is_an_error_at_the_start(
    tmp_path: Path, kafka: Cluster
) -> None:
    (tmp_path / "gateway").mkdir()
    with SqliteCatalog(tmp_path / "gateway" / "catalog.sqlite") as catalog:
        catalog.create(TopicName.parse(f"persistent://{NAMESPACE}/a"))
    with pytest.raises(NamespaceTaken, match="holds 1 topic of the catalogue, which nobody would be shown"):
        async with gateway(tmp_path, kafka.address):
            raise AssertionError


def sasl_of(**own: object) -> Sasl | None:
    table = {"bootstrap_servers": ["a"], "sasl": own}
    return cluster_options(KafkaUpstreamSettings.model_validate(table)).sasl


async def test_addresses_and_tls() -> None:
    options = cluster_options(
        KafkaUpstreamSettings(
            bootstrap_servers=("a", "[::1]:9093"),
            tls=UpstreamTlsSettings(ca=Path("ca.pem"), verify_hostname=False),
        )
    )
    assert options.bootstrap == (("a", 9092), ("::1", 9093))
    assert options.tls is not None
    assert (options.tls.ca, options.tls.verify_hostname) == (Path("ca.pem"), False)
    assert options.sasl is None


async def test_credentials_are_read_for_each_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("pencil\n")
    plain = sasl_of(mechanism="PLAIN", user="gateway", password=f"file:{secret}")
    assert isinstance(plain, Plain)
    assert await plain.exchange().first() == b"\0gateway\0pencil"
    secret.write_text("pen\n")
    assert await plain.exchange().first() == b"\0gateway\0pen"
    monkeypatch.setenv("KAFKA_TOKEN", "a.b.c")
    token = sasl_of(mechanism="OAUTHBEARER", token="env:KAFKA_TOKEN")
    assert isinstance(token, OAuthBearer)
    assert b"a.b.c" in await token.exchange().first()
    scram = sasl_of(user="gateway", password=f"file:{secret}")
    assert isinstance(scram, Scram)
    assert scram.mechanism == "SCRAM-SHA-512"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("file:nowhere/secret", "kafka.upstream.sasl.password: cannot read"),
        ("env:NO_SUCH_VARIABLE", "kafka.upstream.sasl.password: the variable NO_SUCH_VARIABLE is not set"),
        ("data:;base64,/w==", "kafka.upstream.sasl.password: 'utf-8'"),
    ],
)
async def test_a_secret_that_cannot_be_read_says_which(source: str, said: str) -> None:
    plain = sasl_of(mechanism="PLAIN", user="gateway", password=source)
    assert plain is not None
    with pytest.raises(CredentialsFailed, match=said):
        await plain.exchange().first()
