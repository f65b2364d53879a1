"""A server for tests that are not async: it runs on an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import AsyncExitStack
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from broker_core.testing.server import Server, serve

__all__ = ["BlockingServer"]

P = ParamSpec("P")
T = TypeVar("T")


def _blocking(
    method: Callable[Concatenate[Server, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[BlockingServer, P], T]:
    """A method of :class:`Server`, without ``await``."""

    @wraps(method)
    def run(self: BlockingServer, /, *arguments: P.args, **options: P.kwargs) -> T:
        return self.run(method(self._get(), *arguments, **options))

    return run


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

    list = _blocking(Server.list)
    ask = _blocking(Server.ask)
    partitions = _blocking(Server.partitions)
    metrics = _blocking(Server.metrics)
    invoke = _blocking(Server.invoke)
    create = _blocking(Server.create)
    delete = _blocking(Server.delete)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine that runs on the server's event loop: ``server.run(plugin.read_again())``."""
        self._get()
        return self._run(work)

    def _get(self) -> Server:
        """The server, on its event loop. Raises :exc:`RuntimeError` unless it runs."""
        if self._server is None or self._loop.is_closed():
            raise RuntimeError("the server is not running: use it as a context manager")
        return self._server

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _end(self) -> None:
        self._run(self._loop.shutdown_asyncgens())  # with them the threads of the loop end
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
