"""The operations of docs/reference/http.md, made from the OpenAPI document: ``python -m tests.docs.http_reference``.

It replaces what is below the mark in the page. The examples are here: the tests of the pages run them in this order.
"""

# ruff: noqa: E501 - what is typed, and what is printed, is one line

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from tests.docs.pages import DOCS
from tests.support.api_serving import api_served
from tests.support.htpasswd import write_htpasswd

__all__ = ["MARK", "PAGE", "openapi", "operations_page"]

PAGE: Final = "reference/http.md"
MARK: Final = "<!-- What follows is made of the OpenAPI document: python -m tests.docs.http_reference -->\n"
_URL: Final = "http://127.0.0.1:8080/v1/namespaces"
_TOPICS: Final = f"{_URL}/public/default/topics"
#: What is typed, and printed, by operation.
_EXAMPLES: Final[Mapping[str, str]] = {
    "listTopics": f"""\
$ curl -sS '{_TOPICS}?limit=2&property=region=eu'
{{"items":["persistent://public/default/orders-partition-0","persistent://public/default/orders-partition-1"],"filtered":false,"next":null}}
$ curl -sS -H 'Accept: application/x-ndjson' '{_TOPICS}?pattern=public/default/b.*&detail=partitions,properties'
{{"name":"persistent://public/default/bills","partitions":0,"properties":{{"region":"us"}}}}
{{"topics_hash":null,"filtered":true,"next":null}}
""",
    "showTopic": f"""\
$ curl -sS {_TOPICS}/orders
{{"name":"persistent://public/default/orders","partitions":2,"topic_id":"...","properties":{{"region":"eu"}},"configs":{{}},"replication":null,"created":"...","version":"..."}}
""",
    "showTopicById": f"""\
$ curl -sS "http://127.0.0.1:8080/v1/topics/by-id/$(curl -sS {_TOPICS}/orders | grep -o '[A-Za-z0-9_-]\\{{22\\}}' | head -1)"
{{"name":"persistent://public/default/orders","partitions":2,"topic_id":"...",...}}
""",
    "listNamespaces": f"""\
$ curl -sS '{_URL}?contains=default&count=true'
{{"items":[{{"namespace":"public/default","version":"...","source":"catalog","changed":"...","counts":{{"persistent":3,"non_persistent":0,"all":3}}}}],"next":null,"total":1}}
""",
    "showNamespace": f"""\
$ curl -sS {_URL}/public/default
{{"namespace":"public/default","version":"...","source":"catalog","changed":"...","counts":{{"persistent":3,"non_persistent":0,"all":3}}}}
""",
    "listChanges": f"""\
$ curl -sS {_URL}/public/default/changes
{{"since":null,"version":"...","more":false,"changes":[]}}
""",
    "putTopic": f"""\
$ curl -sS -X PUT -H 'Content-Type: application/json' -H 'If-None-Match: *' -d '{{"properties": {{"region": "eu"}}}}' {_TOPICS}/refunds
{{"name":"persistent://public/default/refunds","partitions":0,"topic_id":"...","properties":{{"region":"eu"}},"configs":{{}},"replication":null,"created":"...","version":"..."}}
""",
    "patchTopic": f"""\
$ curl -sS -X PATCH -H 'Content-Type: application/merge-patch+json' -d '{{"properties": {{"team": "a", "region": null}}, "configs": {{"retention.ms": "3600000"}}}}' {_TOPICS}/refunds
{{"name":"persistent://public/default/refunds","partitions":0,"topic_id":"...","properties":{{"team":"a"}},"configs":{{"retention.ms":"3600000"}},"replication":null,"created":"...","version":"..."}}
""",
    "deleteTopic": f"""\
$ curl -sS -X DELETE -w '%{{http_code}}' {_TOPICS}/refunds
204
""",
    "deleteTopicById": """\
$ curl -sS -X DELETE http://127.0.0.1:8080/v1/topics/by-id/pLW3lPqvQYyE8maO_j3eRw
{"type":"about:blank","title":"Not Found","status":404,"detail":"there is no topic of the id pLW3lPqvQYyE8maO_j3eRw","cause":"NOT_FOUND"}
""",
    "importTopics": f"""\
$ printf '%s\\n' '{{"name": "orders", "partitions": 3}}' '{{"name": "returns"}}' > topics.ndjson
$ curl -sS -H 'Content-Type: application/x-ndjson' --data-binary @topics.ndjson {_TOPICS}:import
{{"lines":2,"topics":2,"created":1,"updated":1,"unchanged":0,"deleted":0,"names_lost":0,"renewed_ids":0,"repeats":0,"version":"..."}}
""",
    "explainListing": f"""\
$ curl -sS -H 'Content-Type: application/json' -d '{{"pattern": "public/default/b.*"}}' {_URL}/public/default/explain
{{"namespace":"public/default","mode":"PERSISTENT",..."plan":"range",..."topics":1,...}}
""",
    "listClients": """\
$ curl -sS 'http://127.0.0.1:8080/v1/server/clients?address=127.0.0.1'
{"items":[{"transport":"http","address":"127.0.0.1:...","role":null,"original_principal":null,"client_version":"curl/...",...}],"total":...}
""",
    "disconnectClients": """\
$ curl -sS -X POST 'http://127.0.0.1:8080/v1/server/clients/disconnect?role=batch'
{"type":"about:blank","title":"Forbidden","status":403,"detail":"nobody needs a right for anything here: clients are disconnected by the operator's socket alone",...}
""",
    "listHeldListings": """\
$ curl -sS http://127.0.0.1:8080/v1/held-listings
{"items":[]}
""",
    "acceptHeldListings": f"""\
$ curl -sS -X POST {_URL}/public/default/held-listings/accept
{{"accepted":0}}
""",
    "listKafkaUsers": """\
$ curl -sS http://127.0.0.1:8080/v1/access/kafka/users
{"type":"about:blank","title":"Not Found","status":404,"detail":"clients of this server are not authenticated: it has no users and ACLs over HTTP","cause":"NOT_FOUND"}
""",
    "showKafkaUser": """\
$ curl -sS http://127.0.0.1:8080/v1/access/kafka/users/orders-app
{"type":"about:blank","title":"Not Found","status":404,"detail":"clients of this server are not authenticated: it has no users and ACLs over HTTP","cause":"NOT_FOUND"}
""",
    "putKafkaUser": """\
$ printf '{"password": "%s"}' "$PASSWORD" | curl -sS -X PUT -H 'Content-Type: application/json' --data-binary @- http://127.0.0.1:8080/v1/access/kafka/users/orders-app
{"type":"about:blank","title":"Not Found","status":404,"detail":"clients of this server are not authenticated: it has no users and ACLs over HTTP","cause":"NOT_FOUND"}
""",
    "deleteKafkaUser": """\
$ curl -sS -X DELETE http://127.0.0.1:8080/v1/access/kafka/users/orders-app
{"type":"about:blank","title":"Not Found","status":404,"detail":"clients of this server are not authenticated: it has no users and ACLs over HTTP","cause":"NOT_FOUND"}
""",
    "listKafkaAcls": """\
$ curl -sS 'http://127.0.0.1:8080/v1/access/kafka/acls/public/default?principal=User:orders-app'
{"type":"about:blank","title":"Not Found","status":404,"detail":"clients of this server are not authenticated: it has no users and ACLs over HTTP","cause":"NOT_FOUND"}
""",
    "createKafkaAcls": """\
$ curl -sS -H 'Content-Type: application/json' -d '{"items": [{"resource_type": "TOPIC", "name": "*", "principal": "User:orders-app", "operation": "DESCRIBE", "permission": "ALLOW"}]}' http://127.0.0.1:8080/v1/access/kafka/acls/public/default
{"type":"about:blank","title":"Not Found","status":404,"detail":"clients of this server are not authenticated: it has no users and ACLs over HTTP","cause":"NOT_FOUND"}
""",
    "deleteKafkaAcls": """\
$ curl -sS -X DELETE 'http://127.0.0.1:8080/v1/access/kafka/acls/public/default?principal=User:orders-app'
{"type":"about:blank","title":"Not Found","status":404,"detail":"clients of this server are not authenticated: it has no users and ACLs over HTTP","cause":"NOT_FOUND"}
""",
    "listPropertyValues": f"""\
$ curl -sS {_URL}/public/default/properties/region
{{"key":"region","items":[{{"value":"eu","names":2}},{{"value":"us","names":1}}],"total":2,"listed":3}}
""",
    "listProperties": f"""\
$ curl -sS {_URL}/public/default/properties
{{"items":[{{"key":"region","names":3,"values":2}}],"listed":3}}
""",
    "showTopicConfigs": f"""\
$ curl -sS {_TOPICS}/orders/configs
{{"topic":"persistent://public/default/orders","items":[...{{"name":"segment.bytes","value":"1073741824","source":"default","type":"INT",...}},...]}}
""",
    "showTopicHistory": f"""\
$ curl -sS {_TOPICS}/orders/history
{{"topic":"persistent://public/default/orders","items":[...],"complete":...}}
""",
    "whyListed": f"""\
$ curl -sS -H 'Content-Type: application/json' -d '{{"pattern": "public/default/b.*"}}' {_TOPICS}/orders:why
{{"topic":"persistent://public/default/orders","listed":false,"blocked_by":"pattern","steps":[...{{"step":"pattern","passes":false,"by":null,"says":"it does not match public/default/orders","needs":"a pattern that matches public/default/orders as a whole","change":null}}],"rules":[]}}
""",
    "showServerPlugins": """\
$ curl -sS http://127.0.0.1:8080/v1/server/plugins
{"items":[]}
""",
    "showServerMetrics": """\
$ curl -sS 'http://127.0.0.1:8080/v1/server/metrics?name=broker_core_http_connections'
{"items":[{"name":"broker_core_http_connections","type":"gauge","help":"Open connections of HTTP.","labels":{},"value":...}],"total":1}
""",
    "showServerQuestions": """\
$ curl -sS http://127.0.0.1:8080/v1/server/questions
{"type":"about:blank","title":"Forbidden","status":403,"detail":"questions are not shown: set questions = true in the table [http] of the settings","cause":"DENIED"}
""",
    "showServerPermits": """\
$ curl -sS http://127.0.0.1:8080/v1/server/permits
{"items":[{"name":"heap","used_bytes":...,"limit_bytes":104857600,"waiting":0,"most_waiting":1000},...]}
""",
    "showServerWatchers": """\
$ curl -sS http://127.0.0.1:8080/v1/server/watchers
{"type":"about:blank","title":"Forbidden","status":403,"detail":"questions are not shown: set questions = true in the table [http] of the settings","cause":"DENIED"}
""",
    "showServerCaches": """\
$ curl -sS http://127.0.0.1:8080/v1/server/caches
{"items":[{"name":"snapshots","entries":...,"bytes":...,"limit_bytes":...},...]}
""",
    "showServerCheck": """\
$ curl -sS http://127.0.0.1:8080/v1/server/check
{"items":[{"level":"ok","name":"settings","text":"...broker-core.toml"},...],"checked":"..."}
""",
    "showServerHistory": """\
$ curl -sS http://127.0.0.1:8080/v1/server/history
{"interval_s":10.0,"until":...,"series":{"listings_per_s":[...],...}}
""",
    "showAsker": """\
$ curl -sS http://127.0.0.1:8080/v1/me
{"role":null,...,"super":true,"until":null,"rights":{"everywhere":["list","lookup","monitor","admin"],...}
""",
    "listScreens": """\
$ curl -sS http://127.0.0.1:8080/v1/screens
{"items":[]}
""",
    "openapi": """\
$ curl -sS http://127.0.0.1:8080/v1/openapi.json
{"openapi":"3.1.0","info":{"title":"broker-core",...}
""",
}


