"""Record what a real broker answers to requests of its admin and lookup HTTP interface.

``python -m tests.interop.record_admin`` starts a broker and writes ``tests/vectors/pulsar-4.2.4-admin.json``.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.interop.pulsar_peer import PulsarBroker

__all__ = ["Exchange", "ask", "exchanges"]

_OUT: Final = Path(__file__).resolve().parents[1] / "vectors" / "pulsar-4.2.4-admin.json"
_JSON: Final = "application/json"
_METADATA: Final = "application/vnd.partitioned-topic-metadata+json"
_NOTES: Final = [
    "Requests to an Apache Pulsar 4.2.4 standalone broker, one after the other: each meets what those before it made.",
    "First of all, the namespace public/recorded was created.",
    "PORT is the port of the broker's binary protocol, HTTP that of its web service.",
    "answer is the body as JSON where it is JSON, else its text; a body of HTML is left out, and so are stack traces.",
]


@dataclass(frozen=True)
class Exchange:
    """A request: the text of its body, if any, goes out as ``content``."""

    method: str
    path: str
    body: str | None = None
    content: str | None = None

    def described(self) -> dict[str, Any]:
        """The exchange as plain values, without what it does not have."""
        found = {"method": self.method, "path": self.path, "body": self.body, "content": self.content}
        return {name: value for name, value in found.items() if value is not None}


def ask(host: str, port: int, asked: Exchange, headers: dict[str, str] | None = None) -> dict[str, Any]:
    """Send the path as it is written; status, content type and body of the answer."""
    with contextlib.closing(http.client.HTTPConnection(host, port, timeout=60)) as connection:
        sent = dict(headers or {})
        if asked.content is not None:
            sent["Content-Type"] = asked.content
        body = None if asked.body is None else asked.body.encode()
        connection.request(asked.method, asked.path, body, sent)
        response = connection.getresponse()
        said = response.read()
    found: dict[str, Any] = {"status": response.status}
    content = response.getheader("Content-Type")
    if content is not None:
        found["content_type"] = content.replace(" ", "").lower()
    if said and "html" not in (content or ""):
        found["answer"] = _value(said)
    return found


def _value(said: bytes) -> Any:
    try:
        value = json.loads(said)
    except ValueError:
        return said.decode("utf-8", "replace")
    if isinstance(value, dict) and isinstance(value.get("reason"), str):
        value["reason"] = value["reason"].partition("\n\nStacktrace:")[0]
    return value


def exchanges() -> Iterator[Exchange]:
    """All requests, in their order."""
    admin = "/admin/v2"
    here = "public/recorded"
    topics = f"{admin}/persistent/{here}"
    yield from _get(
        f"{admin}/tenants",
        f"{admin}/namespaces/public",
        f"{admin}/namespaces/nowhere",
        f"{admin}/namespaces/{here}",
        f"{admin}/namespaces/public/nowhere",
        f"{admin}/namespaces/{here}/topics",
        topics,
        f"{topics}/partitioned",
    )
    # Plain topics, and bodies of properties.
    yield from (
        Exchange("PUT", f"{topics}/plain"),
        Exchange("PUT", f"{topics}/plain"),
        Exchange("PUT", f"{topics}/by-map", '{"a": "1", "b": "x y"}', _JSON),
        Exchange("PUT", f"{topics}/by-number", '{"a": 1}', _JSON),
        Exchange("PUT", f"{topics}/by-true", '{"a": true}', _JSON),
        Exchange("PUT", f"{topics}/by-nothing", "{}", _JSON),
        Exchange("PUT", f"{topics}/by-null", "null", _JSON),
        Exchange("PUT", f"{topics}/bad-0", '{"a": {"b": "c"}}', _JSON),
        Exchange("PUT", f"{topics}/bad-1", "[]", _JSON),
        Exchange("PUT", f"{topics}/bad-2", "nonsense", _JSON),
        Exchange("PUT", f"{topics}/bad-3", '"text"', _JSON),
        Exchange("PUT", f"{topics}/bad-4", "{}", "text/plain"),
        Exchange("PUT", f"{topics}/bad-5", "{}"),
        Exchange("PUT", f"{topics}/by-empty-body", "", _JSON),
    )
    # Partitioned topics, and both bodies.
    yield from (
        Exchange("PUT", f"{topics}/parted/partitions", "3", _JSON),
        Exchange("PUT", f"{topics}/parted/partitions", "3", _JSON),
        Exchange(
            "PUT", f"{topics}/told/partitions", '{"partitions": 2, "properties": {"k": "v"}}', _METADATA
        ),
        Exchange("PUT", f"{topics}/properties_only/partitions", '{"partitions": 2}', _METADATA),
        Exchange("PUT", f"{topics}/parted-0/partitions", "0", _JSON),
        Exchange("PUT", f"{topics}/parted-1/partitions", "-1", _JSON),
        Exchange("PUT", f"{topics}/parted-2/partitions", '"2"', _JSON),
        Exchange("PUT", f"{topics}/parted-3/partitions", "2.5", _JSON),
        Exchange("PUT", f"{topics}/parted-4/partitions", "nonsense", _JSON),
        Exchange("PUT", f"{topics}/parted-5/partitions"),
        Exchange("PUT", f"{topics}/parted-6/partitions", '{"partitions": 0}', _METADATA),
        Exchange("PUT", f"{topics}/parted-7/partitions", "{}", _METADATA),
        Exchange("PUT", f"{topics}/parted-8/partitions", "3", _METADATA),
        Exchange("PUT", f"{topics}/parted-9/partitions", '{"partitions": 3}', _JSON),
        Exchange("PUT", f"{topics}/parted-11/partitions", '{"partitions": 2, "more": 1}', _METADATA),
        Exchange("PUT", f"{topics}/plain/partitions", "3", _JSON),
        Exchange("PUT", f"{topics}/parted"),
        Exchange("PUT", f"{topics}/x-partition-3"),
        Exchange("PUT", f"{topics}/x-partition-3/partitions", "2", _JSON),
        Exchange("PUT", f"{topics}/parted-partition-9"),
        Exchange("PUT", f"{topics}/parted-partition-1"),
        Exchange("PUT", f"{topics}/x-partition-03"),
    )
    # What is there now.
    parted_at = "?checkAllowAutoCreation=true"
    yield from _get(
        f"{topics}/parted/partitions",
        f"{topics}/parted/partitions{parted_at}",
        f"{topics}/told/partitions",
        f"{topics}/plain/partitions",
        f"{topics}/parted-partition-0/partitions",
        f"{topics}/parted-partition-9/partitions",
        f"{topics}/unknown/partitions",
        f"{topics}/unknown/partitions{parted_at}",
        f"{topics}/unknown/partitions",
        f"{topics}/plain/properties",
        f"{topics}/by-map/properties",
        f"{topics}/by-number/properties",
        f"{topics}/parted/properties",
        f"{topics}/told/properties",
        f"{topics}/parted-partition-0/properties",
        f"{topics}/told-partition-0/properties",
        f"{topics}/unknown/properties",
        f"/lookup/v2/topic/persistent/{here}/plain",
        f"/lookup/v2/topic/persistent/{here}/plain?authoritative=true",
        f"/lookup/v2/topic/persistent/{here}/plain?listenerName=unknown",
        f"/lookup/v2/topic/persistent/{here}/plain/bundle",
        f"/lookup/v2/topic/persistent/{here}/parted-partition-0",
        f"/lookup/v2/topic/persistent/{here}/parted",
        f"/lookup/v2/topic/persistent/{here}/parted/partitions",
        f"/lookup/v2/topic/persistent/{here}/unknown",
        "/lookup/v2/topic/persistent/public/nowhere/unknown",
        f"/lookup/v2/topic/neither/{here}/plain",
        f"{admin}/schemas/{here}/plain/schema",
        f"{admin}/schemas/{here}/plain/schema/0",
        f"{admin}/schemas/{here}/unknown/schema",
    )
    # Properties.
    yield from (
        Exchange("PUT", f"{topics}/by-map/properties", '{"b": "2", "c": "3"}', _JSON),
        Exchange("GET", f"{topics}/by-map/properties"),
        Exchange("PUT", f"{topics}/told/properties", '{"l": "w"}', _JSON),
        Exchange("GET", f"{topics}/told/properties"),
        Exchange("GET", f"{topics}/told/partitions"),
        Exchange("PUT", f"{topics}/told-partition-0/properties", '{"m": "x"}', _JSON),
        Exchange("GET", f"{topics}/told/properties"),
        Exchange("GET", f"{topics}/told-partition-0/properties"),
        Exchange("PUT", f"{topics}/unknown/properties", '{"a": "1"}', _JSON),
        Exchange("PUT", f"{topics}/plain/properties", "{}", _JSON),
        Exchange("PUT", f"{topics}/plain/properties", "[]", _JSON),
        Exchange("PUT", f"{topics}/plain/properties", "nonsense", _JSON),
        Exchange("PUT", f"{topics}/plain/properties"),
        Exchange("PUT", f"{topics}/plain/properties", "null", _JSON),
        Exchange("PUT", f"{topics}/plain/properties", '{"n": null}', _JSON),
        Exchange("GET", f"{topics}/plain/properties"),
        Exchange("DELETE", f"{topics}/by-map/properties?key=b"),
        Exchange("DELETE", f"{topics}/by-map/properties?key=unknown"),
        Exchange("GET", f"{topics}/by-map/properties"),
        Exchange("DELETE", f"{topics}/by-map/properties"),
        Exchange("GET", f"{topics}/by-map/properties"),
        Exchange("DELETE", f"{topics}/unknown/properties?key=a"),
        Exchange("DELETE", f"{topics}/told/properties?key=l"),
        Exchange("GET", f"{topics}/told/properties"),
    )
    # More partitions.
    yield from (
        Exchange("POST", f"{topics}/parted/partitions", "5", _JSON),
        Exchange("GET", f"{topics}/parted/partitions"),
        Exchange("POST", f"{topics}/parted/partitions", "5", _JSON),
        Exchange("POST", f"{topics}/parted/partitions", "2", _JSON),
        Exchange("POST", f"{topics}/parted/partitions", "0", _JSON),
        Exchange("POST", f"{topics}/parted/partitions", "-1", _JSON),
        Exchange("POST", f"{topics}/parted/partitions", "nonsense", _JSON),
        Exchange("POST", f"{topics}/parted/partitions"),
        Exchange("POST", f"{topics}/plain/partitions", "2", _JSON),
        Exchange("POST", f"{topics}/unknown/partitions", "2", _JSON),
        Exchange("POST", f"{topics}/parted-partition-0/partitions", "2", _JSON),
    )
    # Names.
    yield from (
        Exchange("PUT", f"{topics}/a%20b"),
        Exchange("PUT", f"{topics}/caf%C3%A9"),
        Exchange("PUT", f"{topics}/50%25"),
        Exchange("PUT", f"{topics}/plus+"),
        Exchange("PUT", f"{topics}/plus%2B"),
        Exchange("PUT", f"{topics}/zero%00"),
        Exchange("PUT", f"{topics}/cut%C3"),
        Exchange("PUT", f"{topics}/sl%2Fash"),
        Exchange("PUT", f"{topics}/percent%"),
        Exchange("PUT", f"{admin}/neither/{here}/plain"),
        Exchange("PUT", f"{admin}/persistent/public/bad%20name/plain"),
        Exchange("PUT", f"{admin}/persistent/public/unmade/plain"),
        Exchange("PUT", f"{admin}/persistent/public/unmade-too/parted/partitions", "2", _JSON),
        Exchange("PUT", f"{admin}/persistent/nobody/at-all/plain"),
    )
    # Listings.
    other = f"{admin}/non-persistent/{here}"
    yield from _get(
        topics,
        f"{topics}?includeSystemTopic=true",
        f"{topics}?bundle=0x00000000_0xffffffff",
        f"{topics}?bundle=0x00000000_0x80000000",
        f"{topics}?bundle=nonsense",
        f"{topics}?unknown=parameter",
        f"{topics}?properties=a%3D1",
        f"{topics}?properties=region",
        f"{topics}?properties=",
        f"{topics}?properties=%3Deu",
        f"{topics}?properties=a%3D1%2Cb%3D2",
        f"{topics}?properties=a%3D%25zz",
        f"{topics}?properties=a=1&properties=b=2",
        f"{topics}/partitioned",
        f"{topics}/partitioned?includeSystemTopic=true",
        other,
        f"{other}/partitioned",
        *(
            f"{admin}/namespaces/{here}/topics?mode={mode}"
            for mode in ("PERSISTENT", "NON_PERSISTENT", "ALL", "all", "NEITHER", "")
        ),
        f"{admin}/namespaces/{here}/topics",
        f"{admin}/namespaces/public/nowhere/topics",
        f"{admin}/persistent/public/nowhere",
        f"{admin}/persistent/public/nowhere/partitioned",
        f"{admin}/non-persistent/public/nowhere",
        f"{admin}/non-persistent/public/nowhere/partitioned",
        f"{admin}/persistent/nowhere/at-all",
        f"{admin}/persistent/public/bad%20name",
        f"{admin}/neither/{here}",
        f"{admin}/persistent/public/nowhere/plain/partitions",
        f"{admin}/persistent/public/nowhere/plain/partitions?checkAllowAutoCreation=true",
        f"{admin}/persistent/public/nowhere/plain/properties",
    )
    # Topics without a store.
    yield from (
        Exchange("PUT", f"{other}/fleeting"),
        Exchange("PUT", f"{other}/fleeting"),
        Exchange("PUT", f"{other}/flock/partitions", "2", _JSON),
        Exchange("GET", f"{other}/fleeting/partitions"),
        Exchange("GET", f"{other}/flock/partitions"),
        Exchange("GET", f"{other}/fleeting/properties"),
        Exchange("GET", other),
        Exchange("GET", f"{other}/partitioned"),
        Exchange("DELETE", f"{other}/fleeting"),
        Exchange("DELETE", f"{other}/flock/partitions"),
    )
    # Deletions.
    yield from (
        Exchange("DELETE", f"{topics}/parted"),
        Exchange("DELETE", f"{topics}/parted?force=true"),
        Exchange("DELETE", f"{topics}/plain/partitions"),
        Exchange("DELETE", f"{topics}/parted-partition-0/partitions"),
        Exchange("DELETE", f"{topics}/unknown"),
        Exchange("DELETE", f"{topics}/unknown/partitions"),
        Exchange("DELETE", f"{admin}/persistent/public/nowhere/plain"),
        Exchange("DELETE", f"{admin}/persistent/public/nowhere/plain/partitions"),
        Exchange("DELETE", f"{topics}/plain"),
        Exchange("DELETE", f"{topics}/plain"),
        Exchange("DELETE", f"{topics}/by-map?force=true&authoritative=false&deleteSchema=true"),
        Exchange("PUT", f"{topics}/split/partitions", "3", _JSON),
        Exchange("DELETE", f"{topics}/split-partition-1"),
        Exchange("GET", f"{topics}/split/partitions"),
        Exchange("PUT", f"{topics}/split-partition-1"),
        Exchange("DELETE", f"{topics}/split-partition-2"),
        Exchange("GET", f"{topics}/split/partitions"),
        Exchange("DELETE", f"{topics}/split/partitions"),
        Exchange("DELETE", f"{topics}/parted/partitions"),
        Exchange("GET", f"{topics}/parted/partitions"),
        Exchange("DELETE", f"{topics}/told/partitions?force=true"),
        Exchange("GET", topics),
        Exchange("GET", f"{topics}/partitioned"),
    )
    # What this interface has besides, and has not.
    yield from (
        Exchange("PUT", f"{admin}/namespaces/public/made"),
        Exchange("PUT", f"{admin}/namespaces/public/made"),
        Exchange("DELETE", f"{admin}/namespaces/public/made"),
        Exchange("DELETE", f"{admin}/namespaces/public/nowhere"),
        Exchange("PUT", f"{topics}/by-plain-text/partitions", "3", "text/plain"),
        Exchange("DELETE", topics),
        Exchange("POST", f"{topics}/plain"),
        Exchange("PUT", f"{admin}/namespaces/{here}/topics"),
        Exchange("GET", f"{admin}/nothing"),
        Exchange("GET", "/admin/v3/tenants"),
        Exchange("GET", "/lookup/v2/topic"),
        Exchange("PUT", f"/lookup/v2/topic/persistent/{here}/plain"),
    )


def _get(*paths: str) -> Iterator[Exchange]:
    for path in paths:
        yield Exchange("GET", path)


def main() -> None:
    """Record all of them."""
    with tempfile.TemporaryDirectory() as folder, PulsarBroker(Path(folder)) as broker:
        broker.admin.create_namespace("public/recorded")
        found = []
        for asked in exchanges():
            answer = ask("127.0.0.1", broker.http_port, asked)
            found.append({**asked.described(), **answer})
        text = json.dumps({"notes": _NOTES, "exchanges": found}, indent=1, ensure_ascii=False)
        text = text.replace(f"127.0.0.1:{broker.binary_port}", "127.0.0.1:PORT")
        text = text.replace(f"127.0.0.1:{broker.http_port}", "127.0.0.1:HTTP")
    _OUT.write_text(text + "\n", encoding="utf-8")
    print(f"{len(found)} exchanges in {_OUT}")


if __name__ == "__main__":
    main()
