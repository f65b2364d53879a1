"""A server for tests that are not async: it runs on an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Self, TypeVar

from broker_core.client import TopicsAnswer
from broker_core.listing import Page
from broker_core.names import Mode
from broker_core.testing.invoke_command import Invoked
from broker_core.testing.metric_families import MetricFamilies
from broker_core.testing.pipeline_question import PipelineAnswer
from broker_core.testing.server import Server, serve

__all__ = ["BlockingServer"]

T = TypeVar("T")


class BlockingServer:
    """A context manager with the arguments and the methods of :func:`~broker_core.testing.serve`, without ``await``."""

    def __init__(
        self,
        plugins: Mapping[str, object] | None = None,
        *,
        topics: Iterable[str] | Mapping[str, Mapping[str, str]] = (),
        settings: Mapping[str, Mapping[str, Any]] | None = None,
        check_masks: bool = True,
        check_reads: bool = True,
    ) -> None:
        self._serving = serve(
            plugins, topics=topics, settings=settings, check_masks=check_masks, check_reads=check_reads
        )
        self._stack = AsyncExitStack()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="broker-core-testing", daemon=True
        )
        self._server: Server | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self._server = self._run(self._stack.enter_async_context(self._serving))
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop(kind, error, trace)

    def close(self) -> None:
        """Stop the server; closing again does nothing."""
        self._stop(None, None, None)

    def _stop(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the server; ``error`` is what the test failed with, and hides what else is wrong at the end."""
        if self._loop.is_closed():
            return
        try:
            self._run(self._stack.__aexit__(kind, error, trace))
        finally:
            self._end()

    @property
    def url(self) -> str:
        """The service URL for clients."""
        return self._get().url

    @property
    def http_url(self) -> str:
        """The URL of ``/metrics``, ``/plugins`` and their like."""
        return self._get().http_url

    @property
    def kafka_address(self) -> str:
        """``HOST:PORT`` for clients of Kafka. Raises :exc:`RuntimeError` unless the settings have ``[kafka]``."""
        return self._get().kafka_address

    def list(
        self,
        namespace: str,
        *,
        pattern: str | None = None,
        mode: Mode | str = Mode.PERSISTENT,
        properties: Mapping[str, str] | None = None,
        topics_hash: str | None = None,
        client_version: str | None = None,
        role: str | None = None,
        address: str | None = None,
    ) -> TopicsAnswer:
        """Ask over the protocol; see :meth:`Server.list`."""
        return self._run(
            self._get().list(
                namespace,
                pattern=pattern,
                mode=mode,
                properties=properties,
                topics_hash=topics_hash,
                client_version=client_version,
                role=role,
                address=address,
            )
        )

    def ask(
        self,
        namespace: str,
        *,
        pattern: str | None = None,
        mode: Mode | str = Mode.PERSISTENT,
        properties: Mapping[str, str] | None = None,
        topics_hash: str | None = None,
        page: Page | None = None,
        wants: Collection[str] = (),
        client_version: str | None = None,
        role: str | None = None,
        address: str | None = None,
    ) -> PipelineAnswer:
        """Ask the pipeline itself; see :meth:`Server.ask`."""
        return self._run(
            self._get().ask(
                namespace,
                pattern=pattern,
                mode=mode,
                properties=properties,
                topics_hash=topics_hash,
                page=page,
                wants=wants,
                client_version=client_version,
                role=role,
                address=address,
            )
        )

    def partitions(
        self,
        topic: str,
        *,
        auto_create: bool = True,
        client_version: str | None = None,
        role: str | None = None,
        address: str | None = None,
    ) -> int:
        """The number of partitions that a client gets; see :meth:`Server.partitions`."""
        return self._run(
            self._get().partitions(
                topic, auto_create=auto_create, client_version=client_version, role=role, address=address
            )
        )

    def metrics(self) -> MetricFamilies:
        """The metrics of now; see :meth:`Server.metrics`."""
        return self._run(self._get().metrics())

    def invoke(
        self, name: str, arguments: Sequence[str | os.PathLike[str]] = (), *, stdin: str = ""
    ) -> Invoked:
        """Run a command of a plugin; see :meth:`Server.invoke`."""
        return self._run(self._get().invoke(name, arguments, stdin=stdin))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine that runs on the server's event loop: ``server.run(plugin.read_again())``."""
        self._get()
        return self._run(work)

    def create(self, topic: str, *, partitions: int = 0, properties: Mapping[str, str] | None = None) -> None:
        """Add a topic to the catalogue; see :meth:`Server.create`."""
        self._run(self._get().create(topic, partitions=partitions, properties=properties))

    def delete(self, topic: str) -> None:
        """Remove a topic from the catalogue; see :meth:`Server.delete`."""
        self._run(self._get().delete(topic))

    def _get(self) -> Server:
        if self._server is None or self._loop.is_closed():
            raise RuntimeError("the server is not running: use it as a context manager")
        return self._server

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
