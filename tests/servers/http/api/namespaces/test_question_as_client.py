"""Questions that are asked as another client: rights, the audit log, and the answers that the client would get."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from broker_core import Access, Refused
from broker_core.service.audit import AUDIT_LOGGER
from tests.support.api_serving import NAMESPACE, ApiServed, api_served
from tests.support.htpasswd import write_htpasswd
from tests.support.plugins import PluginOf

EXPLAIN = f"{NAMESPACE}/explain"
BILLS = "persistent://public/default/bills"
ORDERS = "persistent://public/default/orders"


async def test_the_first_names_of_an_answer_are_shown(served: ApiServed) -> None:
    for names in (1, 2, 3, 1000):
        said = await served.ask(EXPLAIN, "POST", json={"names": names})
        assert said.json["names"] == [BILLS, f"{ORDERS}-partition-0", f"{ORDERS}-partition-1"][:names]
    assert "names" not in (await served.ask(EXPLAIN, "POST", json={})).json


async def test_an_answer_is_that_of_the_other_client(tmp_path: Path) -> None:
    seen: list[tuple[str | None, str, str]] = []

    def gate(access: Access) -> Refused | None:
        asker = access.asker
        if access.action == "list":
            seen.append((asker.role, asker.host, asker.client_version))
        return Refused("not from there") if asker.host == "192.0.2.9" else None

    users = write_htpasswd(tmp_path / "users", root="pw", half="pw", reader="pw")
    rules: list[dict[str, Any]] = [
        {"roles": ["team"], "namespaces": ["*"], "actions": ["list"], "topics": ["bills"]},
        {"roles": ["reader"], "namespaces": ["*"], "actions": ["list"]},
        {"roles": ["half"], "namespaces": ["*"], "actions": ["admin"]},
    ]
    async with api_served(
        tmp_path,
        plugins={"gate": PluginOf(authorize=gate)},
        authentication={"methods": ["basic"], "basic": {"file": users}},
        authorization={"super_roles": ["root"], "rules": rules},
    ) as served:

        async def ask(user: str, path: str, **body: Any) -> Any:
            given = base64.b64encode(f"{user}:pw".encode()).decode()
            return await served.ask(path, "POST", json=body, headers={"Authorization": f"Basic {given}"})

        team = {"role": "team", "address": "192.0.2.7", "client_version": "Pulsar-Java-v4.2.4"}
        with capture_logs() as logs:
            said = (await ask("root", EXPLAIN, names=10, **{"as": team})).json
        assert said["names"] == [BILLS]
        assert (said["asker"]["role"], said["asker"]["address"]) == ("team", "192.0.2.7:0")
        assert seen[-1] == ("team", "192.0.2.7", "Pulsar-Java-v4.2.4")
        (line,) = [each for each in logs if each.get("logger") == AUDIT_LOGGER]
        assert (line["action"], line["role"], line["outcome"]) == ("explain_as", "root", "done")
        assert line["target"] == "role=team address=192.0.2.7 client_version=Pulsar-Java-v4.2.4"
        refused = (await ask("root", EXPLAIN, **{"as": {**team, "address": "192.0.2.9"}})).json
        assert refused["cause"] == "denied"
        with capture_logs() as logs:
            nobody = (await ask("root", EXPLAIN, **{"as": {}})).json
            await ask("root", f"{NAMESPACE}/topics/bills:why", **{"as": {"role": 'a b="c"', "address": None}})
        assert [each["target"] for each in logs if each.get("logger") == AUDIT_LOGGER] == [
            'role=""',
            r'role="a b=\"c\"" topic=persistent://public/default/bills',
        ]
        assert (nobody["asker"]["role"], nobody["cause"]) == (None, "denied")
        # Who may not list itself asks as nobody else; and without `admin` nobody does.
        assert (await ask("half", EXPLAIN, **{"as": team})).status == 403
        assert (await ask("reader", EXPLAIN, **{"as": team})).status == 403
        why = (await ask("root", f"{NAMESPACE}/topics/orders:why", **{"as": team})).json
        assert (why["listed"], why["blocked_by"]) == (False, "rules")
        assert why["steps"][0]["needs"] == "a rule that allows role 'team' to list it"
        assert why["steps"][1]["passes"] is None


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ({"as": []}, "as must be an object whose values are strings or null"),
        ({"as": {"role": 1}}, "as must be an object whose values are strings or null"),
        ({"as": {"rule": "x"}}, "as has role, original_principal, address, client_version, and no 'rule'"),
        ({"as": {"role": "x" * 2000}}, "as.role has more than 1024 characters"),
        ({"names": -1}, "names must be a number from 0 to 1000"),
        ({"names": 1001}, "names must be a number from 0 to 1000"),
        ({"name": 1}, "unknown member 'name'; known: as, mode, names, pattern, properties"),
    ],
)
async def test_other_bodies_are_refused(served: ApiServed, body: Any, detail: str) -> None:
    said = await served.ask(EXPLAIN, "POST", json=body)
    assert (said.status, said.json["detail"]) == (400, f"the body: {detail}")


@pytest.mark.parametrize(
    "address",
    ["nonsense", "nonsense:1", "localhost:1", "192.0.2.7:99999", "192.0.2.256", "[::1", "/run/socket"],
)
async def test_an_address_that_is_none_is_refused(served: ApiServed, address: str) -> None:
    said = await served.ask(EXPLAIN, "POST", json={"as": {"address": address}})
    assert (said.status, said.json["cause"]) == (400, "BAD_REQUEST")
    assert "as.address is no IP address" in said.json["detail"]


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ("::1", "[::1]:0"),
        ("[::1]", "[::1]:0"),
        ("[2001:db8::1]:80", "[2001:db8::1]:80"),
        ("192.0.2.7:1", "192.0.2.7:1"),
    ],
)
async def test_an_address_has_a_port_or_none(served: ApiServed, given: str, asked: str) -> None:
    said = await served.ask(EXPLAIN, "POST", json={"as": {"address": given}})
    assert said.json["asker"]["address"] == asked