def openapi() -> dict[str, Any]:
    """The document of a server that authenticates clients, so that it has all answers."""

    async def ask(folder: Path) -> Any:
        users = folder / "users"
        write_htpasswd(users, somebody="secret")
        tables: dict[str, Any] = {"authentication": {"methods": ["basic"], "basic": {"file": str(users)}}}
        async with api_served(folder, **tables) as served:
            return (await served.ask("/v1/openapi.json")).json

    with tempfile.TemporaryDirectory() as folder:
        document: dict[str, Any] = asyncio.run(ask(Path(folder)))
    return document


def operations_page(document: Mapping[str, Any]) -> str:
    """The part of the page below the mark."""
    lines: list[str] = ["## Operations", ""]
    for tag in document["tags"]:
        lines += [f"### {tag['name'].capitalize()}", "", tag["description"], ""]
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                if tag["name"] in operation["tags"]:
                    lines += [f"#### `{method.upper()} {path}`", "", *_operation(operation)]
    lines += ["## Errors of all operations", "", "| status | meaning |", "|---|---|"]
    for name, response in document["components"]["responses"].items():
        headers = _headers(response)
        lines.append(f"| {_status(name.removeprefix('Error'))} | {_cell(response['description'])}{headers} |")
    return "\n".join(lines) + "\n"


