"""The same server for tests that are not async: it runs on an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterable, Mapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Self, TypeVar

from broker_core.client import TopicsAnswer
from broker_core.names import Mode
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
    ) -> None:
        self._serving = serve(plugins, topics=topics, settings=settings)
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
        self.close()

    def close(self) -> None:
        """Stop the server; closing again does nothing."""
        if self._loop.is_closed():
            return
        try:
            self._run(self._stack.aclose())
        finally:
            self._end()

    @property
    def url(self) -> str:
        """The service URL for clients."""
        return self._get().url

    def list(
        self,
        namespace: str,
        *,
        pattern: str | None = None,
        mode: Mode = Mode.PERSISTENT,
        properties: Mapping[str, str] | None = None,
        topics_hash: str | None = None,
    ) -> TopicsAnswer:
        """Ask over the protocol; see :meth:`Server.list`."""
        return self._run(
            self._get().list(
                namespace, pattern=pattern, mode=mode, properties=properties, topics_hash=topics_hash
            )
        )

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
