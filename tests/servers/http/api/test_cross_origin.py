"""What the pages of browsers may ask: those of this server, by a host that no stranger can name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from broker_core import HttpSite, hookimpl
from tests.support.api_serving import NAMESPACE, ApiServed, api_served
from tests.support.tokens import data_url, der, rsa_key, token

LISTING = f"{NAMESPACE}/topics"
EXPLAIN = f"{NAMESPACE}/explain"


class Page:
    """A plugin with a page."""

    def __init__(self, folder: Path, *, changes: bool, prefix: str = "/") -> None:
        self.folder = folder
        self.changes = changes
        self.prefix = prefix
        (folder / "index.html").write_text("<title>Topics</title>")

    @hookimpl
    def broker_core_http_routes(self) -> HttpSite:
        site = HttpSite(self.prefix, self.folder, changes=self.changes)
        site.route("POST", "/of/it", lambda _request: "done", needs="nothing")
        return site


def of_page(
    served: ApiServed, host: str, *, scheme: str = "http", site: str | None = "same-origin"
) -> dict[str, str]:
    """The headers of a browser whose page is of the host that it asks, by some port."""
    port = served.url.rpartition(":")[2]
    found = {"Host": f"{host}:{port}", "Origin": f"{scheme}://{host}:{port}", "User-Agent": "Mozilla/5.0"}
    return found if site is None else found | {"Sec-Fetch-Site": site}


async def put(served: ApiServed, headers: Mapping[str, str]) -> tuple[int, str]:
    said = await served.ask(f"{LISTING}/new", "PUT", json={}, headers=headers)
    return said.status, said.json.get("detail", "")


async def explain(served: ApiServed, headers: Mapping[str, str]) -> int:
    return (await served.ask(EXPLAIN, "POST", json={}, headers=headers)).status


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "static"
    folder.mkdir()
    return folder


async def test_a_page_of_the_server_changes_what_its_client_may(tmp_path: Path, site: Path) -> None:
    plugins = {"page": Page(site, changes=True)}
    async with api_served(tmp_path, plugins=plugins, http={"hosts": ["Topics.example.com"]}) as served:
        for host in (
            "127.0.0.1",
            "localhost",
            "[::1]",
            "192.0.2.7",
            "topics.example.com",
            "TOPICS.example.com",
        ):
            status, detail = await put(served, of_page(served, host))
            assert status in (200, 201), (host, detail)
            assert await explain(served, of_page(served, host)) == 200
        behind_tls = {"Host": "topics.example.com", "Origin": "https://topics.example.com:443"}
        assert (await put(served, {**behind_tls, "Sec-Fetch-Site": "same-origin"}))[0] == 200
        # By plain http from another machine, a browser does not say where the page is from.
        status, detail = await put(served, of_page(served, "192.0.2.7", site=None))
        assert (status, "by plain http" in detail) == (403, True)
        assert await explain(served, of_page(served, "192.0.2.7", site=None)) == 200


async def test_a_name_that_an_attacker_lets_stand_for_the_server(tmp_path: Path, site: Path) -> None:
    """DNS rebinding: to the browser, the attacker's page and this server are of one origin."""
    plugins = {"page": Page(site, changes=True)}
    async with api_served(tmp_path, plugins=plugins, http={"hosts": ["topics.example.com"]}) as served:
        for host in (
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "topics.example.com.",
            "x",
        ):
            for fetched in ("same-origin", None):
                status, detail = await put(served, of_page(served, host, site=fetched))
                assert (status, "[http] hosts" in detail) == (421, True), host
                assert await explain(served, of_page(served, host, site=fetched)) == 421
            # By plain http, a request that only reads has no Origin and no Sec-Fetch-Site, and scripts set the rest.
            for path in ("/", LISTING, "/v1/me", "/v1/openapi.json", "/metrics", "/questions", "/plugins"):
                for forged in ({}, {"User-Agent": "curl/8.5.0", "Authorization": "Bearer x"}):
                    said = await served.ask(path, headers={"Host": host, **forged})
                    assert said.status == 421, (host, path)
        assert (await served.ask(LISTING)).json["items"] == [
            "persistent://public/default/bills",
            "persistent://public/default/orders-partition-0",
            "persistent://public/default/orders-partition-1",
        ]


