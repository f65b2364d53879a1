"""The routes of plugins: rights, errors and bounds are those of the server's own operations."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from broker_core import Cause, HttpRequest, HttpSite, hookimpl
from broker_core.errors import ListingFailed
from broker_core.service.audit import AUDIT_LOGGER
from tests.servers.http.test_site_files import POLICY
from tests.support.api_serving import api_served
from tests.support.eventually import eventually
from tests.support.htpasswd import write_htpasswd


class Routes:
    """A plugin with the routes that ``add`` gives its site."""

    def __init__(self, add: Callable[[HttpSite], None], *, changes: bool = False) -> None:
        self.add = add
        self.changes = changes

    @hookimpl
    def broker_core_http_routes(self) -> HttpSite:
        site = HttpSite("/mine", changes=self.changes)
        self.add(site)
        return site


async def asynchronous(request: HttpRequest) -> Any:
    await asyncio.sleep(0)
    return {"path": dict(request.path), "query": dict(request.query), "body": request.body}


def blocking(request: HttpRequest) -> Any:
    return {"role": request.asker.role, "transport": request.asker.transport}


def failing(request: HttpRequest) -> Any:
    if "missing" in request.query:
        raise ListingFailed("there is no such thing", cause=Cause.NOT_FOUND)
    raise RuntimeError("a secret")


def _routes(site: HttpSite) -> None:
    site.route("GET", "/of/{thing}", asynchronous, needs="nothing")
    site.route("POST", "/of/{thing}", asynchronous, needs="nothing")
    site.route("GET", "/me", blocking, needs="nothing")
    site.route("GET", "/fails", failing, needs="nothing")
    site.route("GET", "/text", lambda _request: b"plain " * 1000, needs="nothing", content_type="text/plain")
    site.route(
        "GET", "/page", lambda _request: b"<p>", needs="nothing", content_type="text/html; charset=utf-8"
    )
    site.route("GET", "/inf", lambda _request: {"rate": float("inf")}, needs="nothing")
    site.route("GET", "/large", lambda _request: bytes(16 * 1024 * 1024 + 1), needs="nothing")
    site.route("GET", "/object", lambda _request: object(), needs="nothing")
    site.route("GET", "/slow", lambda _request: asyncio.sleep(60), needs="nothing")


async def test_what_a_handler_returns_is_the_answer(tmp_path: Path) -> None:
    settings = {"p": {"deadline": 0.2}}
    async with api_served(tmp_path, plugins={"p": Routes(_routes)}, plugin_settings=settings) as served:
        said = await served.ask("/mine/of/a%2Fb?x=1&x=2&y=")
        assert said.json == {"path": {"thing": "a/b"}, "query": {"x": "2", "y": ""}, "body": None}
        assert (await served.ask("/mine/me")).json == {"role": None, "transport": "http"}
        said = await served.ask("/mine/text", headers={"Accept-Encoding": "gzip"})
        assert (said.headers["Content-Encoding"], said.body) == ("gzip", b"plain " * 1000)
        for path in ("/mine/page", "/mine/of/x"):
            assert (await served.ask(path)).headers["Content-Security-Policy"] == POLICY
        headers = (await served.ask("/mine/page")).headers
        assert (headers["Vary"], headers["Cross-Origin-Resource-Policy"]) == (
            "Accept-Encoding",
            "same-origin",
        )
        for path, status, detail in (
            ("/mine/fails?missing=", 404, "plugin 'p' failed: there is no such thing"),
            ("/mine/fails", 502, "plugin 'p' failed: RuntimeError"),
            ("/mine/object", 502, "plugin 'p' gave an answer that is no JSON"),
            ("/mine/inf", 502, "plugin 'p' gave an answer that is no JSON"),
            ("/mine/slow", 502, "plugin 'p' did not answer within 0.2 s"),
            ("/mine/large", 502, "plugin 'p' gave an answer that is too large"),
            ("/mine/of/x?%ff", 400, "the query is not in UTF-8"),
            ("/mine/of/%ff", 400, "the path is not in UTF-8"),
        ):
            said = await served.ask(path)
            assert (said.status, said.json["detail"]) == (status, detail)
        assert served.sample("http_requests_total", operation="p GET /me", status="200") == 1
        (described,) = (await served.ask("/v1/server/plugins")).json["items"]
        calls = described["calls"]
        assert calls["http_routes GET /me"]["answers"] == {"answered": 1}
        assert calls["http_routes GET /fails"]["failures"] == {"plugin_error": 2}
        assert calls["http_routes GET /slow"]["failures"] == {"plugin_deadline": 1}


async def test_a_change_is_in_the_audit_log_and_not_for_pages_that_only_read(tmp_path: Path) -> None:
    async with api_served(tmp_path, plugins={"p": Routes(_routes)}) as served:
        page = {"Host": "localhost", "Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"}
        with capture_logs() as logs:
            assert (await served.ask("/mine/of/x", "POST", json=[1])).json["body"] == [1]
            assert (await served.ask("/mine/of/x", "POST", json=[1], headers=page)).status == 403
            assert (await served.ask("/mine/of/x", "POST", data=b"[1]")).status == 415
        lines = [line for line in logs if line.get("logger") == AUDIT_LOGGER]
        assert [(line["action"], line.get("target"), line["outcome"]) for line in lines] == [
            ("ask_plugin", "/mine/of/x", "done"),
            ("ask_plugin", "/mine/of/x", "refused"),
        ]


@pytest.mark.parametrize("part", ["n", "t%20t"])
async def test_only_a_tenant_and_its_namespace_side_by_side_name_a_namespace(
    tmp_path: Path, part: str
) -> None:
    """Elsewhere in a path both are parts of any text, and the path may have one without the other."""

    def add(site: HttpSite) -> None:
        for path in ("/apart/{tenant}/x/{namespace}", "/alone/{namespace}", "/of/{tenant}/{namespace}"):
            site.route("GET", path, asynchronous, needs="nothing")

    async with api_served(tmp_path, plugins={"p": Routes(add)}) as served:
        text = part.replace("%20", " ")
        said = await served.ask(f"/mine/apart/{part}/x/{part}")
        assert (said.status, said.json.get("path")) == (200, {"tenant": text, "namespace": text})
        said = await served.ask(f"/mine/alone/{part}")
        assert (said.status, said.json.get("path")) == (200, {"namespace": text})
        assert (await served.ask(f"/mine/of/{part}/{part}")).status == (200 if text == part else 400)
        await eventually(lambda: served.sample("http_requests_under_way") == 0)


def _guarded(site: HttpSite) -> None:
    for needs in ("nothing", "credentials", "monitor", "admin", "super"):
        site.route("GET", f"/{needs}", blocking, needs=needs)
    for needs in ("list", "admin"):
        site.route("GET", f"/{needs}/{{tenant}}/{{namespace}}", blocking, needs=needs)


@pytest.mark.parametrize(
    ("user", "allowed"),
    [
        (None, {"nothing"}),
        ("reader", {"nothing", "credentials", "list/acme/shop"}),
        ("watcher", {"nothing", "credentials", "monitor"}),
        ("owner", {"nothing", "credentials", "admin/acme/shop", "list/acme/shop"}),
        (
            "root",
            {"nothing", "credentials", "monitor", "admin", "super", "list/acme/shop", "admin/acme/shop"},
        ),
    ],
)
async def test_a_route_needs_its_right(tmp_path: Path, user: str | None, allowed: set[str]) -> None:
    users = write_htpasswd(tmp_path / "users", **dict.fromkeys(("reader", "watcher", "owner", "root"), "pw"))
    rules = [
        {"roles": ["reader", "owner"], "namespaces": ["acme/*"], "actions": ["list"]},
        {"roles": ["owner"], "namespaces": ["acme/*"], "actions": ["admin"]},
        {"roles": ["watcher"], "namespaces": ["*"], "actions": ["monitor"]},
    ]
    async with api_served(
        tmp_path,
        plugins={"p": Routes(_guarded)},
        authentication={"methods": ["basic"], "basic": {"file": users}},
        authorization={"super_roles": ["root"], "rules": rules},
    ) as served:
        given = base64.b64encode(f"{user}:pw".encode()).decode()
        headers = {} if user is None else {"Authorization": f"Basic {given}"}
        paths = ("nothing", "credentials", "monitor", "admin", "super", "list/acme/shop", "admin/acme/shop")
        found = {path: (await served.ask(f"/mine/{path}", headers=headers)).status for path in paths}
        assert {path for path, status in found.items() if status == 200} == allowed
        assert set(found.values()) <= {200, 401 if user is None else 403}
        if user is not None:
            said = await served.ask("/mine/list/acme/other%20one", headers=headers)
            assert said.status in (400, 403)
