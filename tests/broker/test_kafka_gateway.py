"""How the settings of [kafka.upstream] become the way that a cluster is asked."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from broker_core.access.asker import Asker
from broker_core.broker.kafka_gateway import NamespaceTaken, cluster_options
from broker_core.client import CredentialsFailed, LookupClient
from broker_core.client.kafka import AdminClient, NewTopic, OAuthBearer, Plain, Sasl, Scram, TopicCollection
from broker_core.names import NamespaceName
from broker_core.settings import KafkaUpstreamSettings, UpstreamSettings, UpstreamTlsSettings
from broker_core.upstream.kafka.cluster_store import KafkaTopicStore
from tests.support.catalogue_topics import create_topics
from tests.support.fake_cluster import FakeCluster
from tests.support.files import file_with
from tests.support.kafka_gateway import NAMESPACE, Cluster, Secrets, address_of, gateway, small_cluster
from tests.support.narrowed import of_type, present


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
        url = "http://{}:{}/v1/namespaces".format(*present(broker.http_address))
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


@pytest.mark.parametrize("is_both", [True, False])
async def test_topics_by_their_ids_and_for_pulsar_admin_are_those_of_kafka(
    tmp_path: Path, pulsar: FakeCluster, kafka: Cluster, is_both: bool
) -> None:
    described = await kafka.describe_topics(["orders", "secret.keys"])
    orders, secret = (described[name].topic_id for name in ("orders", "secret.keys"))
    tables, plugins = before(pulsar) if is_both else {}, {"secrets": Secrets()}
    async with gateway(tmp_path, kafka.address, plugins, tables) as broker, aiohttp.ClientSession() as http:
        url = "http://{}:{}".format(*(broker.http_address or ()))

        async def ask(method: str, path: str, **more: object) -> tuple[int, Any]:
            async with http.request(method, url + path, **more) as answer:  # type: ignore[arg-type]
                return answer.status, await answer.json() if answer.content_type.endswith("json") else None

        by_id, by_name = f"/v1/topics/by-id/{orders}", f"/v1/namespaces/{NAMESPACE}/topics/orders"
        shown = await ask("GET", by_id)
        assert shown == await ask("GET", by_name)
        assert (shown[0], shown[1]["partitions"]) == (200, 3)
        for topic_id in (secret, uuid.UUID(int=7)):
            for method in ("GET", "DELETE"):
                assert (await ask(method, f"/v1/topics/by-id/{topic_id}"))[0] == 404
        async with AdminClient(address_of(broker)) as admin:
            found = await admin.describe_topics(TopicCollection.of_topic_ids([orders, secret]))
            assert list(found.errors) == [secret]
        assert (await ask("DELETE", by_id))[0] == 204
        assert (await ask("GET", by_id))[0] == (await ask("DELETE", by_id))[0] == 404
        assert "orders" not in (await kafka.list_topics()).names()

        path = f"/admin/v2/persistent/{NAMESPACE}"
        assert (await ask("PUT", f"{path}/made/partitions", json=2)) == (204, None)
        assert len((await kafka.describe_topics(["made"]))["made"].partitions) == 2
        assert (await ask("GET", f"{path}/made/partitions"))[1]["partitions"] == 2
        assert (await ask("GET", f"{path}/made/properties")) == (200, {})
        assert (await ask("GET", f"/admin/v2/namespaces/{NAMESPACE}"))[0] == 200
        assert (await ask("PUT", f"{path}/secret.keys/partitions", json=2))[0] == 409
        assert (await ask("DELETE", f"{path}/secret.keys/partitions"))[0] == 404
        assert (await ask("POST", f"{path}/made/partitions", json=3))[0] == 409  # Kafka's protocol does that
        assert (await ask("PUT", f"{path}/made/properties", json={"a": "b"}))[0] == 409
        assert (await ask("DELETE", f"{path}/made/partitions")) == (204, None)
        assert (await kafka.list_topics()).names() == ["mail", "secret.keys"]
        if is_both:
            status, said = await ask("PUT", "/admin/v2/persistent/acme/pulsar/made/partitions", json=2)
            assert (status, "ask the web service of a broker" in said["reason"]) == (501, True)
            assert (await ask("GET", "/admin/v2/tenants"))[0] == 501


async def test_a_topic_made_anew_meanwhile_is_not_deleted_by_the_id_of_the_former(
    tmp_path: Path, kafka: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    former = (await kafka.describe_topics(["mail"]))["mail"].topic_id
    delete = KafkaTopicStore.delete

    async def late(self: KafkaTopicStore, asker: Asker, topic_id: uuid.UUID) -> None:
        (await kafka.delete_topics(["mail"])).all()
        (await kafka.create_topics([NewTopic("mail")])).all()
        await delete(self, asker, topic_id)

    monkeypatch.setattr(KafkaTopicStore, "delete", late)
    async with gateway(tmp_path, kafka.address) as broker, aiohttp.ClientSession() as http:
        url = "http://{}:{}/v1/topics/by-id".format(*(broker.http_address or ()))
        async with http.delete(f"{url}/{former}") as answer:
            assert answer.status == 404
    assert "mail" in (await kafka.list_topics()).names()


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
    create_topics(tmp_path / "gateway" / "catalog.sqlite", f"persistent://{NAMESPACE}/a")
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
    secret = file_with(tmp_path / "secret", "pencil\n")
    plain = of_type(sasl_of(mechanism="PLAIN", user="gateway", password=f"file:{secret}"), Plain)
    assert [message async for message in plain.exchange()] == [b"\0gateway\0pencil"]
    secret.write_text("pen\n")
    assert [message async for message in plain.exchange()] == [b"\0gateway\0pen"]
    monkeypatch.setenv("KAFKA_TOKEN", "a.b.c")
    token = of_type(sasl_of(mechanism="OAUTHBEARER", token="env:KAFKA_TOKEN"), OAuthBearer)
    assert [b"a.b.c" in message async for message in token.exchange()] == [True]
    scram = of_type(sasl_of(user="gateway", password=f"file:{secret}"), Scram)
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
    plain = of_type(sasl_of(mechanism="PLAIN", user="gateway", password=source), Plain)
    with pytest.raises(CredentialsFailed, match=said):
        await anext(plain.exchange())
