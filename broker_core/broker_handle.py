"""What a plugin may ask of the broker that it runs in (``broker_core_startup``)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from prometheus_client import CollectorRegistry

from broker_core.change_log import ChangeLog
from broker_core.errors import ListingFailed
from broker_core.names import NamespaceName
from broker_core.pipeline import Pipeline
from broker_core.questions import Question

__all__ = ["BrokerHandle"]


class BrokerHandle:
    """The broker as one plugin sees it.

    ``version`` and ``changes`` are those of the embedded catalogue. Before a cluster there is no change log of its own,
    and both raise :exc:`~broker_core.errors.ListingFailed`. They read a file: call them from a thread.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        catalog: Any | None,
        change_log: ChangeLog | None,
        metrics_registry: CollectorRegistry,
        plugin: str,
    ) -> None:
        self._pipeline = pipeline
        self._catalog = catalog
        self._change_log = change_log
        self._metrics_registry = metrics_registry
        self._plugin = plugin

    def topics_changed(self, namespace: NamespaceName | str) -> None:
        """Say that this plugin's answers about a namespace changed: kept answers about it are dropped.

        Must be called on the event loop.
        """
        self._pipeline.kept.forget(_parsed(namespace))

    def version(self, namespace: NamespaceName | str) -> Any:
        """The version (:class:`~broker_core.catalog.CatalogVersion`) of a namespace; it grows with every change."""
        return self._holder().version(_parsed(namespace))

    def changes(self, namespace: NamespaceName | str, since: Any) -> Any:
        """All changes of a namespace after a version; a :class:`~broker_core.catalog.Gap` if they are not known."""
        return self._holder().changes(_parsed(namespace), since)

    def change_logs(self) -> tuple[ChangeLog, ...]:
        """The change logs to follow: the embedded catalogue's, then those of plugins, in the order of the chain.

        Plugins start one after the other: all are here once the broker is ready.
        """
        own = () if self._change_log is None else (self._change_log,)
        return (*own, *self._pipeline.dispatcher.change_logs)

    def questions(self, limit: int | None = None) -> list[Question]:
        """What was asked how often, the most frequent first; bounded, without who asked."""
        return self._pipeline.questions.most_asked(limit)

    def report_problems(self, problems: Collection[str]) -> None:
        """Say what is wrong now with what this plugin works on, in place of what it said before; nothing: all is well.

        ``GET /plugins`` shows the texts to whoever asks, so they have no secrets. Must be called on the event loop.
        """
        self._pipeline.dispatcher.report_problems(self._plugin, problems)

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

    def _holder(self) -> Any:
        if self._catalog is None:
            raise ListingFailed("The brokers upstream hold the topics, and they have no change log")
        return self._catalog


def _parsed(namespace: NamespaceName | str) -> NamespaceName:
    return NamespaceName.parse(namespace) if isinstance(namespace, str) else namespace
