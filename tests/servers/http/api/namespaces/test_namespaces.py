"""The operations of the package, as the OpenAPI document has them."""

from __future__ import annotations

from tests.support.api_serving import ApiServed


async def test_all_operations_are_served(served: ApiServed) -> None:
    document = (await served.ask("/v1/openapi.json")).json
    namespace = "/v1/namespaces/{tenant}/{namespace}"
    found = {
        (path, operation["operationId"])
        for path, methods in document["paths"].items()
        for operation in methods.values()
    }
    assert {
        ("/v1/namespaces", "listNamespaces"),
        (namespace, "showNamespace"),
        (f"{namespace}/topics/{{topic}}", "showTopic"),
        (f"{namespace}/changes", "listChanges"),
        (f"{namespace}/explain", "explainListing"),
    } <= found
