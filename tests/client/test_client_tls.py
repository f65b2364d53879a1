"""TLS of a client: the authorities it trusts, the certificate that it shows, files that change or are wrong."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from broker_core.client import ClientError, ClientTls, ConnectTimeout, LookupClient, LookupSession, TlsFailed
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand
from tests.support.certificates import Authority
from tests.support.eventually import eventually
from tests.support.scripted_server import Peer, ScriptedServer
from tests.support.tokens import rsa_key
from tests.support.topics_answers import get_topics_response

TOPIC = "persistent://t/n/x"


async def seven(peer: Peer, command: BaseCommand) -> None:
    peer.send(commands.partitioned_metadata_response(command.partitionMetadata.request_id, 7))


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


async def ask(url: str, tls: ClientTls | None, operation_timeout: float = 30.0) -> int:
    async with LookupSession(url, tls=tls, connect_timeout=30, operation_timeout=operation_timeout) as client:
        return await client.partitioned_metadata(TOPIC)


async def test_a_service_with_a_trusted_certificate_is_asked(authority: Authority) -> None:
    async with ScriptedServer(seven, tls=authority.issue("broker").server_context()) as server:
        assert server.url.startswith("pulsar+ssl://")
        assert await ask(server.url, ClientTls(authority.ca)) == 7
        assert await ask(server.url, ClientTls(ca=str(authority.ca))) == 7


async def test_the_system_trusts_no_test(authority: Authority) -> None:
    async with ScriptedServer(seven, tls=authority.issue("broker").server_context()) as server:
        with pytest.raises(
            TlsFailed, match=r"the certificate of 127\.0\.0\.1:\d+ is not accepted: unable to"
        ):
            await ask(server.url, None)


async def test_a_certificate_of_another_host_is_refused_unless_the_name_is_not_looked_at(
    authority: Authority,
) -> None:
    other = authority.issue("broker", hosts=("broker-1.example",)).server_context()
    async with ScriptedServer(seven, tls=other) as server:
        with pytest.raises(TlsFailed, match="IP address mismatch"):
            await ask(server.url, ClientTls(authority.ca))
        assert await ask(server.url, ClientTls(authority.ca, verify_hostname=False)) == 7


async def test_who_issued_it_is_looked_at_always(authority: Authority, tmp_path: Path) -> None:
    other = Authority(tmp_path, "other")
    async with ScriptedServer(seven, tls=other.issue("broker").server_context()) as server:
        with pytest.raises(TlsFailed, match="is not accepted"):
            await ask(server.url, ClientTls(authority.ca, verify_hostname=False))


async def test_an_expired_certificate_is_refused(authority: Authority) -> None:
    async with ScriptedServer(seven, tls=authority.issue("broker", expired=True).server_context()) as server:
        with pytest.raises(TlsFailed, match="certificate has expired"):
            await ask(server.url, ClientTls(authority.ca))


async def test_the_client_shows_its_certificate(authority: Authority) -> None:
    own = authority.issue("gateway", hosts=())
    context = authority.issue("broker").server_context(client_ca=authority.ca)
    async with ScriptedServer(seven, tls=context) as server:
        tls = ClientTls(authority.ca, own.certificate, own.key)
        assert await ask(server.url, tls) == 7
        shown = server.peers[0].writer.get_extra_info("peercert")
        assert shown["subject"] == ((("commonName", "gateway"),),)
        with pytest.raises(TlsFailed, match=r"want a certificate of the client|CERTIFICATE_REQUIRED"):
            await ask(server.url, ClientTls(authority.ca))


@asynccontextmanager
async def plain_server(answer: bytes) -> AsyncIterator[int]:
    """The port of a server without TLS that closes after its answer."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def test_the_wrong_port_is_named(authority: Authority) -> None:
    for answer, reason in (
        (b"", "closed the connection in the TLS handshake"),
        (b"HTTP/1.1 400", "speaks no TLS"),
    ):
        async with plain_server(answer) as port:
            with pytest.raises(TlsFailed, match=reason):
                await ask(f"pulsar+ssl://127.0.0.1:{port}", ClientTls(authority.ca))
    async with plain_server(bytes.fromhex("15030300020246")) as port:  # an alert of TLS
        with pytest.raises(TlsFailed, match=r"speaks TLS only: its URL is pulsar\+ssl://"):
            await ask(f"pulsar://127.0.0.1:{port}", None)
    for answer, told in (
        (b"HTTP/1.1 400 Bad Request", "speaks HTTP: its URL is http://"),
        (b"SSH-2.0-x\r\n", "no Pulsar"),
    ):
        async with plain_server(answer) as port:
            with pytest.raises(ClientError, match=told):
                await ask(f"pulsar://127.0.0.1:{port}", None)
    for answer, told in (
        (bytes.fromhex("15030300020246"), "speaks TLS only: the URL of its HTTP port is https://"),
        (b"\0\0\0\x05\0\0\0\x01x", "speaks another protocol"),
        (b"", "may speak another protocol than HTTP"),
    ):
        async with plain_server(answer) as port:
            with pytest.raises(ClientError, match=told):
                async with LookupClient(f"http://127.0.0.1:{port}", operation_timeout=2) as client:
                    await client.get_topics_under_namespace("a/b")
    async with plain_server(b"") as port:  # as a Java broker's port for TLS
        with pytest.raises(ClientError, match=r"\(Kafka\?\), or TLS only: try pulsar\+ssl://"):
            await ask(f"pulsar://127.0.0.1:{port}", None, operation_timeout=1)


