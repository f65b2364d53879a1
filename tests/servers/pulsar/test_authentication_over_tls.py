"""Authentication of clients over TLS: by their certificates, and by what goes through TLS."""

from __future__ import annotations

import ssl

import pytest

from broker_core.access.authentication import Authenticator
from broker_core.servers.arrival import ServerCertificate
from broker_core.settings import AuthenticationSettings
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand, FeatureFlags
from tests.support.certificates import Authority
from tests.support.eventually import eventually
from tests.support.memory_lister import MemoryLister
from tests.support.pulsar_serving import serving
from tests.support.scripted_authenticator import ScriptedAuthenticator


@pytest.fixture
def alice(authority: Authority) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=authority.ca)
    issued = authority.issue("alice")
    context.load_cert_chain(issued.certificate, issued.key)
    return context


def by_certificates() -> Authenticator:
    return Authenticator(AuthenticationSettings.model_validate({"methods": ["tls"]}))


def connect(method: str, data: bytes = b"", flags: FeatureFlags | None = None) -> bytes:
    return commands.connect("v", auth_method_name=method, auth_data=data, feature_flags=flags)


async def test_the_role_is_the_common_name(certificate: ServerCertificate, alice: ssl.SSLContext) -> None:
    names = MemoryLister(["persistent://t/n/a"], at_once=False)
    async with serving(names, tls=certificate, authenticator=by_certificates()) as s:
        client = await s.tls_client(alice, handshake=False)
        await client.send(connect("tls"))
        assert (await client.receive()).type == BaseCommand.CONNECTED
        assert (await client.ask("t/n")).topics
        assert [request.asker.role for request in names.asked] == ["alice"]


async def test_a_client_without_a_certificate_has_no_role(
    certificate: ServerCertificate, trusting: ssl.SSLContext
) -> None:
    async with serving(tls=certificate, authenticator=by_certificates()) as s:
        over_tls, plain = await s.tls_client(trusting, handshake=False), await s.client(handshake=False)
        for client in (over_tls, plain):
            await client.send(connect("tls", b"alice") + commands.get_topics(1, "t/n") * 300)
            [answer] = await client.closed()
            assert answer.error.message == "Failed to authenticate"
            client.close()
        await eventually(lambda: s.server.connections == 0)
        assert s.sample("authentications_total", transport="pulsar", outcome="certificate") == 2


async def test_a_refusal_that_waits_is_read_over_tls(
    certificate: ServerCertificate, trusting: ssl.SSLContext
) -> None:
    async with serving(tls=certificate, authenticator=ScriptedAuthenticator()) as s:
        for _ in range(9):
            s.admission.pace.failed("127.0.0.1")
        client = await s.tls_client(trusting, handshake=False)
        await client.send(connect("token", b"!bad_token"))
        await client.send(commands.ping())
        assert [command.error.message for command in await client.closed()] == ["Failed to authenticate"]
