"""Which page of HTTP a client may see, by its credentials and the rules."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import aiohttp
import pytest
from aiohttp.test_utils import make_mocked_request
from prometheus_client import CollectorRegistry

from broker_core.access.asker import Asker
from broker_core.access.authentication import AuthenticationFailed, Authenticator
from broker_core.access.authorization import Authorization
from broker_core.access.peer import Peer
from broker_core.access.principal import Principal
from broker_core.metrics.metrics import Metrics
from broker_core.pipeline.reports.finished_listings import QuestionCount
from broker_core.servers.http import (
    Endpoints,
    HttpAccess,
    HttpServer,
    ProtectedFromAll,
    Readiness,
    http_access,
)
from broker_core.servers.http.http_access import _challenges, _credentials
from broker_core.service import Admission
from broker_core.settings import AuthenticationSettings, AuthorizationSettings
from tests.support.pipelines import made

PAGES = ("/metrics", "/questions", "/plugins", "/-/live", "/-/ready")
RULES = {
    "super_roles": ["root"],
    "rules": [
        {"roles": ["scraper"], "namespaces": ["*"], "actions": ["monitor"]},
        {"roles": ["writer"], "namespaces": ["*"], "actions": ["admin"]},
        {"roles": ["team"], "namespaces": ["acme/*"], "actions": ["admin"]},
        {"roles": ["reader", "proxy"], "namespaces": ["*"], "actions": ["list", "lookup"]},
        {"roles": ["proxy"], "namespaces": ["*"], "actions": ["admin"]},
    ],
}


async def by_data(method: str, data: bytes, peer: Peer) -> Principal | None:
    """A plugin for tests: the data is the role, but for some."""
    assert peer.transport == "http"
    if method == "none":
        return None
    if data in (b"", b"wrong"):
        raise AuthenticationFailed("bad_token", "secret detail")
    return Principal(data.decode().partition(":")[0]) if method in ("token", "basic", "magic") else None


class Site:
    """A server with access, and a client of it."""

    def __init__(
        self, url: str, session: aiohttp.ClientSession, admission: Admission, metrics: Metrics
    ) -> None:
        self.url = url
        self.session = session
        self.admission = admission
        self._counts = metrics.authentication.counts

    @property
    def outcomes(self) -> dict[str, int]:
        """How often each outcome of an authentication was counted."""
        return {
            outcome: count
            for (transport, outcome), count in self._counts.items()
            if count and transport == "http"
        }

    async def get(self, path: str, role: str | None = None, **headers: str) -> aiohttp.ClientResponse:
        if role is not None:
            headers["Authorization"] = f"Bearer {role}"
        async with self.session.get(self.url + path, headers=headers) as answer:
            await answer.read()
            return answer

    async def statuses(self, role: str | None = None, **headers: str) -> list[int]:
        return [(await self.get(path, role, **headers)).status for path in PAGES]


@asynccontextmanager
async def site(
    *,
    authentication: dict[str, Any] | None = None,
    plugin: Any = by_data,
    rules: dict[str, Any] = RULES,
    protect: bool = False,
    identify: Callable[[Asker], Asker] | None = None,
    asked: list[Asker] | None = None,
) -> AsyncIterator[Site]:
    settings = AuthenticationSettings.model_validate(authentication or {})
    authenticator = Authenticator(settings, plugin)
    authorization = Authorization(
        AuthorizationSettings.model_validate(rules), authentication=authenticator.enabled
    )

    async def allowed(questions: Any, asker: Asker) -> list[QuestionCount]:
        if asked is not None:
            asked.append(asker)
        return list(questions)

    metrics = Metrics()
    admission = Admission(authenticator, metrics)
    async with made() as m:
        m.pipeline.authorization = authorization
        access = HttpAccess(admission, m.pipeline, protect=protect, identify=identify)
        endpoints = Endpoints(
            CollectorRegistry(),
            lambda: Readiness.READY,
            questions=lambda _: [],
            allowed=allowed,
            access=access,
        )
        server = HttpServer(endpoints)
        host, port = await server.start("127.0.0.1", 0)
        try:
            async with aiohttp.ClientSession() as session:
                yield Site(f"http://{host}:{port}", session, admission, metrics)
        finally:
            await server.close()


OPEN = [200, 200, 200, 200, 200]


async def test_without_authentication_all_is_open() -> None:
    async with site(plugin=None, rules={}) as there:
        assert await there.statuses() == OPEN
        assert there.outcomes == {}


@pytest.mark.parametrize(
    ("role", "statuses"),
    [
        (None, [200, 401, 401, 200, 200]),
        ("root", OPEN),
        ("scraper", OPEN),
        ("writer", OPEN),
        ("team", [200, 200, 403, 200, 200]),
        ("reader", [200, 403, 403, 200, 200]),
        ("wrong", [200, 401, 401, 200, 200]),
    ],
)
async def test_questions_and_plugins_are_never_open_with_authentication(
    role: str | None, statuses: list[int]
) -> None:
    async with site() as there:
        assert await there.statuses(role) == statuses


@pytest.mark.parametrize(
    ("role", "statuses"),
    [
        (None, [401] * 5),
        ("root", OPEN),
        ("scraper", OPEN),
        ("writer", OPEN),
        ("team", [403, 200, 403, 200, 200]),
        ("reader", [403, 403, 403, 200, 200]),
        ("wrong", [401] * 5),
    ],
)
async def test_all_pages_can_be_protected(role: str | None, statuses: list[int]) -> None:
    async with site(protect=True) as there:
        assert await there.statuses(role) == statuses


@pytest.mark.parametrize("path", ["/%70lugins", "/plugins?x=1", "//127.0.0.1/../plugins", "/plugins/"])
async def test_another_spelling_of_a_page_opens_nothing(path: str) -> None:
    async with site() as there:
        answer = await there.get(path)
        assert answer.status in (401, 404)
        async with there.session.head(there.url + "/plugins") as head:
            assert head.status == 401


async def test_a_refusal_says_what_is_wrong_and_nothing_of_a_secret() -> None:
    async with site(authentication={"methods": ["tls"]}) as there:
        nobody = await there.get("/plugins")
        assert await nobody.json() == {"error": "credentials are needed here"}
        assert nobody.headers.getall("WWW-Authenticate") == ['Bearer realm="broker-core"']
        wrong = await there.get("/plugins", "wrong")
        assert await wrong.json() == {"error": "Failed to authenticate"}
        denied = await there.get("/plugins", "reader")
        assert await denied.json() == {"error": "Role 'reader' has no right to monitor in all namespaces"}
        denied = await there.get("/questions", "reader")
        assert await denied.json() == {"error": "Role 'reader' has no right to monitor in any namespace"}
        assert there.outcomes == {"no_credentials": 1, "bad_token": 1, "ok": 2}


async def test_other_schemes_are_methods_too() -> None:
    async with site() as there:
        for header, status in (
            ("Basic cm9vdDpwYXNzd29yZA==", 200),
            ("Basic cmVhZGVyOnBhc3N3b3Jk", 403),
            ("Magic root", 200),
            ("Unknown root", 401),
            ("root", 401),
        ):
            assert (await there.get("/plugins", Authorization=header)).status == status, header


async def test_a_proxy_names_whom_it_asks_for_and_both_are_checked() -> None:
    authentication = {"proxy_roles": ["proxy"], "anonymous_role": "nobody"}
    name = "X-Original-Principal"
    asked: list[Asker] = []
    async with site(authentication=authentication, asked=asked) as there:
        assert (await there.get("/plugins", "proxy", **{name: "root"})).status == 200
        assert (await there.get("/plugins", "proxy", **{name: "reader"})).status == 403
        for role, original in (("proxy", ""), ("proxy", "proxy"), ("root", "team"), ("root", "root")):
            answer = await there.get("/plugins", role, **{name: original})
            assert (answer.status, await answer.json()) == (403, {"error": "Invalid roles."})
        assert (await there.get("/plugins", "proxy")).status == 403
        assert (await there.get("/questions", "proxy", **{name: "team"})).status == 200
    assert [(asker.role, asker.original_principal) for asker in asked] == [("proxy", "team")]
    assert asked[0].remote_address.startswith("127.0.0.1:")


async def test_an_anonymous_role_is_a_role() -> None:
    rules = {"rules": [{"roles": ["guest"], "namespaces": ["*"], "actions": ["admin"]}]}
    async with site(authentication={"anonymous_role": "guest"}, plugin=None, rules=rules) as there:
        assert await there.statuses() == OPEN
        assert await there.statuses("any token") == OPEN
        assert set(there.outcomes) == {"anonymous"}


async def test_a_program_that_embeds_the_server_says_who_asks() -> None:
    def identify(asker: Asker) -> Asker:
        return replace(asker, role=asker.client_version)

    async with site(plugin=None, identify=identify) as there:
        assert (await there.get("/plugins", **{"User-Agent": "root"})).status == 200
        assert (await there.get("/plugins", **{"User-Agent": "reader"})).status == 403


async def test_what_fails_counts_against_its_address() -> None:
    async with site(authentication={"proxy_roles": ["proxy"]}) as there:
        await there.get("/plugins")
        failures = there.admission.pace._failures
        assert not failures, "a client without credentials waits to be asked for them"
        await there.get("/plugins", "wrong")
        await there.get("/plugins", "proxy")
        assert round(failures["127.0.0.1"][0]) == 2


async def test_what_is_protected_from_all_is_refused() -> None:
    async with made() as m:
        with pytest.raises(ProtectedFromAll, match=r"http\.protect needs authentication"):
            HttpAccess(
                Admission(Authenticator(AuthenticationSettings()), Metrics()), m.pipeline, protect=True
            )


@pytest.mark.parametrize(("name", "status"), [("root", 200), ("reader", 403), (None, 401)])
async def test_the_role_of_a_certificate_is_its_common_name(
    monkeypatch: pytest.MonkeyPatch, name: str | None, status: int
) -> None:
    peer = Peer("192.0.2.7:1", "http", True, name)
    monkeypatch.setattr(http_access, "peer_of", lambda _request: peer)
    async with site(authentication={"methods": ["tls"]}, plugin=None) as there:
        assert (await there.get("/plugins")).status == status
    async with site(authentication={"anonymous_role": "nobody"}, plugin=None) as there:
        assert (await there.get("/plugins")).status == 403, "no method takes certificates"


@pytest.mark.parametrize(
    ("header", "method", "data"),
    [
        ("Bearer aaa.bbb.ccc", "token", b"aaa.bbb.ccc"),
        ("bearer  aaa ", "token", b"aaa"),
        ("Basic YWxpY2U6cHc6eA==", "basic", b"alice:pw:x"),
        ("Basic not base64", "basic", b""),
        ("Basic \udcff", "basic", b""),
        ("Basic", "basic", b""),
        ("Bearer", "token", b""),
        ("", "", b""),
        ("Negotiate abc", "negotiate", b"abc"),
        ("Bearer \udcff", "token", b"\xff"),
    ],
)
def test_a_header_is_a_method_and_its_data(
    monkeypatch: pytest.MonkeyPatch, header: str, method: str, data: bytes
) -> None:
    request = make_mocked_request("GET", "/plugins")
    monkeypatch.setattr(request, "_headers", {"Authorization": header})
    assert _credentials(request, None) == (method, data)
    assert _credentials(request, "of a certificate") == (method, data)


def test_a_certificate_counts_without_a_header() -> None:
    request = make_mocked_request("GET", "/plugins")
    assert _credentials(request, "alice") == ("tls", b"")
    assert _credentials(request, None) == (None, b"")


@pytest.mark.parametrize(
    ("methods", "schemes"),
    [
        (["token"], ["Bearer"]),
        (["basic"], ["Basic"]),
        (["tls", "basic", "token"], ["Bearer", "Basic"]),
        (["tls"], ["Bearer"]),
        ([], ["Bearer"]),
    ],
)
def test_a_challenge_names_what_clients_know(methods: list[str], schemes: list[str]) -> None:
    found = _challenges(methods)
    assert [text.split(" ")[0] for text in found] == schemes
    assert all('realm="broker-core"' in text for text in found)