@pytest.mark.parametrize(
    "wrong",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "ftp://127.0.0.1"},
        {"Origin": "http://127.0.0.1:x"},
        {"Origin": "http://me@127.0.0.1"},
        {"Origin": "http://127.0.0.1é"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
async def test_a_page_of_another_site_asks_nothing(tmp_path: Path, site: Path, wrong: dict[str, str]) -> None:
    async with api_served(tmp_path, plugins={"page": Page(site, changes=True)}) as served:
        headers = of_page(served, "127.0.0.1") | wrong
        assert (await put(served, headers))[0] == 403
        assert await explain(served, headers) == 403


@pytest.mark.parametrize("order", [1, -1])
async def test_two_origins_are_none(tmp_path: Path, site: Path, order: int) -> None:
    """Sent as bytes: clients of Python join or replace them. With one of the two alone the page may change."""
    async with api_served(tmp_path, plugins={"page": Page(site, changes=True)}) as served:
        own = of_page(served, "127.0.0.1") | {
            "Content-Type": "application/json",
            "Content-Length": "2",
            "Connection": "close",
        }
        for origins, status in (([], b"201"), (["Origin: http://evil.example"], b"403")):
            lines = [*(f"{name}: {value}" for name, value in own.items()), *origins][::order]
            request = "\r\n".join([f"PUT {LISTING}/two-{len(origins)} HTTP/1.1", *lines, "", "{}"])
            assert (await served.raw(request.encode())).split(b" ", 2)[1] == status


async def test_a_page_of_another_site_reads_nothing_and_may_have_a_link(tmp_path: Path, site: Path) -> None:
    async with api_served(tmp_path, plugins={"page": Page(site, changes=True)}) as served:
        for path in (LISTING, "/v1/me", "/metrics", "/plugins"):
            for of, mode, place, status in (
                ("cross-site", "no-cors", "script", 403),
                ("same-site", "cors", "empty", 403),
                ("cross-site", "navigate", "document", 200),
                ("cross-site", "navigate", "object", 403),
                ("same-site", "navigate", "iframe", 403),
                ("cross-site", "navigate", "embed", 403),
                ("same-origin", "cors", "empty", 200),
                ("none", "navigate", "document", 200),
            ):
                headers = {"Sec-Fetch-Site": of, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": place}
                said = await served.ask(path, headers=headers)
                assert (said.status, said.headers["X-Content-Type-Options"]) == (status, "nosniff"), (
                    path,
                    of,
                )
                assert said.headers["Cross-Origin-Resource-Policy"] == "same-origin"


async def test_pages_that_only_read_change_nothing(tmp_path: Path, site: Path) -> None:
    async with api_served(tmp_path, plugins={"page": Page(site, changes=False)}) as served:
        headers = of_page(served, "127.0.0.1")
        status, detail = await put(served, headers)
        assert (status, "a web page may change nothing here" in detail) == (403, True)
        assert await explain(served, headers) == 200
    async with api_served(tmp_path, topics={}) as served:
        assert await explain(served, of_page(served, "127.0.0.1")) == 403


@pytest.mark.parametrize("topics", [False, True])
async def test_the_site_at_the_root_says_whether_pages_change_topics(
    tmp_path: Path, site: Path, topics: bool
) -> None:
    """Whatever the site of another plugin says, whose own routes they may ask."""
    plugins = {
        "root": Page(site, changes=topics),
        "other": Page(site, changes=not topics, prefix="/other"),
    }
    async with api_served(tmp_path, plugins=plugins) as served:
        headers = of_page(served, "127.0.0.1")
        assert (await put(served, headers))[0] == (201 if topics else 403)
        assert (await served.ask("/v1/me")).json["server"]["page_changes"] is topics
        for path, may in (("/of/it", topics), ("/other/of/it", not topics)):
            said = await served.ask(path, "POST", json={}, headers=headers)
            assert said.status == (200 if may else 403), path


async def test_a_program_changes_by_any_name_and_reads_by_any_with_credentials(
    tmp_path: Path, site: Path
) -> None:
    name = {"Host": "topics.internal"}
    async with api_served(tmp_path, plugins={"page": Page(site, changes=True)}) as served:
        assert (await put(served, name))[0] == 201
        assert (await served.ask("/-/live", headers=name)).status == 200
        assert (await served.raw(b"GET / HTTP/1.0\r\n\r\n")).startswith(b"HTTP/1.0 421 ")
    tables: dict[str, Any] = {
        "authentication": {
            "methods": ["token"],
            "anonymous_role": "anybody",
            "token": {"key": data_url(der(rsa_key()))},
        },
        "authorization": {
            "rules": [{"roles": ["*"], "namespaces": ["*"], "actions": ["list", "monitor"]}],
        },
    }
    plugins = {"page": Page(site, changes=True)}
    async with api_served(tmp_path, topics={}, plugins=plugins, **tables) as served:
        known = name | {"Authorization": f"Bearer {token({'sub': 'somebody'}).decode()}"}
        for path in (LISTING, "/v1/me", "/plugins"):
            assert (await served.ask(path, headers=known)).status == 200
            assert (await served.ask(path, headers=name)).status == 421, path
            # The role of clients without credentials, which a wrong scheme does not change.
            assert (await served.ask(path, headers=name | {"Authorization": "Odd x"})).status == 421, path
        # What is open to all looks at no credentials. A page is for browsers.
        assert (await served.ask("/metrics", headers=known)).status == 421
        assert (await served.ask("/", headers=known)).status == 421
