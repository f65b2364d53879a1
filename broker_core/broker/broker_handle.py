"""The broker's interface for a plugin (``broker_core_startup``)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine
from contextlib import suppress
from typing import Any

from prometheus_client import CollectorRegistry

from broker_core.change_log import ChangeLog
from broker_core.concurrency import running_loop
from broker_core.errors import Cause, ListingFailed
from broker_core.names import NamespaceName
from broker_core.pipeline import Pipeline, QuestionCount
from broker_core.plugins import as_problems

__all__ = ["BrokerHandle"]


class BrokerHandle:
    """The broker for one plugin. Made on the event loop; its methods may be called in any thread.

    ``version`` and ``changes`` are those of the embedded catalogue, or of the listings that a gateway holds of its
    cluster. They read a file, or ask brokers: call them from a thread. A gateway that holds nothing, or different
    listings for each principal, has no change log of its own: both raise :exc:`~broker_core.errors.ListingFailed`.
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
        """Announce that this plugin's answers, or its masks, for a namespace changed, or with ``None`` for all.

        Answers kept by a version are dropped, and waiting subscribers are notified. From any thread: on the event loop
        at once; elsewhere in its next turn, before any answer that the same thread gives afterwards. Once the broker
        has stopped it does nothing.
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
        """The change logs to follow: the embedded catalogue's, or a gateway's, then those of plugins.

        Plugins start one after the other: the list is complete once the broker is ready.
        """
        return self._pipeline.change_logs

    def questions(self, limit: int | None = None) -> list[QuestionCount]:
        """The most frequent requests with their counts, the most frequent first; bounded, without the askers."""
        return self._pipeline.questions.most_frequent(limit)

    def report_problems(self, problems: Collection[str] | str) -> None:
        """Report this plugin's current problems, which replace the former ones; an empty collection: all is well.

        After problems, the plugin is then asked again at once, even if its breaker is open after many failures.
        A single string is one problem. ``GET /plugins`` shows the texts to every client, so they have no secrets. From
        any thread, as :meth:`topics_changed`. Raises :exc:`TypeError` for anything but a collection of strings.
        """
        self._on_loop(self._pipeline.dispatcher.report_problems, self._plugin, as_problems(problems))

    def spawn(self, factory: Callable[..., Any], *, name: str, restart: bool = True) -> None:
        """Run ``factory`` beside the hooks, until it returns or the broker stops; from any thread.

        An ``async`` function runs on the event loop; a plain one in a thread of its own, and gets ``stop``, a
        :class:`threading.Event` that is set when it shall end, if it has an argument of that name. All tasks are ended
        before any plugin is shut down. A task that raises is logged and shown by ``GET /plugins`` under ``name``, and,
        with ``restart``, started again after 1 s, and after up to 60 s if it fails repeatedly.

        Raises :exc:`ValueError` for the name of an unfinished task of this plugin, :exc:`RuntimeError` once the broker
        stops.
        """
        start = self._pipeline.dispatcher.background_tasks(self._plugin).claim(factory, name, restart=restart)
        self._on_loop(start)

    @property
    def metrics_registry(self) -> CollectorRegistry:
        """The registry for this plugin's own metrics, whose names begin with ``broker_core_<plugin>_``.

        They are scraped with the broker's until the plugin is shut down.
        """
        return self._metrics_registry

    @property
    def selecting_keys(self) -> frozenset[str]:
        """The properties that select topics: from ``[catalog] property_keys`` and from plugins' settings."""
        return self._pipeline.options.selecting_keys

    def _on_loop(self, function: Callable[..., None], *arguments: object) -> None:
        """Call ``function`` on the event loop: at once in its own thread, else in its next turn, if it still runs."""
        if running_loop() is self._loop:
            function(*arguments)
            return
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(function, *arguments)

    def _read(
        self, of_catalog: Callable[[Any], Any], of_log: Callable[[ChangeLog], Coroutine[Any, Any, Any]]
    ) -> Any:
        """The result from the embedded catalogue, or else from the cluster's log, which is read on the event loop."""
        if self._catalog is not None:
            return of_catalog(self._catalog)
        log = self._pipeline.own_log
        if log is None:
            raise ListingFailed(
                "The brokers upstream hold the topics, and this gateway has no change log of them",
                cause=Cause.UPSTREAM,
            )
        if running_loop() is self._loop:
            raise RuntimeError("call this from a thread, or await what change_logs() has")
        return asyncio.run_coroutine_threadsafe(of_log(log), self._loop).result()


def _parsed(namespace: NamespaceName | str) -> NamespaceName:
    if isinstance(namespace, str):
        return NamespaceName.parse(namespace)
    if isinstance(namespace, NamespaceName):
        return namespace
    raise TypeError(
        f"a namespace is a string such as 'tenant/namespace', or a broker_core.NamespaceName, "
        f"not {type(namespace).__name__}"
    )
