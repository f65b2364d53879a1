"""The broker as a plugin sees it (``broker_core_startup``): what the plugin may ask of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine
from contextlib import suppress
from typing import Any

from prometheus_client import CollectorRegistry

from broker_core.change_log import ChangeLog
from broker_core.errors import Cause, ListingFailed
from broker_core.metrics.frequent_questions import QuestionCount
from broker_core.names import NamespaceName
from broker_core.pipeline import Pipeline
from broker_core.plugins import as_problems

__all__ = ["BrokerHandle"]


class BrokerHandle:
    """The broker as one plugin sees it. Made on the event loop; what it offers may be called in any thread.

    ``version`` and ``changes`` are those of the embedded catalogue, or of what a gateway holds of its cluster. They
    read a file, or ask brokers: call them from a thread. A gateway that holds nothing, or something else for each
    principal, has no change log of its own: both raise :exc:`~broker_core.errors.ListingFailed`.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        catalog: Any | None,
        metrics_registry: CollectorRegistry,
        plugin: str,
    ) -> None:
        self._pipeline = pipeline
        self._catalog = catalog
        self._metrics_registry = metrics_registry
        self._plugin = plugin
        self._loop = asyncio.get_running_loop()

    def topics_changed(self, namespace: NamespaceName | str | None) -> None:
        """Say that this plugin's answers, or its masks, about a namespace changed, or with ``None`` about all.

        What is kept by a version is dropped, and waiting subscribers are told. In any thread: on the event loop at
        once; elsewhere in its next turn, before any answer that the same thread gives afterwards. Once the broker has
        stopped it does nothing.
        """
        self._on_loop(self._pipeline.changes.announce, None if namespace is None else _parsed(namespace))

    def version(self, namespace: NamespaceName | str) -> Any:
        """The version (:class:`~broker_core.catalog.CatalogVersion`) of a namespace; it grows with every change."""
        name = _parsed(namespace)
        return self._read(lambda catalog: catalog.version(name), lambda log: log.version(name))

    def changes(self, namespace: NamespaceName | str, since: Any) -> Any:
        """All changes of a namespace after a version; a :class:`~broker_core.catalog.Gap` if they are not known."""
        name = _parsed(namespace)
        return self._read(lambda catalog: catalog.changes(name, since), lambda log: log.changes(name, since))

    def change_logs(self) -> tuple[ChangeLog, ...]:
        """The change logs to follow: that of the embedded catalogue, or of what a gateway holds, then those of plugins.

        Plugins start one after the other: all are here once the broker is ready.
        """
        return self._pipeline.change_logs

    def questions(self, limit: int | None = None) -> list[QuestionCount]:
        """The most frequent questions with their counts, the most frequent first; bounded, without the askers."""
        return self._pipeline.questions.most_asked(limit)

    def report_problems(self, problems: Collection[str] | str) -> None:
        """Say what is wrong now with what this plugin works on, in place of what it said before; nothing: all is well.

        Where it was not, the plugin is asked again at once, though it failed so often that it was not asked for now.
        A single string is one problem. ``GET /plugins`` shows the texts to every client, so they have no secrets. In
        any thread, as :meth:`topics_changed`. Raises :exc:`TypeError` for what is no collection of strings.
        """
        told = as_problems(problems)
        self._on_loop(self._pipeline.dispatcher.report_problems, self._plugin, told)

    def spawn(self, factory: Callable[..., Any], *, name: str, restart: bool = True) -> None:
        """Let ``factory`` run beside the hooks, until it returns or the broker stops; in any thread.

        An ``async`` function runs on the event loop; a plain one in a thread of its own, and gets ``stop``, a
        :class:`threading.Event` that is set when it shall end, if it takes an argument of that name. All tasks are
        ended before any plugin is shut down. One that raises is logged and shown by ``GET /plugins`` under ``name``,
        and, with ``restart``, started again after 1 s, and after up to 60 s where it fails again and again.

        Raises :exc:`ValueError` for the name of a task of this plugin that is not over, :exc:`RuntimeError` once the
        broker stops.
        """
        start = self._pipeline.dispatcher.background_tasks(self._plugin).claim(factory, name, restart=restart)
        self._on_loop(start)

    @property
    def metrics_registry(self) -> CollectorRegistry:
        """Where this plugin registers its own metrics, whose names begin with ``broker_core_<plugin>_``.

        They are scraped with the broker's until the plugin is shut down.
        """
        return self._metrics_registry

    @property
    def selecting_keys(self) -> frozenset[str]:
        """The properties that select topics: those of ``[catalog] property_keys`` and of plugins' settings."""
        return self._pipeline.options.selecting_keys

    def _on_loop(self, function: Callable[..., None], *arguments: object) -> None:
        """Call ``function`` on the event loop: at once if this is it, else in its next turn, if it still runs."""
        if _running_loop() is self._loop:
            function(*arguments)
            return
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(function, *arguments)

    def _read(
        self, of_catalog: Callable[[Any], Any], of_log: Callable[[ChangeLog], Coroutine[Any, Any, Any]]
    ) -> Any:
        """What the embedded catalogue says, or else the log of the cluster, which is asked on the event loop."""
        if self._catalog is not None:
            return of_catalog(self._catalog)
        log = self._pipeline.own_log
        if log is None:
            raise ListingFailed(
                "The brokers upstream hold the topics, and this gateway has no change log of them",
                cause=Cause.UPSTREAM,
            )
        if _running_loop() is self._loop:
            raise RuntimeError("call this from a thread, or await what change_logs() has")
        return asyncio.run_coroutine_threadsafe(of_log(log), self._loop).result()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _parsed(namespace: NamespaceName | str) -> NamespaceName:
    if isinstance(namespace, str):
        return NamespaceName.parse(namespace)
    if isinstance(namespace, NamespaceName):
        return namespace
    raise TypeError(
        f"a namespace is a string such as 'tenant/namespace', or a broker_core.NamespaceName, "
        f"not {type(namespace).__name__}"
    )
