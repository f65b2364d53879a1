from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

import pytest

from broker_core.metrics.metrics import Metrics
from broker_core.reloads import Reloads
from broker_core.servers.arrival import (
    CertificateUnusable,
    RefusedArrival,
    ServerCertificate,
    TlsEntrance,
    TlsMetrics,
    common_name,
    tls_entrance,
    tls_entrances,
)
from broker_core.servers.arrival.socket_waits import readable
from broker_core.service import FailurePace
from broker_core.settings import KafkaSettings, KafkaTlsSettings, PulsarSettings, PulsarTlsSettings, Settings
from tests.support.certificates import Authority
from tests.support.tls_client import shake

Pair = tuple[socket.socket, socket.socket]
HOST = "192.0.2.7"


class Entrance:
    """An entrance with what it counts."""

    def __init__(self, authority: Authority) -> None:
        issued = authority.issue("entrance")
        self.metrics = Metrics()
        self.pace = FailurePace()
        self.certificate = ServerCertificate("pulsar.tls", issued.certificate, issued.key, authority.ca)
        self._tls = TlsEntrance("pulsar", self.certificate, TlsMetrics(self.metrics, ("pulsar",)), self.pace)

    async def enter(self, sock: socket.socket) -> ssl.SSLSocket:
        return await asyncio.wait_for(self._tls.enter(sock, HOST), 60)

    async def refused(self, sock: socket.socket) -> str:
        with pytest.raises(RefusedArrival) as refused:
            await self.enter(sock)
        assert sock.fileno() == -1
        value = self.metrics.registry.get_sample_value(
            "broker_core_tls_handshakes_total", {"listener": "pulsar", "outcome": refused.value.reason}
        )
        assert value == 1
        return refused.value.reason

    @property
    def failures(self) -> int:
        return round(sum(count for count, _ in self.pace._failures.values()))


@pytest.fixture
def entrance(authority: Authority) -> Entrance:
    return Entrance(authority)


@contextmanager
def both(server: socket.socket, client: socket.socket) -> Iterator[None]:
    yield
    server.close()
    client.close()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_client_enters_with_its_verified_name(
    entrance: Entrance, authority: Authority, pair: Pair, version: ssl.TLSVersion
) -> None:
    issued = authority.issue("team-a")
    context = ssl.create_default_context(cafile=authority.ca)
    context.minimum_version = context.maximum_version = version
    context.load_cert_chain(issued.certificate, issued.key)
    server, client = await asyncio.gather(entrance.enter(pair[0]), shake(pair[1], context))
    with both(server, client):
        assert common_name(server) == "team-a"
        assert server.version() == {"TLSv1_2": "TLSv1.2", "TLSv1_3": "TLSv1.3"}[version.name]
    assert entrance.failures == 0


async def test_a_client_without_a_certificate_has_no_name(
    entrance: Entrance, authority: Authority, pair: Pair
) -> None:
    context = ssl.create_default_context(cafile=authority.ca)
    server, client = await asyncio.gather(entrance.enter(pair[0]), shake(pair[1], context))
    with both(server, client):
        assert common_name(server) is None


@pytest.mark.parametrize(
    "subject",
    [((("commonName", "root"),), (("commonName", "reader"),)), ((("organizationName", "x"),),), ()],
)
def test_another_number_of_names_than_one_is_none(subject: object) -> None:
    class Certified:
        def getpeercert(self) -> dict[str, object]:
            return {"subject": subject}

    assert common_name(Certified()) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("expired", [False, True])
async def test_a_certificate_of_nobody_known_is_refused(
    entrance: Entrance, authority: Authority, pair: Pair, tmp_path: Path, expired: bool
) -> None:
    issued = (authority if expired else Authority(tmp_path, "stranger")).issue("late", expired=expired)
    context = ssl.create_default_context(cafile=authority.ca)
    context.load_cert_chain(issued.certificate, issued.key)
    shaking = asyncio.create_task(shake(pair[1], context))
    assert await entrance.refused(pair[0]) == "certificate"
    assert entrance.failures == 1
    (await shaking).close()  # with TLS 1.3 a client hears of it when it reads


async def test_a_client_that_does_not_trust_the_server(entrance: Entrance, pair: Pair) -> None:
    context = ssl.create_default_context()
    shaking = asyncio.create_task(shake(pair[1], context))
    assert await entrance.refused(pair[0]) == "alert"
    assert entrance.failures == 1
    with pytest.raises(ssl.SSLCertVerificationError):
        await shaking


async def test_old_versions_are_refused(entrance: Entrance, pair: Pair) -> None:
    # The first record of a client that knows TLS 1.1 at the most.
    hello = b"\x03\x02" + bytes(32) + b"\x00" + b"\x00\x02\xc0\x13" + b"\x01\x00"
    message = b"\x01" + len(hello).to_bytes(3, "big") + hello
    pair[1].send(b"\x16\x03\x01" + len(message).to_bytes(2, "big") + message)
    assert await entrance.refused(pair[0]) == "negotiation"
    assert entrance.failures == 1


