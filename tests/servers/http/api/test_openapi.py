from __future__ import annotations

from pathlib import Path
from typing import Any

from aiohttp import web

from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.openapi import openapi_document
from broker_core.servers.http.api.operation import Body, HttpOperation, Right
from tests.support.api_serving import ApiServed, api_served
from tests.support.htpasswd import write_htpasswd


async def test_the_document_is_made_of_the_declarations(served: ApiServed) -> None:
    said = await served.ask("/v1/openapi.json")
    document = said.json
    assert (said.status, document["openapi"]) == (200, "3.1.0")
    listing = document["paths"]["/v1/namespaces/{tenant}/{namespace}/topics"]["get"]
    parameters = {each["name"]: each for each in listing["parameters"]}
    assert parameters["tenant"]["in"] == parameters["namespace"]["in"] == "path"
    assert parameters["property"]["schema"]["type"] == "array"
    assert listing["responses"]["400"] == {"$ref": "#/components/responses/Error400"}
    assert "security" not in document  # nobody needs credentials
    assert "securitySchemes" not in document["components"]
    assert "401" not in listing["responses"]


async def test_every_reference_leads_somewhere_and_every_operation_has_one_name(served: ApiServed) -> None:
    document = (await served.ask("/v1/openapi.json")).json
    references: set[str] = set()

    def walk(value: object) -> None:
        if isinstance(value, dict):
            if isinstance(reference := value.get("$ref"), str):
                references.add(reference)
            for each in value.values():
                walk(each)
        elif isinstance(value, list):
            for each in value:
                walk(each)

    walk(document)
    for reference in references:
        value = document
        for part in reference.removeprefix("#/").split("/"):
            value = value[part]
    names = [each["operationId"] for path in document["paths"].values() for each in path.values()]
    assert len(names) == len(set(names))


async def test_credentials_are_in_the_document_where_clients_need_them(tmp_path: Path) -> None:
    users = tmp_path / "users"
    write_htpasswd(users, somebody="secret")
    tables: dict[str, Any] = {"authentication": {"methods": ["basic"], "basic": {"file": str(users)}}}
    async with api_served(tmp_path, **tables) as served:
        document = (await served.ask("/v1/openapi.json")).json
        assert document["security"] == [{"basic": []}]
        assert set(document["components"]["securitySchemes"]) == {"basic"}
        assert document["paths"]["/v1/openapi.json"]["get"]["security"] == []
        assert "WWW-Authenticate" in document["components"]["responses"]["Error401"]["headers"]


def test_errors_are_those_that_an_operation_can_have() -> None:
    async def handler(request: ApiRequest) -> web.StreamResponse:
        raise NotImplementedError

    def operation(needs: Right, body: Body | None) -> HttpOperation:
        return HttpOperation("POST", "/v1/x", "x", "X.", needs, handler, {}, body=body)

    def errors(one: HttpOperation) -> set[str]:
        (described,) = openapi_document([one], "1", ("token",), anonymous=True)["paths"]["/v1/x"].values()
        return set(described["responses"])

    common = {"400", "401", "403", "413", "429", "500", "503"}
    assert errors(operation(Right.NOTHING, None)) == common
    assert errors(operation(Right.CREDENTIALS, None)) == common | {"502", "504"}
    body = Body({"application/json": {"type": "object"}}, 10, examples={"application/json": {}})
    assert errors(operation(Right.CREDENTIALS, body)) == common | {"408", "415", "502", "504"}
    document = openapi_document([operation(Right.CREDENTIALS, body)], "1", ("token",), anonymous=True)
    assert document["security"] == [{"bearer": []}, {}]
    request_body = document["paths"]["/v1/x"]["post"]["requestBody"]
    assert request_body["content"]["application/json"]["example"] == {}
