"""Scrapes of real servers under traffic of several kinds: one with a catalogue and plugins, and a gateway before it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp

from broker_core import TopicListingResult, hookimpl
from broker_core.broker import Broker
from broker_core.catalog import SqliteCatalog
from broker_core.client import ClientError, ClientTls, Credentials, LookupSession
from broker_core.client.kafka import AdminClient
from broker_core.names import TopicName
from broker_core.settings import Settings
from tests.support.certificates import Authority
from tests.support.eventually import eventually
from tests.support.htpasswd import write_htpasswd
from tests.support.promql import Scrape

__all__ = ["QUERY_WINDOW", "scraped_under_traffic"]

#: Seconds between the two scrapes, as their times say.
QUERY_WINDOW = 60.0


class Mixed:
    """Answers, fails and observes, as the properties of a consumer say."""

    @hookimpl
    async def broker_core_list_topics(self, namespace: Any, properties: Any) -> Any:
        match properties.get("do"):
            case "raise":
                raise RuntimeError("as asked")
            case "list":
                return TopicListingResult.success([f"persistent://{namespace}/listed"])
            case "lie":
                return TopicListingResult.success([f"persistent://{namespace}/a"], filtered=True)
        return None

    @hookimpl
    def broker_core_listing_served(self, outcome: Any) -> None:
        assert outcome.outcome


async def scraped_under_traffic(folder: Path) -> tuple[Scrape, Scrape, tuple[dict[str, str], dict[str, str]]]:
    """Two scrapes with traffic between them, and the texts of both by instance."""
    authority = Authority(folder)
    issued = authority.issue("server")
    catalogued = settings(
        folder / "a",
        pulsar={"tls": {"listen": "127.0.0.1:0", "certificate": issued.certificate, "key": issued.key}},
        authentication={
            "methods": ["basic"],
            "anonymous_role": "anonymous",
            "basic": {"file": write_htpasswd(folder / "users", app="right")},
        },
        authorization={
            "rules": [
                {
                    "roles": ["anonymous", "app"],
                    "namespaces": ["public/default"],
                    "actions": ["list", "lookup"],
                }
            ]
        },
        kafka={"listen": "127.0.0.1:0"},
        log={"access": {"path": folder / "access.jsonl"}},
        plugins={"mixed": {"on_failure": "stale", "max_stale": "5m"}},
    )
    with SqliteCatalog(catalogued.catalog.path) as catalog:
        for number in range(20):
            catalog.create(TopicName.parse(f"persistent://public/default/t{number}"))
    async with Broker(catalogued, plugins={"mixed": Mixed()}) as server:
        url = "pulsar://{}:{}".format(*server.pulsar_address)
        before_cluster = settings(folder / "b", upstream={"service_url": url})
        async with Broker(before_cluster) as gateway:
            brokers = {"a:8080": server, "b:8080": gateway}
            first = await _texts(brokers)
            await _traffic(server, gateway, ClientTls(ca=authority.ca))
            second = await _texts(brokers)
    now = time.time()
    return Scrape.of(now - QUERY_WINDOW, first), Scrape.of(now, second), (first, second)


def settings(folder: Path, **tables: Any) -> Settings:
    folder.mkdir()
    base = {
        "pulsar": {"listen": "127.0.0.1:0"},
        "http": {"listen": "127.0.0.1:0"},
        "catalog": {"path": folder / "topics.sqlite"},
    }
    merged = {name: base.get(name, {}) | tables.get(name, {}) for name in base | tables}
    return Settings.model_validate(merged)


async def _texts(brokers: Mapping[str, Broker]) -> dict[str, str]:
    texts = {}
    async with aiohttp.ClientSession() as session:
        for instance, broker in brokers.items():
            assert broker.http_address is not None
            async with session.get("http://{}:{}/metrics".format(*broker.http_address)) as response:
                assert response.status == 200
                texts[instance] = await response.text()
    return texts


async def _traffic(server: Broker, gateway: Broker, tls: ClientTls) -> None:
    url = "pulsar://{}:{}".format(*server.pulsar_address)
    assert server.pulsar_tls_address is not None
    tls_url = "pulsar+ssl://{}:{}".format(*server.pulsar_tls_address)
    async with LookupSession(url) as session:
        whole = await session.get_topics("public/default")
        await session.get_topics("public/default", pattern="public/default/t1.*")
        await session.get_topics("public/default", topics_hash=whole.topics_hash)
        for properties in ({"do": "list"}, {"do": "raise"}, {"do": "lie"}):
            await _asked(session.get_topics("public/default", pattern="x", properties=properties))
        await _asked(session.get_topics("secret/namespace"))
        await _asked(session.get_topics("public/default", pattern="("))
    async with LookupSession(tls_url, tls=tls) as session:
        await session.get_topics("public/default")
    wrong = Credentials("basic", lambda: b"app:wrong")
    await _asked(_connected(LookupSession(url, credentials=wrong)))
    async with LookupSession("pulsar://{}:{}".format(*gateway.pulsar_address)) as session:
        await session.get_topics("public/default")
        await _asked(session.partitioned_metadata("persistent://public/default/t1"))
        await _asked(session.partitioned_metadata("persistent://secret/namespace/t1"))
    assert server.http_address is not None
    api = "http://{}:{}/v1/namespaces".format(*server.http_address)
    async with aiohttp.ClientSession() as http:
        for path in ("public/default/topics", "public/default/topics?limit=3", "public/default/topics?bad=1"):
            async with http.get(f"{api}/{path}") as response:
                await response.read()
    assert server.kafka_address is not None
    async with AdminClient("{}:{}".format(*server.kafka_address)) as kafka:
        assert len(await kafka.list_topics()) == 20
    # The loop is looked at twice a second.
    lag = server.pipeline.metrics.registry
    await eventually(
        lambda: bool(lag.get_sample_value("broker_core_event_loop_lag_seconds_count")),
        what="a look at the loop",
    )


async def _asked(question: Any) -> None:
    try:
        await question
    except ClientError:
        pass


async def _connected(session: LookupSession) -> None:
    async with session:
        pass