async def test_what_is_not_tls_costs_nothing(entrance: Entrance, pair: Pair) -> None:
    pair[1].send(b"GET / HTTP/1.1\r\n\r\n")
    assert await entrance.refused(pair[0]) == "not_tls"
    assert entrance.failures == 0
    assert pair[1].recv(100) == b"\x15\x03\x01\x00\x02\x02\x0a"  # an alert, by which a client knows the port
    assert pair[1].recv(100) == b""


async def test_a_health_check_costs_nothing(entrance: Entrance, pair: Pair) -> None:
    pair[1].close()
    assert await entrance.refused(pair[0]) == "closed"
    assert entrance.failures == 0


async def test_silence_has_its_time(entrance: Entrance, pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls_entrance, "_HELLO", 0.0)
    assert await entrance.refused(pair[0]) == "time"
    assert entrance.failures == 0


async def test_a_handshake_that_is_given_up_is_a_failure(
    entrance: Entrance, authority: Authority, pair: Pair
) -> None:
    context = ssl.create_default_context(cafile=authority.ca)
    secured = context.wrap_socket(pair[1], do_handshake_on_connect=False, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        secured.do_handshake()
    entering = asyncio.create_task(entrance.refused(pair[0]))
    await readable(secured)
    secured.close()
    assert await entering == "closed"
    assert entrance.failures == 1


async def test_a_storm_waits_before_it_costs_more(
    entrance: Entrance, authority: Authority, pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(20):
        entrance.pace.failed(HOST)
    delays: list[float] = []
    sleep = asyncio.sleep

    async def slept(seconds: float) -> None:
        delays.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", slept)
    context = ssl.create_default_context(cafile=authority.ca)
    server, client = await asyncio.gather(entrance.enter(pair[0]), shake(pair[1], context))
    with both(server, client):
        assert any(delay > 1 for delay in delays)


async def test_a_new_certificate_is_that_of_the_next_handshake(
    entrance: Entrance, authority: Authority, pair: Pair
) -> None:
    other = authority.issue("renewed")
    entrance.certificate.context = ServerCertificate("pulsar.tls", other.certificate, other.key).context
    context = ssl.create_default_context(cafile=authority.ca)
    server, client = await asyncio.gather(entrance.enter(pair[0]), shake(pair[1], context))
    with both(server, client):
        assert dict(part[0] for part in client.getpeercert()["subject"])["commonName"] == "renewed"  # type: ignore[index, misc]


async def test_who_is_given_up_leaves_no_socket(entrance: Entrance, pair: Pair) -> None:
    entering = asyncio.create_task(entrance.enter(pair[0]))
    await asyncio.sleep(0)
    entering.cancel()
    await asyncio.gather(entering, return_exceptions=True)
    assert pair[0].fileno() == -1


def test_each_listener_is_shown(authority: Authority) -> None:
    metrics = Metrics()
    shown = TlsMetrics(metrics, ("pulsar", "http"))
    issued = authority.issue("metrics")
    certificate = ServerCertificate("http.tls", issued.certificate, issued.key)
    shown.show("http", certificate, lambda: 7)
    shown.handshake("pulsar", "done")

    def sample(name: str, **labels: str) -> float | None:
        return metrics.registry.get_sample_value(f"broker_core_tls_{name}", labels)

    assert sample("handshakes_total", listener="pulsar", outcome="done") == 1
    assert sample("handshakes_total", listener="http", outcome="certificate") == 0
    assert sample("certificate_expires_seconds", listener="http") == certificate.expires_at
    assert sample("certificate_expires_seconds", listener="pulsar") is None
    assert sample("handshakes_under_way", listener="http") == 7


async def test_each_listener_with_tls_has_an_entrance(authority: Authority) -> None:
    issued = authority.issue("entrances")
    kafka = KafkaTlsSettings(certificate=issued.certificate, key=issued.key, client_ca=authority.ca)
    settings = Settings(
        pulsar=PulsarSettings(tls=PulsarTlsSettings(certificate=issued.certificate, key=issued.key)),
        kafka=KafkaSettings(tls=kafka),
    )
    reloads = Reloads()
    async with AsyncExitStack() as stack:
        entrances = await tls_entrances(settings, Metrics(), reloads, stack)
        assert set(entrances) == {"pulsar", "kafka"}
        # Nothing may come before the answer to a Kafka client's first request.
        tickets = {name: each.certificate.context.num_tickets for name, each in entrances.items()}
        assert tickets == {"pulsar": 2, "kafka": 0}


async def test_without_tls_there_is_none() -> None:
    async with AsyncExitStack() as stack:
        assert await tls_entrances(Settings(), Metrics(), Reloads(), stack) == {}


async def test_a_file_that_is_not_there_names_its_setting(tmp_path: Path) -> None:
    tls = KafkaTlsSettings(certificate=tmp_path / "no.pem", key=tmp_path / "no.key")
    async with AsyncExitStack() as stack:
        with pytest.raises(CertificateUnusable, match=r"kafka\.tls\.certificate"):
            await tls_entrances(Settings(kafka=KafkaSettings(tls=tls)), Metrics(), Reloads(), stack)
