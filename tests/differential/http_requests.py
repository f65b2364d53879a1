"""Random requests over HTTP: to `/v1`, and to what Pulsar's tools ask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, urlencode

from tests.differential.drawing import Draw

__all__ = ["HttpRequest", "admin_request", "v1_request"]

_ACCEPT: Final = (
    "application/json",
    "application/x-ndjson",
    "text/plain",
    "application/vnd.apache.arrow.stream",
    "text/html",
    "text/plain;q=0.5, application/json;q=0.2",
    "*/*;q=0",
    "",
)
_JSON: Final = "application/json"


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request; ``target`` is its path and query as they are sent."""

    method: str
    target: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None

    def __str__(self) -> str:
        body = "" if self.body is None else f" {self.body[:2000]!r}"
        return f"{self.method} {self.target} {dict(self.headers)}{body}"


def v1_request(draw: Draw) -> HttpRequest:
    """A request to `/v1`."""
    if draw.pairs.tagged and draw.chance(0.12):
        return _known(draw)
    kind = draw.random.random()
    if kind < 0.3:
        return _listing(draw)
    if kind < 0.42:
        return _read_topic(draw)
    if kind < 0.5:
        return _of_namespaces(draw)
    if kind < 0.58:
        return _explain(draw)
    if kind < 0.78:
        return _put(draw)
    if kind < 0.88:
        return _patch(draw)
    if kind < 0.95:
        return _delete(draw)
    return _import(draw)


def _known(draw: Draw) -> HttpRequest:
    """A request about something whose entity tag an earlier answer had."""
    pairs = draw.of(draw.pairs.tagged)
    draw.holes += [(first.encode(), second.encode()) for first, second in pairs if first != second]
    target, tag = (first for first, _ in pairs)
    is_topic = "?" not in target and not target.endswith("/topics")
    method = draw.of(("GET", "PUT", "PATCH", "DELETE")) if is_topic else "GET"
    if method == "GET":
        return HttpRequest("GET", target, {"If-None-Match": tag})
    condition = draw.of(("If-Match", "If-Match", "If-None-Match"))
    headers = {"Content-Type": _JSON, condition: tag}
    return HttpRequest(
        method, target, headers, None if method == "DELETE" else draw.json_text(_content(draw))
    )


def _namespace_path(draw: Draw) -> str:
    return "/v1/namespaces/" + quote(draw.namespace(), safe="/")


def _topic_path(draw: Draw) -> str:
    name = draw.topic() if draw.chance(0.15) else draw.local_name()
    return f"{_namespace_path(draw)}/topics/{quote(name, safe='')}"


def _id_path(draw: Draw) -> str:
    topic_id = draw.topic_id()
    text = draw.kept("id", "x") if draw.chance(0.5) else draw.of((topic_id.hex, str(topic_id), "x", "0" * 22))
    return f"/v1/topics/by-id/{quote(text, safe='')}"


def _query(draw: Draw, pairs: list[tuple[str, str]]) -> str:
    if draw.chance(0.04):
        pairs.append((draw.of(("unknown", "limit", "pattern", "exact")), draw.of(("", "x", "1"))))
    return "?" + urlencode(pairs) if pairs else ""


def _conditions(draw: Draw) -> dict[str, str]:
    found = {}
    for name in ("If-Match", "If-None-Match"):
        if draw.chance(0.15):
            tag = draw.kept("etag", '"x"')
            found[name] = draw.of(
                ("*", tag, tag, f"W/{tag}", f'"a", {tag}', "x", "", f"{tag} x", '"unfinished')
            )
    return found


