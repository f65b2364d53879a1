"""The client and a server with tokens and TLS, by both protocols, while the server is killed and started again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from broker_core.catalog import SqliteCatalog
from broker_core.client import (
    Basic,
    ClientTls,
    HandshakeRefused,
    LookupClient,
    ServerRefused,
    Tls,
    TlsFailed,
    Token,
)
from broker_core.errors import ServerError
from broker_core.names import TopicName
from tests.support.certificates import Authority
from tests.support.ports import free_ports
from tests.support.served import Served
from tests.support.tokens import der, rsa_key, token

NAMES = [f"persistent://acme/shop/orders-{number}" for number in range(20)]
PATTERN = "acme/shop/orders-1.*"
MATCHING = [name for name in sorted(NAMES) if name.partition("orders-")[2].startswith("1")]


class Secured:
    """A server that asks for tokens or client certificates, and may be killed and started again on the same ports."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority(folder)
        issued = self.authority.issue("server")
        (folder / "public.der").write_bytes(der(rsa_key()))
        with SqliteCatalog(folder / "topics.sqlite") as catalog:
            for name in NAMES:
                catalog.create(TopicName.parse(name))
        plain, pulsar, plain_http, http = free_ports(4)
        files = {"certificate": str(issued.certificate), "key": str(issued.key)}
        client_ca = {"client_ca": str(self.authority.ca)}
        tables: dict[str, dict[str, Any]] = {
            "catalog": {"path": str(folder / "topics.sqlite")},
            "pulsar": {
                "listen": f"127.0.0.1:{plain}",
                "tls": {"listen": f"127.0.0.1:{pulsar}", **files, **client_ca},
            },
            "http": {
                "listen": f"127.0.0.1:{plain_http}",
                "tls": {"listen": f"127.0.0.1:{http}", **files, **client_ca},
            },
            "authentication": {
                "methods": ["token", "tls"],
                "token": {"key": f"file:{folder}/public.der"},
            },
            "authorization": {
                "rules": [{"roles": ["alice"], "namespaces": ["acme/shop"], "actions": ["list", "lookup"]}]
            },
        }
        self.served = Served(folder, tables)
        self.urls = {"pulsar": f"pulsar+ssl://127.0.0.1:{pulsar}", "http": f"https://127.0.0.1:{http}"}
        self.tls = ClientTls(self.authority.ca)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    made = Secured(tmp_path_factory.mktemp("secured"))
    with made.served:
        yield made


@pytest.fixture(params=["pulsar", "http"])
def new_client(request: pytest.FixtureRequest, secured: Secured) -> Callable[..., LookupClient]:
    def make(auth: Any, **options: Any) -> LookupClient:
        return LookupClient(secured.urls[request.param], auth=auth, **{"tls": secured.tls, **options})

    return make


async def test_a_role_gets_its_namespace_and_no_other(new_client: Callable[..., LookupClient]) -> None:
    async with new_client(Token(token({"sub": "alice"}).decode())) as client:
        found = await client.get_topics_under_namespace("acme/shop", topics_pattern=PATTERN)
        assert found == MATCHING
        assert found.filtered
        again = await client.get_topics_under_namespace(
            "acme/shop", topics_pattern=PATTERN, topics_hash=found.topics_hash
        )
        assert not again.changed
        with pytest.raises(ServerRefused) as refused:
            await client.get_topics_under_namespace("acme/other")
        assert refused.value.code is ServerError.AuthorizationError


async def test_a_client_certificate_is_a_role(
    secured: Secured, new_client: Callable[..., LookupClient]
) -> None:
    own = secured.authority.issue("alice")
    async with new_client(Tls(own.certificate, own.key)) as client:
        assert await client.get_topics_under_namespace("acme/shop", topics_pattern=PATTERN) == MATCHING


async def test_who_is_not_known_is_refused_at_once(new_client: Callable[..., LookupClient]) -> None:
    other = token({"sub": "alice"}, key=rsa_key(1)).decode()
    for auth in (None, Token(other), Basic("alice", "geheim")):
        async with new_client(auth) as client:
            with pytest.raises(HandshakeRefused) as refused:
                await client.get_topics_under_namespace("acme/shop")
            assert refused.value.code is ServerError.AuthenticationError
            for secret in (other, "geheim"):
                assert secret not in str(refused.value)
    async with new_client(None, tls=ClientTls()) as client:
        with pytest.raises(TlsFailed, match="is not accepted"):
            await client.get_topics_under_namespace("acme/shop")