async def test_a_server_that_is_silent_in_the_handshake_holds_nothing(authority: Authority) -> None:
    gone = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(1000):
            pass
        writer.close()
        gone.set()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    try:
        port = server.sockets[0].getsockname()[1]
        client = LookupSession(
            f"pulsar+ssl://127.0.0.1:{port}", tls=ClientTls(authority.ca), connect_timeout=0.2
        )
        with pytest.raises(ConnectTimeout, match=r"did not answer within 0\.2 s"):
            await client.connect()
        await eventually(gone.is_set, what="the socket is closed")
    finally:
        server.close()


async def test_a_large_answer_waits_for_room_over_tls_too(authority: Authority) -> None:
    names = [f"persistent://t/n/topic-{index:06d}" for index in range(20_000)]
    admitted: list[int] = []

    async def listing(peer: Peer, command: BaseCommand) -> None:
        request_id = command.getTopicsOfNamespace.request_id
        peer.send(get_topics_response(request_id, names, topics_hash=None, filtered=False))

    async def admit(size: int) -> None:
        admitted.append(size)

    context = authority.issue("broker").server_context()
    async with (
        ScriptedServer(listing, tls=context) as server,
        LookupSession(server.url, tls=ClientTls(authority.ca)) as client,
    ):
        answer = await client.get_topics("t/n", admit=admit)
        assert answer.topics == names
        assert len(admitted) == 1


def test_files_that_changed_are_read_again(authority: Authority, tmp_path: Path) -> None:
    tls = ClientTls(authority.ca)
    first = tls.context()
    assert tls.context() is first
    assert (first.minimum_version, tls.problem) == (ssl.TLSVersion.TLSv1_2, None)
    good = authority.ca.read_bytes()
    authority.ca.write_text("damaged")
    assert tls.context() is first, "the former one stays"
    assert "cannot read the trusted certificates" in str(tls.problem)
    authority.ca.write_bytes(good + good)
    assert tls.context() is not first
    assert tls.problem is None


def test_files_that_cannot_be_used(authority: Authority, tmp_path: Path) -> None:
    own, other = authority.issue("own"), authority.issue("other")
    locked = authority.issue("locked", password=b"secret")
    of_another_kind = tmp_path / "rsa.key"
    of_another_kind.write_bytes(rsa_key().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    for tls, reason in (
        (ClientTls(tmp_path / "absent.pem"), "absent.pem: no such file or directory"),
        (ClientTls(own.key), "trusted certificates in .*: "),
        (ClientTls(None, tmp_path / "absent.pem"), "no such file or directory"),
        (ClientTls(None, own.certificate, other.key), "the key is not the one of the certificate"),
        (ClientTls(None, own.certificate, of_another_kind), "the key is not the one of the certificate"),
        (ClientTls(None, own.certificate), "it has no PEM form"),
        (ClientTls(None, locked.certificate, locked.key), "the key is encrypted; decrypt it first"),
    ):
        with pytest.raises(TlsFailed, match=reason):
            tls.context()


def test_equal_files_are_equal_and_nothing_of_a_key_is_shown(authority: Authority) -> None:
    own = authority.issue("own")
    tls, again = (ClientTls(authority.ca, own.certificate, own.key) for _ in range(2))
    tls.context()
    assert tls == again
    assert hash(tls) == hash(again)
    assert os.fspath(own.key) in repr(tls)
    assert "PRIVATE" not in repr(tls)
    assert "SSLContext" not in repr(tls)
