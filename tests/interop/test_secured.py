"""The official clients with tokens and TLS, through a secured gateway, before a secured broker."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path

import pytest

from broker_core.client import (
    ClientError,
    ClientTls,
    Credentials,
    HandshakeRefused,
    LookupClient,
    LookupSession,
    ServerRefused,
    Token,
)
from broker_core.errors import ServerError
from tests.interop import scenes_secured
from tests.interop.playing_scenes import playing_scenes
from tests.interop.pulsar_peer import GATEWAY, PeerUnavailable, PulsarBroker, Security
from tests.interop.secured_stage import BILLING, ORDERS, SHARED, SecuredStage, gateway_tables
from tests.support.eventually import eventually_sync
from tests.support.served import Served

pytestmark = pytest.mark.interop

SCENES: dict[str, Callable[[SecuredStage], None]] = {
    "java": scenes_secured.each_role_of_java_has_its_own,
    "go": scenes_secured.each_role_of_go_has_its_own,
    "python": scenes_secured.each_role_of_python_has_its_own,
    "token": scenes_secured.outlives_its_token,
}
_LONGEST = 1200.0


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredStage]:
    folder: Path = tmp_path_factory.mktemp("secured")
    security = Security(folder / "security")
    try:
        broker = PulsarBroker(folder / "pulsar", heap="384m", security=security)
    except PeerUnavailable as error:
        pytest.skip(str(error))
    with ExitStack() as stack:
        stack.enter_context(broker)
        yield SecuredStage.build(folder / "gateway", broker, security, stack)


@pytest.fixture(scope="module")
def playing(request: pytest.FixtureRequest, stage: SecuredStage) -> Iterator[dict[str, Future[None]]]:
    """The scenes that were selected, all of them playing."""
    with playing_scenes(request, SCENES, lambda _name: stage) as scenes:
        yield scenes


@pytest.mark.parametrize("scene", SCENES)
def test_scene(playing: dict[str, Future[None]], scene: str) -> None:
    try:
        playing[scene].result(_LONGEST)
    except PeerUnavailable as error:
        pytest.skip(str(error))


def _client(served: Served, security: Security, token: str, *, plain: bool = False) -> LookupSession:
    tls = None if plain else ClientTls(ca=security.ca)
    url = served.service_url if plain else served.tls_service_url
    return LookupSession(url, credentials=Credentials("token", token.encode), tls=tls)


async def test_a_role_gets_its_own_and_a_stranger_nothing(stage: SecuredStage) -> None:
    security, base = stage.security, f"persistent://{SHARED}"
    stage.create([f"{base}/orders-wire", f"{base}/billing-wire"])
    for role, word in {ORDERS: "orders", BILLING: "billing"}.items():
        async with _client(stage.gateway, security, security.token(role)) as client:
            answer = await client.get_topics(SHARED, pattern=f"{base}/.*-wire")
            assert list(answer.topics) == [f"{base}/{word}-wire"]
    async with _client(stage.gateway, security, security.token("stranger")) as client:
        for ask in (client.get_topics(SHARED), client.lookup(f"{base}/orders-wire")):
            with pytest.raises(ServerRefused) as refused:
                await ask
            assert refused.value.code is ServerError.AuthorizationError
        # Nothing tells a namespace that there is from one that there is not.
        texts = set()
        for namespace in (SHARED, "public/nowhere"):
            with pytest.raises(ServerRefused) as refused:
                await client.get_topics(namespace)
            texts.add(refused.value.message.replace(namespace, "NAMESPACE"))
        assert len(texts) == 1


@pytest.mark.parametrize("road", ["broker", "gateway", "broker's web service", "gateway's web service"])
async def test_the_lookup_client_has_the_rights_of_its_token(stage: SecuredStage, road: str) -> None:
    security, topic = stage.security, f"persistent://public/{ORDERS}/asked-wire"
    if topic not in stage.broker.admin.topics(f"public/{ORDERS}"):
        stage.create([topic])
    url = {
        "broker": stage.broker.tls_service_url,
        "gateway": stage.gateway.tls_service_url,
        "broker's web service": f"http://127.0.0.1:{stage.broker.http_port}",
        "gateway's web service": f"http://{stage.gateway.ready['http']}",
    }[road]
    async with LookupClient(
        url, auth=Token(security.token_file(ORDERS)), tls=ClientTls(ca=security.ca)
    ) as client:
        found = await client.get_topics_under_namespace(f"public/{ORDERS}", topics_pattern=f"{topic}.*")
        assert found == [topic]
        with pytest.raises(ServerRefused) as refused:
            await client.get_topics_under_namespace(f"public/{BILLING}")
        assert refused.value.code is ServerError.AuthorizationError
    async with LookupClient(url, auth=Token("not.a.token"), tls=ClientTls(ca=security.ca)) as client:
        with pytest.raises(ServerRefused) as refused:
            await client.get_topics_under_namespace(f"public/{ORDERS}")
        assert refused.value.code is ServerError.AuthenticationError
        assert "not.a.token" not in str(refused.value)


async def test_a_bad_token_gets_no_connection(stage: SecuredStage) -> None:
    for token in ("", "not.a.token", Security(stage.folder / "others").token(ORDERS)):
        with pytest.raises((HandshakeRefused, ClientError)) as refused:
            async with _client(stage.gateway, stage.security, token):
                pass
        assert "Failed to authenticate" in str(refused.value)


async def test_forwarded_tokens_are_decided_by_the_brokers(stage: SecuredStage, tmp_path: Path) -> None:
    """The gateway without credentials of its own: the brokers see the clients' tokens, and their rights decide."""
    security = stage.security
    tables = gateway_tables(stage.broker, security, forward="client")
    del tables["upstream"]["token"]
    tables["authorization"]["rules"] = [{"roles": ["*"], "namespaces": ["*"], "actions": ["list", "lookup"]}]
    topic = f"persistent://public/{ORDERS}/forwarded"
    stage.create([topic])
    with Served(tmp_path, tables) as served:
        async with _client(served, security, security.token(ORDERS)) as client:
            answer = await client.get_topics(f"public/{ORDERS}", pattern=f"{topic}.*")
            assert list(answer.topics) == [topic]
            assert (await client.lookup(topic)).url_tls == stage.broker.tls_service_url
        async with _client(served, security, security.token(BILLING)) as client:
            for ask in (client.get_topics(f"public/{ORDERS}"), client.lookup(topic)):
                with pytest.raises(ServerRefused) as refused:
                    await ask
                assert refused.value.code is ServerError.AuthorizationError


def test_a_replaced_certificate_is_served_without_a_restart(stage: SecuredStage) -> None:
    before = _served_certificate(stage)
    stage.security.server_certificate("gateway")
    eventually_sync(lambda: _served_certificate(stage) != before, 30, what="the replaced certificate")


def _served_certificate(stage: SecuredStage) -> bytes | None:
    host, _, port = stage.gateway.ready["pulsar+ssl"].rpartition(":")
    context = ssl.create_default_context(cafile=str(stage.security.ca))
    with (
        socket.create_connection((host, int(port)), timeout=10) as sock,
        context.wrap_socket(sock, server_hostname=host) as secured,
    ):
        return secured.getpeercert(binary_form=True)


def test_the_log_and_the_metrics_hold_no_token(stage: SecuredStage) -> None:
    text = stage.gateway.log.read_text()
    for file in stage.security.folder.glob("*.token"):
        assert file.read_text()[:40] not in text, file.name
    assert GATEWAY in text or "upstream" in text  # it is the log of this gateway


def test_restarts_lose_nothing(playing: dict[str, Future[None]], stage: SecuredStage) -> None:
    for scene in playing.values():
        scene.exception(_LONGEST)  # it is over, whichever way
    scenes_secured.outlives_restarts(stage)
