"""The client of the HTTP API, at a server: each method asks an operation with parameters that there are."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from broker_core import TopicName
from broker_core.client import (
    ApiClient,
    Basic,
    HandshakeRefused,
    InvalidQuestion,
    InvalidServiceUrl,
    OperationTimeout,
    ServerRefused,
    Tls,
    UnexpectedAnswer,
)
from broker_core.names import Mode
from tests.client.http.scripted_answers import always
from tests.support.api_serving import api_served, catalog_of
from tests.support.htpasswd import write_htpasswd
from tests.support.scripted_http_server import ScriptedHttpServer

ORDERS = "persistent://public/default/orders"
QUESTION: Mapping[str, Any] = {
    "pattern": "public/default/o.*",
    "mode": Mode.ALL,
    "properties": {"region": "eu"},
}


async def test_what_a_server_says(tmp_path: Path) -> None:
    async with api_served(tmp_path, http={"questions": True}) as served, ApiClient(served.url) as api:
        assert (await api.me("public/default"))["rights"]["namespace"]
        page = await api.namespaces(prefix="public/", contains=["def", "ault"], count=True, limit=1)
        assert ([each["namespace"] for each in page["items"]], page["total"]) == (["public/default"], 1)
        listed = await api.topics("public/default", **QUESTION, limit=1, offset=1, count=True, plan=True)
        assert (listed["items"], listed["total"]) == ([f"{ORDERS}-partition-1"], 2)
        assert listed["plan"]["how"] == "range"
        detailed = await api.topics("public/default", detail=["partitions", "properties"])
        assert {each["properties"]["region"] for each in detailed["items"]} == {"eu", "us"}
        assert (await api.properties("public/default", **QUESTION))["items"][0]["names"] == 2
        values = await api.property_values("public/default", "region", prefix="u", limit=5)
        assert values["items"] == [{"value": "us", "names": 1}]
        explained = await api.explain("public/default", **QUESTION, as_={"role": "team-a"}, names=1)
        assert (explained["topics"], len(explained["names"])) == (2, 1)
        why = await api.why(ORDERS, properties={"region": "us"})
        assert (why["listed"], why["blocked_by"]) == (False, "properties")
        assert (await api.topic(TopicName.parse(ORDERS)))["partitions"] == 2
        configs = await api.configs(ORDERS, documentation=True)
        assert all(each["documentation"] for each in configs["items"])
        assert (await api.history(ORDERS, limit=1))["topic"] == ORDERS
        before = (await api.namespace("public/default"))["version"]
        assert (await api.changes("public/default"))["version"] == before
        waiting = asyncio.create_task(api.changes("public/default", since=before, wait=30))
        catalog_of(served).create(TopicName.parse(f"{ORDERS}-2"))
        (change,) = (await waiting)["changes"]
        assert change["topic"] == f"{ORDERS}-2"
        samples = await api.server("metrics", name=["broker_core_http_", "process_"])
        assert {each["name"].partition("_")[0] for each in samples["items"]} == {"broker", "process"}
        for part in ("plugins", "watchers", "caches", "permits", "history", "clients"):
            assert await api.server(part)


async def test_each_parameter_of_a_method_is_one_of_its_operation(tmp_path: Path) -> None:
    """And of a question of the API none is left out that a program would miss."""
    operations = {
        "me": "showAsker",
        "namespaces": "listNamespaces",
        "namespace": "showNamespace",
        "changes": "listChanges",
        "topics": "listTopics",
        "properties": "listProperties",
        "property_values": "listPropertyValues",
        "explain": "explainListing",
        "why": "whyListed",
        "topic": "showTopic",
        "configs": "showTopicConfigs",
        "history": "showTopicHistory",
    }
    own = {"close", "server"}
    methods = {
        name: set(inspect.signature(method).parameters) - {"self"}
        for name, method in vars(ApiClient).items()
        if not name.startswith("_") and name not in own
    }
    assert methods.keys() == operations.keys()
    async with api_served(tmp_path) as served:
        document = (await served.ask("/v1/openapi.json")).json
    known = {
        each["operationId"]: each
        for path in document["paths"].values()
        for each in path.values()
        if "operationId" in each
    }
    for name, operation_id in operations.items():
        operation = known[operation_id]
        there = {each["name"] for each in operation["parameters"]} if "parameters" in operation else set()
        body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
        there |= set() if body is None else set(body["properties"])
        given = {{"properties": "property", "as_": "as"}.get(each, each) for each in methods[name]}
        if body is not None:
            given = {{"property": "properties"}.get(each, each) for each in given}
        assert given <= there | {"namespace", "topic", "key"}, name


async def test_what_is_refused_is_an_error(tmp_path: Path) -> None:
    users = write_htpasswd(tmp_path / "users", reader="secret")
    tables: dict[str, Any] = {
        "authentication": {"methods": ["basic"], "basic": {"file": str(users)}},
        "authorization": {"rules": [{"roles": ["reader"], "namespaces": ["public/*"], "actions": ["list"]}]},
    }
    async with api_served(tmp_path, **tables) as served:
        async with ApiClient(served.url) as api:
            with pytest.raises(HandshakeRefused):
                await api.me()
        async with ApiClient(served.url, auth=Basic("reader", "secret")) as api:
            assert (await api.me())["role"] == "reader"
            with pytest.raises(ServerRefused, match="AuthorizationError"):
                await api.server("caches")
            with pytest.raises(ServerRefused, match="there is no topic"):
                await api.topic("persistent://public/default/none")
            with pytest.raises(ServerRefused) as wrong:
                await api.topics("public/default", pattern="public/default/a(?!b)")
            assert wrong.value.problem["error"]["offset"] == len("public/default/a")
            with pytest.raises(ServerRefused) as gap:
                await api.changes("public/default", since="another:3", wait=1)
            assert gap.value.problem["version"] == (await api.namespace("public/default"))["version"]
            with pytest.raises(InvalidQuestion, match="an equals sign"):
                await api.topics("public/default", properties={"a=b": "c"})


async def test_answers_that_are_none() -> None:
    answers = {
        "answered with 'text/html'": lambda: web.Response(text="<p>", content_type="text/html"),
        "answered with no JSON object": lambda: web.json_response(["me"]),
        "is larger than 100 bytes": lambda: web.json_response({"role": "x" * 100}),
    }
    for text, answer in answers.items():
        async with ScriptedHttpServer(always(answer)) as server, ApiClient(server.url, max_answer=100) as api:
            with pytest.raises(UnexpectedAnswer, match=text):
                await api.me()


async def test_no_answer_in_time() -> None:
    async def hangs(_request: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    async with (
        ScriptedHttpServer(hangs) as server,
        ApiClient(server.url, operation_timeout=0.01) as api,
    ):
        with pytest.raises(OperationTimeout, match=r"no answer within 0\.01 s"):
            await api.me()


def test_what_is_no_server() -> None:
    for url in ("pulsar://a:1", "http://a:x", "a:1"):
        with pytest.raises(InvalidServiceUrl):
            ApiClient(url)
    with pytest.raises(InvalidServiceUrl, match="needs TLS"):
        ApiClient("http://a:1", auth=Tls(Path("c"), Path("k")))
    with pytest.raises(ValueError, match="max_answer is 1 at least"):
        ApiClient("http://a:1", max_answer=0)
