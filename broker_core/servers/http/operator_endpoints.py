"""Endpoints for operators: ``/metrics``, ``/questions``, ``/plugins``, ``/-/live``, ``/-/ready``, ``/-/reload``."""

from __future__ import annotations

import asyncio
import enum
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from aiohttp import hdrs, web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from broker_core.access import Asker, names_elsewhere
from broker_core.pipeline import QuestionCount
from broker_core.reloads import Reloads, SettingsDifference
from broker_core.servers.http.api import WebPages
from broker_core.servers.http.api.json_object import json_response
from broker_core.servers.http.frequent_questions import question_lines
from broker_core.servers.http.http_access import HttpAccess, Right
from broker_core.servers.http.served_connection import asker_of
from broker_core.settings import SettingsError

__all__ = ["Endpoints", "Readiness"]


class Readiness(enum.Enum):
    """The states of ``/-/ready``; only ``ready`` is a 200."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"


class Endpoints:
    """Answers from one registry of metrics and one readiness, on the event loop: answers must be quick.

    ``questions`` gives the most frequent questions up to a number (``None``: all); without it they are not served.
    ``allowed`` filters them by the client's rights. ``plugins`` gives the state of each plugin, in plain values.
    ``access`` decides which client may see a page; without it all may. ``problem`` gives the reason why an otherwise
    ready server is not. ``reloads`` are for a server of the operator. All are called on the event loop. ``pages`` has
    the rules for browsers.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        readiness: Callable[[], Readiness],
        *,
        questions: Callable[[int | None], list[QuestionCount]] | None = None,
        allowed: Callable[[Sequence[QuestionCount], Asker], Awaitable[list[QuestionCount]]] | None = None,
        plugins: Callable[[], Sequence[dict[str, Any]]] = list,
        access: HttpAccess | None = None,
        problem: Callable[[], str | None] = lambda: None,
        reloads: Reloads | None = None,
        pages: WebPages | None = None,
    ) -> None:
        self._registry = registry
        self._readiness = readiness
        self._questions = questions
        self._allowed = allowed
        self._plugins = plugins
        self._access = access
        self._problem = problem
        self._reloads = reloads
        self._pages = pages or WebPages()

    def routes(self) -> list[web.RouteDef]:
        """The path of each endpoint, and its needed right."""
        own: list[web.RouteDef] = []
        if self._reloads is not None:
            reloading = Reloading(self._reloads)
            own = [web.get("/-/reload", reloading.show), web.post("/-/reload", reloading.reload)]
        return [
            *own,
            self._page("/metrics", Right.MONITOR_IF_PROTECTED, self._metrics),
            self._page("/questions", Right.MONITOR_SOMEWHERE, self._question_page),
            self._page("/plugins", Right.MONITOR_EVERYWHERE, self._described),
            self._page("/-/live", Right.NOTHING, self._live),
            self._page("/-/ready", Right.NOTHING, self._ready),
        ]

    def _page(
        self, path: str, needs: Right, answer: Callable[[web.Request, Asker], Awaitable[web.Response]]
    ) -> web.RouteDef:
        async def admitted(request: web.Request) -> web.Response:
            access = self._access
            asker = asker_of(request) if access is None else await access.admit(request, needs)
            if not path.startswith("/-/"):  # probes may be of anything, and learn nothing
                self._pages.check(request)
            return await answer(request, asker)

        return web.get(path, admitted)

    async def _metrics(self, request: web.Request, _asker: Asker) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get(hdrs.ACCEPT, ""))
        return web.Response(body=encode(self._registry), headers={hdrs.CONTENT_TYPE: content_type})

    async def _question_page(self, request: web.Request, asker: Asker) -> web.Response:
        """The most frequent questions as JSON lines, ``?limit=`` of them."""
        if self._questions is None:
            return json_response(
                403,
                {
                    "error": "/questions is off: set questions = true in the table [http] of the settings to show it"
                },
            )
        limit = request.query.get("limit")
        if limit is not None and not (limit.isascii() and limit.isdigit() and len(limit) < 10):
            return json_response(
                400, {"error": "limit is a number of questions, such as /questions?limit=100"}
            )
        most = None if limit is None else int(limit)
        if self._allowed is None:
            found = self._questions(most)
        else:
            found = (await self._allowed(self._questions(None), asker))[:most]
        # Thousands of them take too long for the event loop.
        body = await asyncio.to_thread(lambda: "".join(question_lines(found)).encode())
        return web.Response(body=body, content_type="application/x-ndjson", charset="utf-8")

    async def _described(self, _request: web.Request, _asker: Asker) -> web.Response:
        """The plugins in the order of the chain."""
        return json_response(200, {"plugins": self._plugins()})

    async def _live(self, _request: web.Request, _asker: Asker) -> web.Response:
        return json_response(200, {"status": "live"})

    async def _ready(self, _request: web.Request, _asker: Asker) -> web.Response:
        readiness = self._readiness()
        problem = self._problem() if readiness is Readiness.READY else None
        if problem is not None:
            return json_response(503, {"status": "upstream", "reason": problem})
        return json_response(200 if readiness is Readiness.READY else 503, {"status": readiness.value})


