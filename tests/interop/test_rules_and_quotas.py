"""Rules about topics, and quotas, with the official clients: what they get, and keep while a reload changes it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

import pytest

from broker_core.client import BlockingLookupClient, OperationTimeout, Token
from broker_core.wire.kafka import API_VERSIONS
from tests.interop.kafka_clients.python.case_lines import Server
from tests.interop.kafka_programs import cases, differences
from tests.interop.kafka_stage import kafka_server
from tests.interop.maven import PeerUnavailable
from tests.interop.programs import JavaConsumers, PythonConsumer
from tests.interop.pulsar_peer import Admin, PulsarBroker, Security
from tests.interop.record_kafka_clients import recorded
from tests.interop.recording_relay import RecordingRelay
from tests.interop.stage import partitions_of, publish
from tests.support.eventually import eventually_sync
from tests.support.scraped import samples, total
from tests.support.served import Served, broker_core_command, to_toml

pytestmark = pytest.mark.interop

_SOON: Final = 60.0
_ROLE: Final = "app"
Rules = list[dict[str, Any]]


@dataclass(frozen=True)
class Guarded:
    """A gateway that asks its clients for tokens; its rules and quotas are changed by `broker-core reload`."""

    broker: PulsarBroker
    security: Security
    served: Served
    tables: Mapping[str, Any]
    folder: Path

    @property
    def admin(self) -> Admin:
        return self.broker.admin

    def reload(self, rules: Rules, quotas: Iterable[Mapping[str, Any]] = ()) -> None:
        self.served.config.write_text(
            to_toml({"quotas": list(quotas), **self.tables, "authorization": {"rules": rules}})
        )
        command = [broker_core_command(), "reload", "--config", str(self.served.config)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr

    def publish(self, topics: Iterable[str], text: str) -> set[tuple[str, str]]:
        """Send ``text`` to each topic, past the gateway; the pairs (topic, text) to expect."""
        return publish(self.broker.service_url, self.folder, topics, text)

    def java(self) -> JavaConsumers:
        token = self.security.token_file(_ROLE)
        log = self.folder / "java.log"
        return JavaConsumers(log, self.broker.jars, self.served.service_url, token=token)

    def python(self, pattern: str, subscription: str) -> PythonConsumer:
        token = self.security.token_file(_ROLE)
        log = self.folder / f"{subscription}.log"
        return PythonConsumer(log, self.served.service_url, pattern, subscription, token=token)

    def counted(self, name: str, label: str) -> float:
        with urlopen(f"http://{self.served.ready['http']}/metrics", timeout=10) as answer:
            return total(samples(answer.read().decode()), name, label)


@pytest.fixture(scope="module")
def guarded(pulsar_broker: PulsarBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    security = Security(folder / "security")
    tables = {
        "pulsar": {"listen": "127.0.0.1:0"},
        "http": {"listen": "127.0.0.1:0"},
        "admin": {"socket": str(folder / "admin")},
        "authentication": {"methods": ["token"], "token": {"key": f"file:{security.token_public_key}"}},
        "upstream": {"service_url": pulsar_broker.service_url},
    }
    with Served(folder, tables) as served:
        yield Guarded(pulsar_broker, security, served, tables, folder)


def _rule(*actions: str, effect: str = "allow", topics: Iterable[str] = ()) -> dict[str, Any]:
    about = {"topics": list(topics)} if topics else {}
    return {"roles": [_ROLE], "namespaces": ["public/*"], "actions": list(actions), "effect": effect, **about}


def _allow(*topics: str) -> dict[str, Any]:
    return _rule("list", "lookup", topics=topics)


def _deny(*topics: str) -> dict[str, Any]:
    return _rule("list", "lookup", effect="deny", topics=topics)


def test_consumers_follow_rules_about_topics_while_they_are_reloaded(guarded: Guarded) -> None:
    base = "persistent://public/rules"
    guarded.admin.create_namespace("public/rules")
    for name in ("orders", "orders-secret", "bills"):
        guarded.admin.create_topic(f"{base}/{name}")
    guarded.admin.create_topic(f"{base}/orders-p", 2)
    orders = [f"{base}/orders", *partitions_of(f"{base}/orders-p", 2)]
    bills, secret, late = f"{base}/bills", f"{base}/orders-secret", f"{base}/orders-late"
    everything = [*orders, bills, secret]
    guarded.reload([_allow("orders*"), _deny("*-secret")])
    first = guarded.publish(everything, "first")
    wanted = {each for each in first if each[0] in orders}

    with guarded.java() as java, guarded.python(f"{base}/.*", "python") as python:
        java.subscribe("java", f"{base}/.*")
        java.wait_received("java", wanted, _SOON)
        python.wait_subscribed(_SOON)
        python.wait_received(wanted, _SOON)
        assert python.received.keys() == wanted

        # A right is given: what was there already comes too.
        guarded.reload([_allow("orders*", "bills"), _deny("*-secret")])
        wanted |= {each for each in first if each[0] == bills}
        java.wait_received("java", wanted, _SOON)

        # All rights are taken away: an error, on which consumers keep what they have, and nobody begins.
        guarded.reload([])
        guarded.admin.create_topic(late)
        missed = guarded.publish([late], "late")
        wanted |= {each for each in guarded.publish(everything, "denied") if each[0] != secret}
        java.wait_received("java", wanted, _SOON)
        with pytest.raises(RuntimeError, match=r"AuthorizationException.*'app' has no right to list"):
            java.subscribe("java-denied", f"{base}/.*")
        with (
            pytest.raises(AssertionError, match="the program ended"),
            guarded.python(f"{base}/.*", "python-denied") as denied,
        ):
            denied.wait_subscribed(_SOON)
        for topic in (*orders, bills):
            assert guarded.admin.consumers(topic, "java") == 1

        # Given back: the topic that was made meanwhile is found.
        guarded.reload([_allow("orders*", "bills"), _deny("*-secret")])
        wanted |= missed
        java.wait_received("java", wanted, _SOON)

        # One topic is denied: Java closes its consumer, and goes on from its place once the topic is back.
        guarded.reload([_allow("orders*", "bills"), _deny("*-secret", "bills")])
        eventually_sync(
            lambda: guarded.admin.consumers(bills, "java") == 0, _SOON, what="no consumer of bills"
        )
        unseen = guarded.publish([bills], "unseen")
        assert guarded.admin.backlog(bills, "java") == 1
        guarded.reload([_allow("orders*", "bills"), _deny("*-secret")])
        wanted |= unseen
        java.wait_received("java", wanted, _SOON)

        assert dict(java.received("java")) == dict.fromkeys(wanted, 1)
        assert {topic for topic, _ in python.received} == set(orders)
        assert set(python.received.values()) == {1}
        assert guarded.admin.subscriptions(secret) == set()


def test_consumers_over_their_quota_are_refused_and_go_on(guarded: Guarded) -> None:
    base = "persistent://public/quotas"
    guarded.admin.create_namespace("public/quotas")
    early, late = f"{base}/early", f"{base}/late"
    guarded.admin.create_topic(early)
    guarded.reload([_allow()])
    wanted = guarded.publish([early], "first")
    # One request, then none for an hour; nobody waits.
    spent = {
        "name": "spent",
        "namespaces": ["public/quotas"],
        "requests": 1 / 3600,
        "burst": 1,
        "max_wait": 0,
    }

    with guarded.java() as java:
        java.subscribe("running", f"{base}/.*")
        java.wait_received("running", wanted, _SOON)
        guarded.reload([_allow()], [spent])
        token = Token(guarded.security.token_file(_ROLE))
        with (
            BlockingLookupClient(guarded.served.service_url, auth=token, operation_timeout=5) as client,
            pytest.raises(
                OperationTimeout, match="TooManyRequests: The quota 'spent'"
            ),  # it asks again till then
        ):
            while True:  # the consumer may have had the one request
                client.get_topics_under_namespace("public/quotas")
        with pytest.raises(RuntimeError, match=r"TooManyRequests.*quota 'spent' of this client is used up"):
            java.subscribe("java-refused", f"{base}/.*")
        with (
            pytest.raises(AssertionError, match="the program ended"),
            guarded.python(f"{base}/.*", "python-refused") as python,
        ):
            python.wait_subscribed(_SOON)
        assert "LookupError" in (guarded.folder / "python-refused.log").read_text()
        guarded.admin.create_topic(late)
        missed = guarded.publish([late], "late")
        wanted |= guarded.publish([early], "meanwhile")
        java.wait_received("running", wanted, _SOON)
        assert dict(java.received("running")) == dict.fromkeys(wanted, 1)
        assert guarded.counted("broker_core_quota_requests_total", "outcome=refused") >= 3

        guarded.reload([_allow()])
        wanted |= missed
        java.wait_received("running", wanted, _SOON)
        java.subscribe("java-later", f"{base}/.*")
        with guarded.python(f"{base}/.*", "python-later") as python:
            for receive in (partial(java.wait_received, "java-later"), python.wait_received):
                receive(wanted, _SOON)
        assert dict(java.received("running")) == dict.fromkeys(wanted, 1)


#: Requests of Kafka per second.
_RATE: Final = 20
#: Kafka's own client has no wait after this answer.
_DESCRIBE_CLUSTER: Final = 60


@pytest.fixture(scope="module")
def throttled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, RecordingRelay]]:
    """A server with a quota, and the relay that clients come by."""
    quota = {"name": "each", "requests": _RATE, "burst": 1 / _RATE, "per": ["address"]}
    folder = tmp_path_factory.mktemp("throttled")
    with (
        RecordingRelay() as relay,
        kafka_server(folder, kafka={"advertised": relay.address}, tables={"quotas": [quota]}) as server,
    ):
        relay.server = server.clients.address
        yield replace(server.clients, bootstrap=relay.address), relay


@pytest.mark.parametrize(("client", "waits"), [("java", True), ("confluent-kafka", False)])
def test_clients_of_kafka_over_their_quota_have_the_same_answers_later(
    throttled: tuple[Server, RecordingRelay], client: str, waits: bool, tmp_path: Path
) -> None:
    server, relay = throttled
    relay.taken()
    try:
        found = cases(client, server, tmp_path)
    except PeerUnavailable as error:
        pytest.skip(str(error))
    assert differences(recorded()[client], found) == {}
    connections = relay.taken()
    told = [
        (one, following)
        for exchanges in connections
        for one, following in pairwise(exchanges)
        if one.throttle > 0 and one.api != _DESCRIBE_CLUSTER
    ]
    assert told  # how many depends on how quickly the client asks
    if waits:
        assert all(following.asked - one.answered >= one.throttle for one, following in told)
    counted = [each for exchanges in connections for each in exchanges if each.api != API_VERSIONS.key]
    seconds = max(each.answered for each in counted) - min(each.asked for each in counted)
    assert len(counted) <= 2 + _RATE * seconds
