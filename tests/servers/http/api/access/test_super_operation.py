"""Rights to the operations below /v1/access, and their paths."""

from __future__ import annotations

import re
from pathlib import Path

import aiohttp

from tests.support.api_serving import api_served
from tests.support.super_roles import supers_served

ALL = (
    ("users", "GET"),
    ("users/erin", "GET"),
    ("users/erin", "PUT"),
    ("users/erin", "DELETE"),
    ("acls/acme/orders", "GET"),
    ("acls/acme/orders", "POST"),
    ("acls/acme/orders", "DELETE"),
)


async def test_super_roles_alone(tmp_path: Path) -> None:
    async with supers_served(tmp_path) as supers:
        for path, method in ALL:
            said = await supers.ask(path, method, role="admin")
            assert (said.status, said.json["cause"]) == (403, "DENIED")
            assert (await supers.served.ask(f"/v1/access/kafka/{path}", method)).status == 401
            assert (await supers.ask(path, method)).status not in {401, 403}
        assert supers.served.sample("denials_total", action="admin", by="rules") == len(ALL)


async def test_without_authentication_nothing_is_there_but_for_the_operator(tmp_path: Path) -> None:
    socket = tmp_path / "admin.sock"
    async with api_served(tmp_path, admin={"socket": str(socket)}) as served:
        for path, method in ALL:
            said = await served.ask(
                f"/v1/access/kafka/{path}", method, json={} if method in {"PUT", "POST"} else None
            )
            assert (said.status, said.json["cause"]) == (404, "NOT_FOUND")
        async with (
            aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(socket))) as operator,
            operator.get("http://x/v1/access/kafka/users") as response,
        ):
            assert (response.status, await response.json()) == (200, {"items": [], "next": None})


async def test_a_server_that_changes_nothing_over_http_shows_all_the_same(tmp_path: Path) -> None:
    async with supers_served(tmp_path, http={"writes": False}) as supers:
        assert (await supers.ask("users")).status == 200
        for path, method in ALL:
            if method != "GET":
                body = {"password": "a long one"} if method in {"PUT", "POST"} else None
                said = await supers.ask(path, method, json=body)
                assert (said.status, said.json["cause"]) == (403, "NOT_ALLOWED")


async def test_pages(tmp_path: Path) -> None:
    async with supers_served(tmp_path) as supers:
        names = [f"user-{number}" for number in range(5)]
        for name in names:
            body = {"password": "a long password", "mechanisms": ["SCRAM-SHA-256"]}
            assert (await supers.ask(f"users/{name}", "PUT", json=body)).status == 201
        found: list[str] = []
        path: str | None = "users?limit=2"
        while path is not None:
            said = await supers.ask(path)
            assert said.status == 200
            found += [each["name"] for each in said.json["items"]]
            link = re.fullmatch(r'</v1/access/kafka/(.+)>; rel="next"', said.headers.get("Link", ""))
            assert (link is None) is (said.json["next"] is None)
            path = link and link[1]
        assert found == names
        for wrong in ("limit=0", "limit=10001", "cursor=*", "cursor=_w", "cursor="):
            assert (await supers.ask(f"users?{wrong}")).status == (200 if wrong == "cursor=" else 400)
