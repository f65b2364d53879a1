"""What schemathesis has to know of this server: its formats, its media types, and what a schema cannot say."""

from __future__ import annotations

import base64
import io
import json
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import re2
import schemathesis
from hypothesis import strategies as st
from schemathesis.generation import GenerationMode
from schemathesis.generation.meta import TestPhase

from broker_core.listing.pages.page import NO_PARTITION, Position
from broker_core.names.namespace_name import MAX_NAMESPACE
from broker_core.servers.http.api.topics.cursor import cursor_of

_LISTING = "/v1/namespaces/{tenant}/{namespace}/topics"

schemathesis.openapi.format("entity-tags", st.sampled_from(["*", '"a"', 'W/"a", "b"', '""']))
schemathesis.openapi.format("cursor", st.just("AAAA"))
schemathesis.openapi.format(
    "version",
    st.tuples(st.text("Aa0_-", min_size=22, max_size=22), st.integers(0, 2**40)).map(
        lambda parts: f"{parts[0]}:{parts[1]}"
    ),
)


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """Cursors are of the namespace that is asked, configs are known, and both parts of a namespace are bounded.

    Few topics have the most partitions: those of the phase that is about bounds.
    """
    if case.meta is not None and case.meta.generation.mode is GenerationMode.NEGATIVE:
        return
    path = case.path_parameters
    if "max_deletions" in (case.query or {}):
        case.query["exact"] = "true"
    if path and len(path.get("tenant", "")) + len(path.get("namespace", "")) >= MAX_NAMESPACE:
        path["tenant"], path["namespace"] = path["tenant"][:100], path["namespace"][:100]
    query = case.query or {}
    if "pattern" in query:
        query["pattern"] = _pattern(query["pattern"])
    if isinstance(case.body, dict) and isinstance(case.body.get("pattern"), str):
        case.body["pattern"] = _pattern(case.body["pattern"])
    if isinstance(case.body, list):  # the topics of an import, whose names may be full ones
        for item in case.body:
            item["name"] = item["name"].replace("/", "-")
    for item in case.body if isinstance(case.body, list) else [case.body]:
        if isinstance(item, dict) and item.get("partitions") and not _is_of_bounds(case):
            item["partitions"] = min(item["partitions"], 1000)
        if isinstance(item, dict) and item.get("configs"):
            item["configs"] = {"retention.ms": "5"}
    if "offset" in query:
        query.pop("cursor", None)
        query.setdefault("limit", "1")
    if "cursor" in (case.query or {}):
        case.query["cursor"] = _cursor(case)


@schemathesis.hook
def after_call(context: Any, case: Any, response: Any) -> None:
    """To the router, `orders:why` is the name of a topic too, which other methods may be about: `Allow` has them."""
    if case.operation.path.endswith(":why") and response.request.method == "OPTIONS":
        response.headers.pop("allow", None)


def _is_of_bounds(case: Any) -> bool:
    return case.meta is not None and case.meta.phase.name == TestPhase.COVERAGE


def _cursor(case: Any) -> str:
    if case.operation.path != _LISTING:
        return base64.urlsafe_b64encode(b"public/default").decode().rstrip("=")
    tenant, namespace = (unquote(case.path_parameters[name]) for name in ("tenant", "namespace"))
    return cursor_of(Position(f"persistent://{tenant}/{namespace}/orders", NO_PARTITION))


def _pattern(text: str) -> str:
    """The text if it is a pattern, else a pattern of the text itself."""
    try:
        re2.compile(text)
    except re2.error:
        return str(re2.escape(text))
    return text


@schemathesis.serializer("application/x-ndjson")
def lines(context: Any, value: Any) -> bytes:
    items = value if isinstance(value, list) else [value]
    return b"".join(json.dumps(item).encode() + b"\n" for item in items)


@schemathesis.serializer("application/merge-patch+json")
def merge_patch(context: Any, value: Any) -> bytes:
    return json.dumps(value).encode()


@schemathesis.deserializer("application/x-ndjson")
def items(context: Any, response: Any) -> list[Any]:
    return [json.loads(line) for line in response.content.splitlines()]


@schemathesis.deserializer("application/vnd.apache.arrow.stream")
def columns(context: Any, response: Any) -> dict[str, Any]:
    """An error if the stream is not complete."""
    read: dict[str, Any] = pa.ipc.open_stream(io.BytesIO(response.content)).read_all().to_pydict()
    return read
