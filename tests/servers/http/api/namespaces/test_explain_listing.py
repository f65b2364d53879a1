"""Explaining a listing: the report, the right that it needs, and bodies that are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.api_serving import NAMESPACE, ApiServed, api_served
from tests.support.chain_plugins import fails

PATH = f"{NAMESPACE}/explain"


async def members(served: ApiServed) -> set[str]:
    """The members of a report that the document tells of."""
    document = (await served.ask("/v1/openapi.json")).json
    operation = document["paths"]["/v1/namespaces/{tenant}/{namespace}/explain"]["post"]
    return set(operation["responses"]["200"]["content"]["application/json"]["schema"]["properties"])


async def test_the_report_is_that_of_the_command(served: ApiServed) -> None:
    question = {"pattern": "public/default/(orders|bills).*", "mode": "all", "properties": {"region": "eu"}}
    said = await served.ask(PATH, "POST", json=question)
    report = said.json
    assert said.status == 200
    assert (report["namespace"], report["mode"], report["topics"]) == ("public/default", "ALL", 2)
    assert report["topics_pattern"] == question["pattern"]
    assert report["properties"] == {"region": "eu"}
    assert set(report) <= await members(served)
    assert report["asker"]["address"].startswith("127.0.0.1:")
    listed = await served.ask(
        f"{NAMESPACE}/topics", params={"pattern": "public/default/orders", "mode": "all"}
    )
    assert len(listed.json["items"]) == 2
    assert len(report["topics_hash"]) == 8
    assert (await served.ask(PATH, "POST", json={})).json["topics"] == 3


@pytest.mark.parametrize(
    ("body", "status", "cause"),
    [
        ("[]", 400, "BAD_REQUEST"),
        ("{", 400, "BAD_REQUEST"),
        ('{"patern": "x"}', 400, "BAD_REQUEST"),
        ('{"pattern": 7}', 400, "BAD_REQUEST"),
        ('{"mode": "some"}', 400, "BAD_REQUEST"),
        ('{"mode": 1}', 400, "BAD_REQUEST"),
        ('{"properties": {"a": 1}}', 400, "BAD_REQUEST"),
        ('{"properties": {"a": "' + "x" * 17_000 + '"}}', 400, "BAD_REQUEST"),
        ('{"pattern": "\\ud800"}', 400, "BAD_REQUEST"),
        ('{"pattern": "("}', 400, "PATTERN"),
        ('{"pattern": "' + "x" * 300_000 + '"}', 413, "TOO_LARGE"),
    ],
)
async def test_other_bodies_are_refused(served: ApiServed, body: str, status: int, cause: str) -> None:
    headers = {"Content-Type": "application/json"}
    said = await served.ask(PATH, "POST", data=body, headers=headers)
    assert (said.status, said.json["cause"]) == (status, cause)


async def test_a_body_of_another_type_is_refused(served: ApiServed) -> None:
    assert (await served.ask(PATH, "POST", data=b"{}", headers={"Content-Type": "text/plain"})).status == 415


async def test_a_listing_that_fails_is_explained_without_the_plugins_text(tmp_path: Path) -> None:
    async with api_served(tmp_path, plugins={"broken": fails(RuntimeError("secret"))}) as served:
        said = await served.ask(PATH, "POST", json={})
        assert said.status == 200
        assert said.json["chain"][0]["answer"] == "error"
        assert (said.json["plugin"], said.json["cause"]) == ("broken", "plugin")
        assert set(said.json) <= await members(served)
        assert b"secret" not in said.body
