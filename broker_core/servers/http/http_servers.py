"""The HTTP servers of one broker: that of its clients, and that of its operator on a unix socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from aiohttp import web

from broker_core.access import OPERATOR, Asker
from broker_core.metrics import History
from broker_core.reloads import Reloads
from broker_core.servers.admission import ApiAdmission, FileBudget
from broker_core.servers.arrival import TlsEntrance
from broker_core.servers.http.admin import admin_apis
from broker_core.servers.http.admin_socket import AdminSocket
from broker_core.servers.http.api import (
    Admit,
    ApiServices,
    HttpApi,
    ScreenObject,
    WebPages,
    v1_api,
)
from broker_core.servers.http.frequent_questions import allowed_questions
from broker_core.servers.http.http_access import HttpAccess, Right
from broker_core.servers.http.operator_endpoints import Endpoints, Readiness
from broker_core.servers.http.plugin_routes import routes_of_plugin
from broker_core.servers.http.served_connection import asker_of
from broker_core.servers.http.server import HttpServer
from broker_core.servers.http.site_files import read_sites
from broker_core.service import Admission
from broker_core.settings import HttpSettings

__all__ = ["HttpServers"]

#: Connections to the operator's socket, and requests of the API on it.
_OPERATORS: Final = 8
_OPERATORS_REQUESTS: Final = 6


class HttpServers:
    """Starts the HTTP servers, which end with ``stack``.

    ``readiness`` gives the state of ``/-/ready``, ``problem`` the reason why an otherwise ready server is not.
    """

    def __init__(
        self,
        stack: AsyncExitStack,
        services: ApiServices,
        version: str,
        readiness: Callable[[], Readiness],
        problem: Callable[[], str | None],
    ) -> None:
        self._stack = stack
        history = History.of(services.metrics, services.permits, services.clients)
        stack.callback(asyncio.create_task(history.watch(), name="history").cancel)
        self._services = replace(services, history=history)
        #: The admission to the clients' server, and to the operator's.
        self._admissions = services.admission, ApiAdmission(_OPERATORS_REQUESTS)
        self._version = version
        self._readiness = readiness
        self._problem = problem
        services.permits.on_pressure(services.answers.make_room)
        services.metrics.gauge(
            "http_streams",
            "Streams of topics over HTTP that are open.",
            lambda: sum(each.streams for each in self._admissions),
        )

    async def for_clients(
        self,
        settings: HttpSettings,
        files: FileBudget,
        admission: Admission,
        identify: Callable[[Asker], Asker] | None,
        tls: TlsEntrance | None,
    ) -> HttpServer:
        """The server of the table ``[http]``, which listens to nobody yet.

        Raises :exc:`~broker_core.plugins.PluginLoadError` for a plugin whose site cannot be served.
        """
        pipeline, metrics = self._services.pipeline, self._services.metrics
        of_plugins = pipeline.dispatcher.http_sites()
        pages = WebPages(
            settings.hosts,
            has_pages=bool(of_plugins),
            may_change=any(each.site.changes for each in of_plugins if each.site.prefix == "/"),
        )
        services = replace(self._services, pages=pages)
        sites = await asyncio.to_thread(read_sites, of_plugins, pages)
        access = HttpAccess(
            admission,
            pipeline,
            protect=settings.protect,
            identify=identify,
        )
        endpoints = Endpoints(
            metrics.registry,
            self._readiness,
            questions=pipeline.questions.most_frequent if settings.questions else None,
            allowed=partial(allowed_questions, pipeline),
            plugins=pipeline.dispatcher.describe_without_errors,
            access=access,
            problem=self._problem,
            pages=pages,
        )
        screens = [screen for site in sites for screen in site.screens]
        server = HttpServer(
            endpoints,
            apis=self._apis(access.admit, services, screens) if settings.api else [],
            of_plugins=[
                *(route for site in sites for route in site.routes()),
                *(route for each in of_plugins for route in routes_of_plugin(each, services, access.admit)),
            ],
            connections=files.http + files.api,
            per_address=services.settings.limits.connections_per_address,
            haproxy_from=settings.haproxy_from,
            tls=tls,
            metrics=metrics,
            clients=services.clients,
            drain=services.admission.drain,
        )
        metrics.gauge("http_connections", "Open connections of HTTP.", lambda: server.connections)
        self._stack.push_async_callback(server.close)
        return server

    async def start_operators(self, path: Path, reloads: Reloads) -> None:
        """Serve the operator on a socket, with the API whether or not clients have it: commands ask it there."""
        pipeline = self._services.pipeline
        endpoints = Endpoints(
            self._services.metrics.registry,
            self._readiness,
            questions=pipeline.questions.most_frequent,
            plugins=pipeline.dispatcher.describe_without_errors,
            reloads=reloads,
        )
        listening = await asyncio.to_thread(AdminSocket, path)
        self._stack.callback(listening.close)
        services = replace(self._services, admission=self._admissions[1], authenticator=None)
        server = HttpServer(
            endpoints,
            apis=self._apis(_operator, services),
            connections=_OPERATORS,
            metrics=services.metrics,
        )
        await server.start_on(listening.socket)
        self._stack.push_async_callback(server.close)

    def _apis(
        self, admit: Admit, services: ApiServices, screens: Sequence[ScreenObject] = ()
    ) -> list[HttpApi]:
        """The APIs for programs."""
        return [v1_api(services, admit, self._version, screens), *admin_apis(services, admit)]


async def _operator(request: web.Request, _needs: Right) -> Asker:
    """The operator, asking by the socket of the server's own user."""
    return asker_of(request, OPERATOR)