def _operation(operation: Mapping[str, Any]) -> Iterator[str]:
    yield f"{operation['summary']} {operation.get('description', '')}".strip()
    yield ""
    parameters = [
        each for each in operation.get("parameters", ()) if each["name"] not in {"tenant", "namespace"}
    ]
    if parameters:
        yield "| parameter | in | value | meaning |"
        yield "|---|---|---|---|"
        for each in parameters:
            yield f"| `{each['name']}` | {each['in']} | {_value(each['schema'])} | {_cell(each['description'])} |"
        yield ""
    body = operation.get("requestBody")
    if body:
        forms = ", ".join(f"`{media_type}`" for media_type in body["content"])
        yield f"The body: {forms}. {body['description']}"
        yield ""
        schema = next(iter(body["content"].values()))["schema"]
        yield from _members(schema.get("items", schema), "of the body")
    yield "| answer | forms | meaning |"
    yield "|---|---|---|"
    common = []
    for status, response in operation["responses"].items():
        if "$ref" in response:
            common.append(status)
            continue
        forms = " ".join(f"`{media_type}`" for media_type in response.get("content", ()))
        yield f"| {_status(status)} | {forms} | {_cell(response['description'])}{_headers(response)} |"
    yield ""
    yield f"Besides: {', '.join(sorted(common))}, as of all operations."
    yield ""
    for media_type, form in _forms(operation):
        if description := form["schema"].get("description"):
            yield f"`{media_type}`: {description}"
            yield ""
        if media_type == "application/json":
            yield from _members(form["schema"], "of the answer")
            break  # a created and a changed topic have the same
    yield "```console"
    yield _EXAMPLES[operation["operationId"]].rstrip("\n")
    yield "```"
    yield ""


