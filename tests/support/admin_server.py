"""A small HTTP server that imitates a cluster's admin interface, for tests of failures.

Its answers are those that a broker 4.2.4 gave: an empty body for the properties of a partitioned topic that was made
without any, 406 for those of a topic that is not persistent, 409 for those of a partition whose topic is gone.
tests/interop/test_postgres_sync.py shows the same scenes with the real one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, unquote

from aiohttp import web

from broker_core.names.partitions import partitioned_local_name

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
    ``properties`` by ``domain://tenant/namespace/local``, of those that were made with some. ``faults`` by path below
    ``/admin/v2``: the answers that come first, one by one; the last of a list whose path is in ``always`` stays.
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
        self._ends = asyncio.Event()
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

    def let_go(self) -> None:
        """Answer the requests that hang, and all later ones."""
        self.hanging.clear()
        self._ends.set()

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
        self._ends.set()
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
                await self._ends.wait()
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
            return _said(self.answers[path])
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
        parts = path.split("/")
        if path not in answers and len(parts) == 5:
            domain, tenant, namespace, local, what = map(unquote, parts)
            if what == "properties":
                return self._properties(domain, f"{tenant}/{namespace}", local)
            if what == "partitions":
                return self._metadata(domain, f"{tenant}/{namespace}", local)
        if path not in answers:
            return _refused(404, "Namespace does not exist")
        return _said(answers[path])

    def _properties(self, domain: str, namespace: str, local: str) -> web.Response:
        topic = f"{domain}://{namespace}/{local}"
        if domain != "persistent":
            return _refused(406, "Need to provide a persistent topic name")
        if topic in self.properties:
            return _said(self.properties[topic])
        if local in self.partitioned[namespace, domain]:
            return web.Response(status=200)  # nothing at all, of the length 0
        if local not in self.topics[namespace, domain]:
            return _refused(404, f"Topic {topic} not found")
        base = partitioned_local_name(local)
        if base != local and base not in self.partitioned[namespace, domain]:
            return _refused(409, f"Partitioned topic of {topic} does not exist")
        return _said({})

    def _metadata(self, domain: str, namespace: str, local: str) -> web.Response:
        topic = f"{domain}://{namespace}/{local}"
        listed = self.topics[namespace, domain]
        if local in self.partitioned[namespace, domain]:
            count = sum(partitioned_local_name(name) == local != name for name in listed)
            metadata = {"partitions": count, "deleted": False}
            given = {"properties": self.properties[topic]} if topic in self.properties else {}
            return _said(metadata | given)
        if local in listed:
            return _said({"partitions": 0, "deleted": False})
        return _refused(404, f"Topic {topic} not found")


def _said(document: Any) -> web.Response:
    return web.Response(text=json.dumps(document), content_type="application/json")


def _refused(status: int, reason: str) -> web.Response:
    return web.Response(status=status, text=json.dumps({"reason": reason}), content_type="application/json")
