from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from tests.support.api_serving import ApiServed, api_served
from tests.support.tokens import data_url, der, rsa_key, token

ALL = ["list", "lookup", "monitor", "admin"]


async def test_without_rules_everybody_may_do_everything(served: ApiServed) -> None:
    me = (await served.ask("/v1/me", headers={"User-Agent": "tests/1"})).json
    assert (me["role"], me["super"], me["until"], me["authentication"]) == (None, True, None, [])
    assert me["address"].startswith("127.0.0.1:")
    assert me["client_version"] == "tests/1"
    assert me["rights"] == {"everywhere": ALL, "somewhere": ALL, "namespace": None}
    assert me["server"].keys() == {
        "version",
        "topics",
        "writes",
        "page_changes",
        "questions",
        "property_keys",
    }
    assert (me["server"]["topics"], me["server"]["property_keys"]) == ("catalog", ["region"])


async def test_a_client_learns_its_rights_and_their_end(tmp_path: Path) -> None:
    tables: dict[str, Any] = {
        "authentication": {"methods": ["token"], "token": {"key": data_url(der(rsa_key()))}},
        "authorization": {
            "super_roles": ["root"],
            "rules": [
                {"roles": ["team"], "namespaces": ["acme/*"], "actions": ["list", "admin"]},
                {"roles": ["team"], "namespaces": ["*"], "actions": ["lookup"]},
                {"roles": ["team"], "namespaces": ["acme/closed"], "actions": ["*"], "effect": "deny"},
            ],
        },
        "http": {"writes": False, "questions": True},
    }
    async with api_served(tmp_path, **tables) as served:
        assert (await served.ask("/v1/me")).status == 401
        ends = int(time.time()) + 3600

        async def me(role: str, path: str, **claims: Any) -> Any:
            credentials = token({"sub": role, **claims}).decode()
            return (await served.ask(path, headers={"Authorization": f"Bearer {credentials}"})).json

        team = await me("team", "/v1/me?namespace=acme/shop", exp=ends)
        assert (team["role"], team["super"], team["authentication"]) == ("team", False, ["token"])
        assert team["until"] == time.strftime("%Y-%m-%dT%H:%M:%S.000+00:00", time.gmtime(ends))
        assert team["rights"] == {
            "everywhere": [],
            "somewhere": ALL,
            "namespace": ALL,
        }
        assert (team["server"]["writes"], team["server"]["questions"]) == (False, True)
        closed = await me("team", "/v1/me?namespace=acme/closed")
        assert (closed["until"], closed["rights"]["namespace"]) == (None, [])
        root = await me("root", "/v1/me")
        assert (root["super"], root["rights"]["everywhere"]) == (True, ALL)
        assert (await me("root", "/v1/me?namespace=no"))["status"] == 400
