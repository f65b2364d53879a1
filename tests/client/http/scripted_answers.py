"""Answers of a scripted HTTP server: those of this server, and of a broker."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

import pyarrow as pa
from aiohttp import web

NAMES = [f"persistent://t/n/{name}" for name in ("a", "b", "b-partition-1", "c d")]
ARROW = "application/vnd.apache.arrow.stream"


def arrow(names: list[str], **headers: str) -> web.Response:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pa.schema([("name", pa.string())])) as out:
        out.write_batch(pa.record_batch([pa.array(names, pa.string())], names=["name"]))
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return web.Response(body=sink.getvalue().to_pybytes(), content_type=ARROW, headers=named)


def problem(status: int, cause: str, detail: str) -> web.Response:
    return web.json_response(
        {"cause": cause, "detail": detail}, status=status, content_type="application/problem+json"
    )


def always(make: Callable[[], web.StreamResponse]) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def answer(_request: web.Request) -> web.StreamResponse:
        return make()

    return answer


async def broker(request: web.Request) -> web.StreamResponse:
    """A broker's web service: it has no API of ours."""
    if request.path == "/admin/v2/namespaces/t/n/topics":
        assert request.query["mode"] in ("PERSISTENT", "NON_PERSISTENT", "ALL")
        return web.json_response(NAMES, dumps=lambda names: json.dumps(names, separators=(",", ":")))
    if request.path.startswith("/admin/v2/persistent/t/n/"):
        return web.json_response({"partitions": 3, "deleted": False})
    if request.path.startswith("/lookup/v2/topic/persistent/t/n/"):
        return web.json_response({"brokerUrl": "pulsar://b:6650", "brokerUrlTls": "", "httpUrl": "http://b"})
    if request.path.startswith(("/admin", "/lookup")):
        return web.json_response({"reason": "Namespace does not exist"}, status=404)
    return web.Response(status=404, text="<html>", content_type="text/html")
