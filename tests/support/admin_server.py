"""A small HTTP server that says what a cluster's admin interface said, and fails as one may: for faults only.

What the real interface answers is shown by tests/interop/test_postgres_sync.py.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from aiohttp import web

__all__ = ["AdminServer", "Fault"]


class Fault:
    """One wrong answer: a status with a text, headers, or none at all (``cut``: the connection breaks off)."""

    def __init__(
        self,
        status: int = 500,
        text: str = "",
        headers: Mapping[str, str] | None = None,
        *,
        cut: bool = False,
    ) -> None:
        self.status = status
        self.text = text
        self.headers = dict(headers or {})
        self.cut = cut


class AdminServer:
    """``topics``: by namespace and domain, the listed local names; ``partitioned`` the same for base names;
    ``properties`` by ``domain://tenant/namespace/local``. ``faults`` by path below ``/admin/v2``: the answers that come
    first, one by one; the last of a list whose path is in ``always`` stays.
    """

    def __init__(self) -> None:
        self.topics: dict[tuple[str, str], list[str]] = {}
        self.partitioned: dict[tuple[str, str], list[str]] = {}
        self.properties: dict[str, dict[str, str]] = {}
        self.answers: dict[str, Any] = {}
        self.faults: dict[str, list[Fault]] = {}
        self.always: set[str] = set()
        self.requests: list[str] = []
        self.headers: list[Mapping[str, str]] = []
        self.hanging: set[str] = set()
        self.most_at_once = 0
        self._at_once = 0
        self._runner: web.AppRunner | None = None
        self.url = ""

    def namespace(self, namespace: str, names: Iterable[str] = (), *, domain: str = "persistent") -> None:
        """A namespace and its listed topics."""
        for each in ("persistent", "non-persistent"):
            self.topics.setdefault((namespace, each), [])
            self.partitioned.setdefault((namespace, each), [])
        self.topics[namespace, domain] = list(names)

    def fail(self, path: str, *faults: Fault, always: bool = False) -> None:
        """Answer a path so, once each; with ``always`` the last one from then on."""
        self.faults[path] = list(faults)
        if always:
            self.always.add(path)

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        path = request.raw_path.removeprefix("/admin/v2/")
        self.requests.append(path)
        self.headers.append(request.headers)
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            await asyncio.sleep(0)  # lets others in, so that what is at once is seen
            if path in self.hanging:
                await asyncio.Event().wait()
            if faults := self.faults.get(path):
                fault = faults[0] if path in self.always and len(faults) == 1 else faults.pop(0)
                if fault.cut:
                    assert request.transport is not None
                    request.transport.close()
                return web.Response(status=fault.status, text=fault.text, headers=fault.headers)
            return self._recorded(path)
        finally:
            self._at_once -= 1

    def _recorded(self, path: str) -> web.Response:
        if path in self.answers:
            return web.Response(text=json.dumps(self.answers[path]), content_type="application/json")
        namespaces = sorted({namespace for namespace, _ in self.topics})
        answers: dict[str, Any] = {"tenants": sorted({name.partition("/")[0] for name in namespaces})}
        for tenant in answers["tenants"]:
            answers[f"namespaces/{quote(tenant, safe='')}"] = [
                name for name in namespaces if name.startswith(f"{tenant}/")
            ]
        for (namespace, domain), names in self.topics.items():
            answers[f"{domain}/{quote(namespace)}"] = [f"{domain}://{namespace}/{name}" for name in names]
        for (namespace, domain), names in self.partitioned.items():
            answers[f"{domain}/{quote(namespace)}/partitioned"] = [
                f"{domain}://{namespace}/{name}" for name in names
            ]
        for topic, properties in self.properties.items():
            domain, _, rest = topic.partition("://")
            tenant, namespace, local = rest.split("/", 2)
            answers[f"{domain}/{tenant}/{namespace}/{quote(local, safe='')}/properties"] = properties
        if path not in answers and path.endswith("/properties"):
            answers[path] = {}
        if path not in answers:
            return web.Response(status=404, text='{"reason": "Namespace does not exist"}')
        return web.Response(text=json.dumps(answers[path]), content_type="application/json")