def _members(schema: Mapping[str, Any], of_what: str) -> Iterator[str]:
    """A table of the members of an object."""
    if "properties" not in schema:
        return
    yield f"| member {of_what} | value | meaning |"
    yield "|---|---|---|"
    for name, member in schema["properties"].items():
        must = " Required." if name in schema.get("required", ()) and "body" in of_what else ""
        yield f"| `{name}` | {_type(member)} | {_cell(member.get('description', ''))}{must} |"
    yield ""


def _type(schema: Mapping[str, Any]) -> str:
    """What a value of JSON is, in words."""
    if "enum" in schema:
        return _value(schema)
    types = schema.get("type", "any")
    words = []
    for kind in [types] if isinstance(types, str) else types:
        if kind == "array":
            words.append(f"array of {_type(schema['items'])}" if "type" in schema["items"] else "array")
        elif kind == "object" and isinstance(schema.get("additionalProperties"), Mapping):
            words.append(f"object (each value: {_type(schema['additionalProperties'])})")
        elif kind == "integer" and "maximum" in schema:
            words.append(f"{schema['minimum']} to {schema['maximum']}")
        else:
            words.append(kind)
    default = f"; `{json.dumps(schema['default'])}`" if "default" in schema else ""
    return " or ".join(words) + default


def _forms(operation: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The forms of a good answer."""
    for response in operation["responses"].values():
        for media_type, form in response.get("content", {}).items():
            if media_type != "application/problem+json":
                yield media_type, form


def _headers(response: Mapping[str, Any]) -> str:
    return "".join(
        f" `{name}`: {_cell(header['description'])}" for name, header in response.get("headers", {}).items()
    )


def _status(status: str) -> str:
    return f"{status} {HTTPStatus(int(status)).phrase}"


def _value(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        words = ", ".join(f"`{word}`" for word in schema["enum"])
    elif schema["type"] == "array":
        words = f"{_value(schema['items'])}, repeated"
    elif "minimum" in schema:
        words = f"{schema['minimum']} to {schema['maximum']}"
    else:
        words = {"boolean": "`true` or `false`"}.get(schema["type"], schema["type"])
    return words + (f"; `{json.dumps(schema['default'])}`" if "default" in schema else "").replace('"', "")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def main() -> None:
    page = DOCS / PAGE
    head, mark, _ = page.read_text(encoding="utf-8").partition(MARK)
    assert mark, f"{page} has no mark"
    page.write_text(f"{head}{mark}\n{operations_page(openapi())}", encoding="utf-8")


if __name__ == "__main__":
    main()
