"""Traces requests through a server of this tree: modules entered, and calls up the layer order.

    python -m scripts.ways [--names]

A server runs in this process, with a catalogue in a temporary folder and a plugin that lists one namespace. Each
request is sent some times by a thread that is not traced, and counted where it took least. A *climb* is a pair of
modules of which the lower one, by the layers of the import-linter contract in `pyproject.toml`, calls the higher one:
by a callback, or by a protocol. Work of other threads for the request counts; imports and comparisons of keys do not.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import io
import json
import logging
import re
import sys
import tempfile
import threading
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple

import structlog

from broker_core import NamespaceName, TopicListingResult, hookimpl
from broker_core.catalog import SqliteCatalog, import_topics
from broker_core.testing import Server, serve
from broker_core.wire.kafka import METADATA
from tests.benchmarks.kafka.kafka_connection import KafkaConnection
from tests.benchmarks.wire_client import RawClient, get_topics_frame, read_answer

__all__ = ["Trace", "Way", "main", "ranks_of"]

ROOT: Final = Path(__file__).parent.parent
_CORE: Final = f"{ROOT / 'broker_core'}/"
#: What the interpreter calls by itself.
_OF_INTERPRETER: Final = frozenset({"<module>", "__eq__", "__hash__"})
#: Each request is sent so many times while it is traced: what else the server does meanwhile is in few of them.
_TIMES: Final = 5
_TOPICS: Final = 20_000
_NAMESPACE: Final = "public/default"
_OF_PLUGIN: Final = "public/plugin"


class Way(NamedTuple):
    """The modules that a request enters, and the pairs of modules (caller, called) that go up the layer order."""

    modules: frozenset[str]
    climbs: frozenset[tuple[str, str]]

    @property
    def size(self) -> tuple[int, int]:
        return len(self.modules), len(self.climbs)


def ranks_of(pyproject: Mapping[str, Any]) -> dict[str, int]:
    """The number of the layer of each package, 0 for the highest."""
    (layers,) = (
        contract["layers"]
        for contract in pyproject["tool"]["importlinter"]["contracts"]
        if contract["type"] == "layers"
    )
    return {name: rank for rank, layer in enumerate(layers) for name in re.split(r"\s*[|:]\s*", layer)}


class Trace:
    """The calls of all threads but those that leave it, while it is on."""

    def __init__(self, ranks: Mapping[str, int]) -> None:
        self._ranks = ranks
        self._modules: dict[CodeType, str | None] = {}
        self._on = False
        self._calls: set[tuple[str, str | None]] = set()

    def way(self, request: Callable[[], object]) -> Way:
        """The way of one request."""
        self._calls = set()
        self._on = True
        request()
        self._on = False
        calls = frozenset(self._calls)
        up = ((caller, called) for called, caller in calls if caller is not None)
        climbs = frozenset(pair for pair in up if self._rank(pair[1]) < self._rank(pair[0]))
        return Way(frozenset(called for called, _ in calls), climbs)

    def note(self, frame: FrameType, event: str, _argument: object) -> None:
        """Note a call; a profile function."""
        if not self._on or event != "call":
            return
        called = self._module(frame.f_code)
        if called is None:
            return
        caller, before = None, frame.f_back
        while before is not None and caller is None:
            caller, before = self._module(before.f_code), before.f_back
        self._calls.add((called, caller))

    def _module(self, code: CodeType) -> str | None:
        """The module of the core that a function is of; ``None`` for others, and for the body of a module."""
        if code not in self._modules:
            path = code.co_filename
            is_core = path.startswith(_CORE) and not path.startswith(f"{_CORE}testing/")
            named = is_core and code.co_name not in _OF_INTERPRETER
            self._modules[code] = path.removeprefix(_CORE).removesuffix(".py") if named else None
        return self._modules[code]

    def _rank(self, module: str) -> int:
        return self._ranks[module.partition("/")[0]]


class _Plugin:
    """Lists two topics of one namespace."""

    @hookimpl
    def broker_core_list_topics(self, namespace: NamespaceName) -> TopicListingResult:
        return TopicListingResult.success([f"persistent://{namespace}/{name}" for name in "ab"])


class _Client:
    """A client of all listeners."""

    def __init__(self, server: Server, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._pulsar = RawClient(server.broker.pulsar_address)
        kafka, web = server.broker.kafka_address, server.broker.http_address
        assert kafka is not None
        assert web is not None
        self._kafka = KafkaConnection(kafka)
        self._http = http.client.HTTPConnection(*web, timeout=60)

    def list(self, topics: int, namespace: str = _NAMESPACE, pattern: str | None = None) -> None:
        """List over Pulsar's protocol."""
        answer = read_answer(self._pulsar.ask(get_topics_frame(1, namespace, pattern)))
        if answer.error is not None or answer.topics != topics:
            raise RuntimeError(f"{namespace} {pattern}: {answer}")
        self._settle()

    def metadata(self, topics: int) -> None:
        """Ask for all topics over Kafka's protocol."""
        found = self._kafka.ask(METADATA, 9, {"topics": None})["topics"]
        if len(found) != topics:
            raise RuntimeError(f"{len(found)} topics, not {topics}")
        self._settle()

    def page(self, first: int) -> None:
        """Read a page over HTTP."""
        path = f"/v1/namespaces/{_NAMESPACE}/topics?limit=100&pattern={_NAMESPACE}/topic-0{first}.*"
        items = json.loads(self._ask("GET", path))["items"]
        if len(items) != 100:
            raise RuntimeError(f"{len(items)} items")
        self._settle()

    def create(self, name: str) -> None:
        """Create a topic over HTTP, and list it over Pulsar's protocol."""
        self._ask("PUT", f"/v1/namespaces/public/created/topics/{name}", "{}")
        self.list(1, "public/created", f"persistent://public/created/{name}")

    def _ask(self, method: str, path: str, body: str | None = None) -> bytes:
        self._http.request(method, path, body, {"Content-Type": "application/json"} if body else {})
        answer = self._http.getresponse()
        content = answer.read()
        if answer.status not in {200, 201}:
            raise RuntimeError(f"{answer.status} {content!r}")
        return content

    def _settle(self) -> None:
        """Wait for what the server does once the answer has left."""
        for _ in range(5):
            asyncio.run_coroutine_threadsafe(asyncio.sleep(0), self._loop).result()


