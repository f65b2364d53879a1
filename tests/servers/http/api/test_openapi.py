from __future__ import annotations

from pathlib import Path
from typing import Any

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
    assert set(document["components"]["securitySchemes"]) == {"bearer", "basic", "mutualTLS"}
    assert "security" not in document  # nobody needs credentials


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
        assert {"basic": []} in document["security"]
        assert document["paths"]["/v1/openapi.json"]["get"]["security"] == []