def _listing(draw: Draw) -> HttpRequest:
    namespace = draw.namespace()
    pairs: list[tuple[str, str]] = []
    if draw.chance(0.5):
        pairs.append(("pattern", draw.pattern(namespace)))
    if draw.chance(0.4):
        pairs.append(("mode", draw.of(("persistent", "non_persistent", "all", "ALL", "x", ""))))
    pairs += (
        [("property", f"{key}={value}") for key, value in draw.properties().items()]
        if draw.chance(0.4)
        else []
    )
    if draw.chance(0.45):
        pairs.append(("limit", draw.of(("1", "2", "7", "100", "10000", "0", "10001", "x", "-1", ""))))
    if draw.chance(0.25):
        pairs.append(("cursor", draw.of((draw.kept("cursor", "x"), draw.kept("cursor", "x"), "x", ""))))
    if draw.chance(0.3):
        wants = [name for name in ("partitions", "topic_id", "properties", "nothing") if draw.chance(0.5)]
        pairs.append(("detail", ",".join(wants)))
    if draw.chance(0.3):
        pairs.append(("count", draw.of(("true", "false", "1"))))
    headers: dict[str, str] = {}
    if draw.chance(0.4):
        headers["Accept"] = draw.of(_ACCEPT)
    if draw.chance(0.15):
        headers["Accept-Encoding"] = draw.of(("gzip", "br", "gzip;q=0"))
    if draw.chance(0.25):
        tag = draw.kept("etag", 'W/"x"')
        headers["If-None-Match"] = draw.of((tag, f'W/"a", {tag}', "*", f'W/"{draw.kept("hash", "0")}"'))
    path = f"/v1/namespaces/{quote(namespace, safe='/')}/topics"
    return HttpRequest("GET", path + _query(draw, pairs), headers)


def _read_topic(draw: Draw) -> HttpRequest:
    headers = {"If-None-Match": draw.kept("etag", '"x"')} if draw.chance(0.2) else {}
    return HttpRequest("GET", _id_path(draw) if draw.chance(0.4) else _topic_path(draw), headers)


def _of_namespaces(draw: Draw) -> HttpRequest:
    kind = draw.random.random()
    if kind < 0.3:
        pairs = [("limit", draw.of(("1", "2", "1000", "0")))] if draw.chance(0.5) else []
        pairs += [("cursor", draw.kept("cursor", "x"))] if draw.chance(0.3) else []
        return HttpRequest("GET", "/v1/namespaces" + _query(draw, pairs))
    if kind < 0.6:
        return HttpRequest("GET", _namespace_path(draw))
    pairs = [("since", draw.kept("version", "x"))] if draw.chance(0.8) else []
    pairs += [("limit", draw.of(("1", "3", "1000")))] if draw.chance(0.5) else []
    return HttpRequest("GET", f"{_namespace_path(draw)}/changes" + _query(draw, pairs))


def _explain(draw: Draw) -> HttpRequest:
    namespace = draw.namespace()
    question: dict[str, Any] = {}
    if draw.chance(0.7):
        question["pattern"] = draw.pattern(namespace)
    if draw.chance(0.4):
        question["mode"] = draw.of(("persistent", "non_persistent", "all", "ALL", "x"))
    if draw.chance(0.4):
        question["properties"] = draw.properties()
    path = f"/v1/namespaces/{quote(namespace, safe='/')}/explain"
    return HttpRequest("POST", path, {"Content-Type": _JSON}, draw.json_text(question))


def _content(draw: Draw) -> dict[str, Any]:
    content: dict[str, Any] = {}
    if draw.chance(0.7):
        content["partitions"] = draw.number()
    if draw.chance(0.6):
        content["properties"] = draw.properties(2)
    if draw.chance(0.3):
        content["configs"] = {name: value or "" for name, value in draw.configs().items()}
    return content


def _typed(draw: Draw, kind: str) -> dict[str, str]:
    if draw.chance(0.05):
        kind = draw.of(
            ("", "text/plain", "application/json; charset=utf-8", "application/json; charset=latin-1", "x")
        )
    return {"Content-Type": kind} if kind else {}


def _put(draw: Draw) -> HttpRequest:
    headers = _typed(draw, _JSON) | _conditions(draw)
    return HttpRequest("PUT", _topic_path(draw), headers, draw.json_text(_content(draw)))


def _patch(draw: Draw) -> HttpRequest:
    content = _content(draw)
    if draw.chance(0.3):
        content["properties"] = None if draw.chance(0.3) else {"region": None, "team": "a"}
    headers = _typed(draw, draw.of((_JSON, "application/merge-patch+json"))) | _conditions(draw)
    return HttpRequest("PATCH", _topic_path(draw), headers, draw.json_text(content))


def _delete(draw: Draw) -> HttpRequest:
    path = _id_path(draw) if draw.chance(0.4) else _topic_path(draw)
    return HttpRequest("DELETE", path, _conditions(draw))


