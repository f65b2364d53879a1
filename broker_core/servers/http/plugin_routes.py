"""The routes of plugins' sites as operations: admission, rights, quotas, errors and metrics are as in ``/v1``."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from aiohttp import hdrs, web

from broker_core.compact_json import json_encoder
from broker_core.plugin_api import PLACEHOLDER, HttpRequest, HttpRoute
from broker_core.plugins import PluginFailed, PluginSite
from broker_core.servers.http.api import Admit, ApiServices, HttpApi
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.negotiation import takes_gzip
from broker_core.servers.http.api.operation import Body, HttpOperation, Parameter, Reply, Right
from broker_core.servers.http.api.parameters import check_path, read_query
from broker_core.servers.http.site_files import PAGE_HEADERS

__all__ = ["routes_of_plugin"]

#: Bytes of a body, and of an answer.
_MOST_BODY: Final = 1024 * 1024
_MOST_ANSWER: Final = 16 * 1024 * 1024
_LEAST_GZIP: Final = 1024
#: The encoder of answers: as for any JSON of HTTP; infinity and "not a number" are none.
_JSON: Final = json_encoder(ascii_only=True, finite=True)
_RIGHTS: Final[Mapping[str, Right]] = {
    "nothing": Right.NOTHING,
    "credentials": Right.CREDENTIALS,
    "list": Right.LIST,
    "monitor": Right.MONITOR_EVERYWHERE,
    "admin": Right.ADMIN_EVERYWHERE,
    "super": Right.SUPER,
}


def routes_of_plugin(of_plugin: PluginSite, services: ApiServices, admit: Admit) -> list[web.RouteDef]:
    """The routes of a site. ``admit`` gives the asker."""
    operations = [_operation(of_plugin, route) for route in of_plugin.site.routes]
    services = replace(services, pages=services.pages.of_site(may_change=of_plugin.site.changes))
    return (
        HttpApi(of_plugin.site.at("/"), operations, services, admit, read=_values).routes()
        if operations
        else []
    )


def _operation(of_plugin: PluginSite, route: HttpRoute) -> HttpOperation:
    is_change = route.method != "GET"
    return HttpOperation(
        route.method,
        of_plugin.site.at(route.path),
        f"{of_plugin.plugin} {route.method} {route.path}",
        f"A route of the plugin {of_plugin.plugin}.",
        Right.ADMIN if route.needs == "admin" and route.has_namespace else _RIGHTS[route.needs],
        partial(_answer, of_plugin, route),
        {200: Reply("What the plugin says.", {route.content_type: {}})},
        parameters=tuple(
            Parameter(name, "A part of the path.", within="path")
            for name in PLACEHOLDER.findall(route.path)
            if name not in {"tenant", "namespace"}
        ),
        body=Body({"application/json": {}}, _MOST_BODY, required=False) if is_change else None,
        changes="ask_plugin" if is_change else None,
    )


def _values(request: web.Request, _operation: HttpOperation) -> dict[str, Any]:
    """The parameters of a request, unchecked: only the plugin knows which are valid."""
    check_path(request)
    return {name: texts[-1] for name, texts in read_query(request).items()}


async def _answer(of_plugin: PluginSite, route: HttpRoute, request: ApiRequest) -> web.StreamResponse:
    body = await request.json() if route.method != "GET" and request.http.body_exists else None
    answer = await of_plugin.answer(
        route, HttpRequest(request.asker, dict(request.http.match_info), request.values, body)
    )
    packs = takes_gzip(request.http)
    content, packed = await asyncio.to_thread(_content, of_plugin.plugin, answer, packs=packs)
    headers = {**PAGE_HEADERS, hdrs.CONTENT_TYPE: route.content_type}
    if packed:
        headers[hdrs.CONTENT_ENCODING] = "gzip"
    return web.Response(body=content, headers=headers)


def _content(plugin: str, answer: object, *, packs: bool) -> tuple[bytes, bool]:
    """The bytes of an answer, and whether they are compressed. Raises :exc:`~broker_core.plugins.PluginFailed`."""
    try:
        content = answer if isinstance(answer, bytes) else f"{_JSON(answer)}\n".encode()
    except (TypeError, ValueError, RecursionError):
        raise PluginFailed(plugin, "gave an answer that is no JSON", reason="plugin_answer") from None
    if len(content) > _MOST_ANSWER:
        raise PluginFailed(plugin, "gave an answer that is too large", reason="plugin_answer")
    if packs and len(content) >= _LEAST_GZIP:
        return gzip.compress(content, 1, mtime=0), True
    return content, False