def _traced(server: Server, loop: asyncio.AbstractEventLoop, trace: Trace) -> dict[str, Way]:
    """The way of each request, in a thread that is not traced."""
    sys.setprofile(None)
    client = _Client(server, loop)
    numbers = iter(range(10, 99))
    literal = f"persistent://{_NAMESPACE}/topic-0{{}}.*"
    requests: dict[str, Callable[[], None]] = {
        "Pulsar listing, repeated": lambda: client.list(100, pattern=literal.format("07")),
        "Pulsar listing, new": lambda: client.list(100, pattern=literal.format(f"({next(numbers)})")),
        "Pulsar listing, long": lambda: client.list(
            2 * _TOPICS // 100, pattern=f".*[0-9]{{2}}({next(numbers)}|{next(numbers)})"
        ),
        "Kafka Metadata of all": lambda: client.metadata(_TOPICS),
        "HTTP page": lambda: client.page(next(numbers)),
        "topic created over HTTP, listed": lambda: client.create(f"t-{next(numbers)}"),
        "answer of a plugin": lambda: client.list(2, _OF_PLUGIN),
    }
    found = {}
    for name, request in requests.items():
        for _ in range(3):
            request()
        found[name] = min((trace.way(request) for _ in range(_TIMES)), key=lambda way: way.size)
    return found


async def _ways(folder: Path) -> dict[str, Way]:
    path = folder / "topics.sqlite"
    with SqliteCatalog(path) as catalog:
        lines = "".join(
            json.dumps({"name": f"persistent://{_NAMESPACE}/topic-{number:05d}"}) + "\n"
            for number in range(_TOPICS)
        )
        import_topics(catalog, NamespaceName.parse(_NAMESPACE), io.BytesIO(lines.encode()))
    trace = Trace(ranks_of(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))))
    settings: dict[str, dict[str, Any]] = {
        "catalog": {"path": path},
        "kafka": {},
        "plugins": {"mine": {"namespaces": [_OF_PLUGIN]}},
    }
    threading.setprofile(trace.note)
    sys.setprofile(trace.note)
    try:
        async with serve(
            {"mine": _Plugin()}, settings=settings, check_masks=False, check_reads=False
        ) as server:
            return await asyncio.to_thread(_traced, server, asyncio.get_running_loop(), trace)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the ways."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--names", action="store_true", help="the modules and the climbs too")
    options = parser.parse_args(arguments)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    with tempfile.TemporaryDirectory(prefix="broker-core-ways-") as folder:
        found = asyncio.run(_ways(Path(folder)))
    print(f"{'request':34}{'modules':>9}{'climbs':>9}")
    for name, way in found.items():
        print(f"{name:34}{len(way.modules):9}{len(way.climbs):9}")
        if options.names:
            for module in sorted(way.modules):
                print(f"    {module}")
            for caller, called in sorted(way.climbs):
                print(f"    {caller} -> {called}")


if __name__ == "__main__":
    main()