class Reloading:
    """The page ``/-/reload``: the settings that a reload would change (GET), and the reload (POST).

    Both are refused if ``?file=`` is another file than the server's. ``inode`` is the number of its device and its own,
    such as ``64:10``: the server may know the file by another path.
    """

    def __init__(self, reloads: Reloads) -> None:
        self._reloads = reloads

    async def show(self, request: web.Request) -> web.Response:
        another = await asyncio.to_thread(self._of_another_file, request)
        failed = _refused(another)
        difference: SettingsDifference | None = None
        try:
            if not another:
                difference = await self._reloads.difference()
        except SettingsError as error:
            failed["settings"] = str(error)
        live = self._reloads.settings
        before, plugins = live.current, live.plugins
        after = before if difference is None else difference.settings
        content = {
            "another_file": another,
            "problems": self._reloads.problems,
            "given": live.are_given,
            "rules": [
                {
                    "authorization": each.authorization.model_dump(mode="json"),
                    "authentication": each.authentication.is_on
                    or (plugins is not None and plugins.authenticates),
                }
                for each in (before, after)
            ],
            "catalog": None if before.upstream is not None else str(before.catalog.path.absolute()),
            "elsewhere": names_elsewhere(before, () if plugins is None else plugins.listers),
        }
        return json_response(200, _reload_report([], failed, difference) | content)

    async def reload(self, request: web.Request) -> web.Response:
        if another := await asyncio.to_thread(self._of_another_file, request):
            return json_response(200, _reload_report([], _refused(another), None))
        reloaded = await self._reloads.reload_all()
        return json_response(200, _reload_report(reloaded.done, reloaded.failed, reloaded.settings))

    def _of_another_file(self, request: web.Request) -> str:
        """The error if the request is about another file than the server's, else empty."""
        own, named = self._reloads.settings.file, request.query.get("file")
        if own is None or not named:
            return ""
        try:
            found = Path(own).stat() if own else None
        except OSError:
            found = None
        if found is not None and request.query.get("inode") == f"{found.st_dev}:{found.st_ino}":
            return ""
        if own and os.path.realpath(own) == os.path.realpath(named.replace("\0", "")):
            return ""
        read = f"the server reads {own}" if own else "the server was started without a settings file"
        return f"{read}, and not {named}"


def _refused(another: str) -> dict[str, str]:
    return {"settings": f"{another}: nothing is read again"} if another else {}


def _reload_report(
    done: list[str], failed: dict[str, str], difference: SettingsDifference | None
) -> dict[str, Any]:
    live, restart = ((), ()) if difference is None else (difference.live, difference.restart)
    return {
        "reloaded": done,
        "failed": failed,
        "changed": [change.shown for change in live],
        "restart": [change.shown for change in restart],
    }