def _import(draw: Draw) -> HttpRequest:
    lines = []
    for _ in range(draw.random.randrange(5)):
        line: dict[str, Any] = {"name": draw.topic() if draw.chance(0.1) else draw.local_name()} | _content(
            draw
        )
        if draw.chance(0.1):
            line["replication"] = draw.of((1, 3, 0, None, 40_000))
        if draw.chance(0.1):
            line["topic_id"] = draw.of((str(draw.topic_id()), draw.kept("id", "x"), "x"))
        lines.append(draw.json_text(line, spoil=0.08))
    pairs = [("exact", draw.of(("true", "false", "x")))] if draw.chance(0.3) else []
    pairs += [("max_deletions", draw.of(("0", "2", "100000")))] if draw.chance(0.2) else []
    headers = _typed(draw, "application/x-ndjson")
    return HttpRequest(
        "POST", f"{_namespace_path(draw)}/topics:import" + _query(draw, pairs), headers, b"\n".join(lines)
    )


def admin_request(draw: Draw) -> HttpRequest:
    """A request to `/admin/v2` or `/lookup/v2`."""
    namespace = quote(draw.namespace(), safe="/")
    domain = draw.domain()
    topic = f"{domain}/{namespace}/{quote(draw.local_name(), safe='')}"
    kind = draw.random.random()
    if kind < 0.3:
        pairs = [("mode", draw.of(("ALL", "PERSISTENT", "NON_PERSISTENT", "x")))] if draw.chance(0.4) else []
        if draw.chance(0.3):
            pairs.append(
                ("properties", ",".join(f"{key}={value}" for key, value in draw.properties().items()))
            )
        if draw.chance(0.2):
            pairs.append((draw.of(("includeSystemTopic", "bundle")), draw.of(("true", "false", "x"))))
        path = draw.of(
            (f"namespaces/{namespace}/topics", f"{domain}/{namespace}", f"{domain}/{namespace}/partitioned")
        )
        return HttpRequest("GET", f"/admin/v2/{path}" + ("?" + urlencode(pairs) if pairs else ""))
    if kind < 0.5:
        paths = (
            f"/lookup/v2/topic/{topic}",
            f"/admin/v2/{topic}/partitions",
            f"/admin/v2/{topic}/partitions?checkAllowAutoCreation=true",
            f"/admin/v2/schemas/{namespace}/{topic.rpartition('/')[2]}/schema",
            f"/admin/v2/schemas/{namespace}/{topic.rpartition('/')[2]}/schema/{draw.of(('1', 'x', '-1'))}",
            f"/admin/v2/{topic}/properties",
        )
        return HttpRequest("GET", draw.of(paths))
    if kind < 0.6:
        names = ("tenants", "clusters", "namespaces/acme", "namespaces/none", f"namespaces/{namespace}")
        return HttpRequest("GET", f"/admin/v2/{draw.of(names)}")
    if kind < 0.63:
        return HttpRequest(draw.of(("PUT", "DELETE")), f"/admin/v2/namespaces/{namespace}")
    return _admin_write(draw, topic)


def _admin_write(draw: Draw, topic: str) -> HttpRequest:
    method, path = draw.of(
        (
            ("PUT", topic),
            ("DELETE", topic),
            ("DELETE", f"{topic}?force=true"),
            ("PUT", f"{topic}/partitions"),
            ("POST", f"{topic}/partitions"),
            ("DELETE", f"{topic}/partitions"),
            ("PUT", f"{topic}/properties"),
            ("DELETE", f"{topic}/properties?key=region"),
        )
    )
    if method == "DELETE":
        return HttpRequest(method, f"/admin/v2/{path}")
    number = draw.number()
    if path.endswith("/partitions"):
        if draw.chance(0.3):
            kind = "application/vnd.partitioned-topic-metadata+json"
            value: Any = {"partitions": number, "properties": draw.properties(2)}
        else:
            kind, value = _JSON, number
    else:
        kind, value = _JSON, draw.properties(2)
    body = draw.json_text(value, spoil=0.15) if draw.chance(0.95) else None
    return HttpRequest(method, f"/admin/v2/{path}", _typed(draw, kind), body)
