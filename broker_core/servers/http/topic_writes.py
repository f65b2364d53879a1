"""Changing topics of the embedded catalogue for HTTP clients: their rights, and each change as a transaction.

A change is on the disk once it is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from broker_core.access.access import Access
from broker_core.access.asker import Asker
from broker_core.catalog import (
    CatalogError,
    Decide,
    Edit,
    SqliteCatalog,
    TopicInvalid,
    TopicRecord,
    TopicWrite,
    creation,
    deletion,
    merge,
    replacement,
)
from broker_core.errors import Cause, ListingFailed
from broker_core.names import NamespaceName, TopicName
from broker_core.pipeline import Pipeline
from broker_core.servers.http.topic_imports import Ask, TopicImports
from broker_core.service import Catalog

__all__ = ["Require", "TopicWrites"]

#: Called with the topic as it is, or ``None``, before it is changed; raises
#: :exc:`~broker_core.catalog.PreconditionFailed`.
Require = Callable[[TopicRecord | None], object]


class TopicWrites:
    """Changes topics of a catalogue for those who have the right ``admin`` in the namespace; on one event loop.

    ``allowed`` is ``[http] writes``. Each method makes one transaction, takes until ``deadline`` (loop time) at the
    most, and returns the topic before and after, and the version of its namespace. Nothing to change is no new version.

    Raises :exc:`~broker_core.errors.ListingFailed` with the causes ``DENIED``, ``NOT_ALLOWED``, ``QUEUE`` and what
    gates say, :exc:`~broker_core.catalog.CatalogBusy`, ``CatalogReadOnly``, ``CatalogFull`` and what each method names,
    all of :mod:`broker_core.catalog`. Whatever is raised, nothing was changed. A change that has begun is made though
    its caller is cancelled.
    """

    def __init__(
        self, catalog: Catalog, file: SqliteCatalog, pipeline: Pipeline, *, allowed: bool = True
    ) -> None:
        self.catalog = catalog
        self._pipeline = pipeline
        self._allowed = allowed
        #: Imports of many topics; whoever calls it asks :meth:`authorize` before.
        self.imports = TopicImports(file)

    def close(self) -> None:
        """End the thread of imports; one under way ends, and has changed nothing."""
        self.imports.close()

    async def create(
        self,
        asker: Asker,
        topic: TopicName,
        properties: Mapping[str, str] | None = None,
        *,
        deadline: float | None = None,
    ) -> TopicWrite:
        """Add a topic without partitions, or a partition that its topic lacks.

        Raises ``TopicExists`` and ``PartitionRefused``.
        """
        return await self._write(asker, topic, creation(topic, 0, properties), deadline)

    async def create_partitioned(
        self,
        asker: Asker,
        topic: TopicName,
        partitions: int,
        properties: Mapping[str, str] | None = None,
        *,
        deadline: float | None = None,
    ) -> TopicWrite:
        """Add a topic of so many partitions. Raises ``TopicExists`` and ``PartitionRefused``."""
        return await self._write(asker, topic, creation(topic, partitions, properties), deadline)

    async def put(
        self,
        asker: Asker,
        topic: TopicName,
        partitions: int,
        properties: Mapping[str, str],
        *,
        may_replace: bool,
        configs: Mapping[str, str] | None = None,
        require: Require | None = None,
        deadline: float | None = None,
    ) -> TopicWrite:
        """Make a topic of exactly this content, or give it to the one that is there, if it ``may_replace`` that.

        Without ``configs`` a topic keeps its own.

        Raises ``TopicExists``, ``PartitionRefused``, ``PartitionCountRefused`` and what ``require`` does.
        """
        decide = replacement(topic, partitions, properties, may_replace=may_replace, configs=configs)
        return await self._write(asker, topic, _with_known_configs(decide), deadline, require)

    async def merge(
        self,
        asker: Asker,
        topic: TopicName,
        properties: Mapping[str, str | None] | None,
        partitions: int | None = None,
        *,
        configs: Mapping[str, str | None] | None = MappingProxyType({}),
        require: Require | None = None,
        deadline: float | None = None,
    ) -> TopicWrite:
        """Set properties and configs of a topic, take those of ``None`` away, and let it grow to so many partitions.

        ``None`` in the place of the properties, or of the configs, takes all away.

        Raises ``TopicMissing``, ``PartitionRefused``, ``PartitionCountRefused`` and what ``require`` does.
        """
        decide = _with_known_configs(merge(topic, properties, partitions, configs))
        return await self._write(asker, topic, decide, deadline, require)

    async def grow(
        self, asker: Asker, topic: TopicName, partitions: int, *, deadline: float | None = None
    ) -> TopicWrite:
        """Add partitions to a partitioned topic. Raises what :meth:`merge` does."""
        return await self.merge(asker, topic, {}, partitions, deadline=deadline)

    async def delete(
        self,
        asker: Asker,
        topic: TopicName,
        *,
        partitioned: bool | None = False,
        require: Require | None = None,
        deadline: float | None = None,
    ) -> TopicWrite:
        """Remove a topic, or one partition by its name. ``partitioned``: only a topic with partitions, or one without;
        ``None``: any.

        Raises ``TopicMissing``, ``PartitionedRefused`` and what ``require`` does.
        """
        return await self._write(asker, topic, deletion(topic, partitioned=partitioned), deadline, require)

    async def delete_partitioned(
        self, asker: Asker, topic: TopicName, *, deadline: float | None = None
    ) -> TopicWrite:
        """Remove a partitioned topic with all of its partitions. Raises ``TopicMissing``."""
        return await self.delete(asker, topic, partitioned=True, deadline=deadline)

    def check_allowed(self) -> None:
        """Raise :exc:`~broker_core.errors.ListingFailed` where nobody may write anything."""
        if not self._allowed:
            raise ListingFailed(
                "This server changes no topics over HTTP: writes = false in the table [http] of its settings",
                cause=Cause.NOT_ALLOWED,
            )

    async def authorize(
        self,
        asker: Asker,
        namespace: NamespaceName,
        topic: TopicName | None = None,
        deadline: float | None = None,
    ) -> None:
        """Raise :exc:`~broker_core.errors.ListingFailed` unless this may be written; each method asks by itself."""
        self.check_allowed()
        await self._pipeline.authorize(Access("admin", namespace, topic, asker), deadline)

    def asks_about_each(self, asker: Asker, namespace: NamespaceName) -> Ask | None:
        """What an import asks about each topic; ``None`` where no gate decides about this namespace.

        A gate is asked about the namespace as a whole too (:meth:`authorize`), but may look at topics alone.
        """
        if not self._pipeline.dispatcher.gates(namespace):
            return None
        return lambda topic: self.authorize(asker, namespace, topic)

    async def _write(
        self,
        asker: Asker,
        topic: TopicName,
        decide: Decide,
        deadline: float | None,
        require: Require | None = None,
    ) -> TopicWrite:
        await self.authorize(asker, topic.namespace, topic, deadline)
        (done,) = await self.catalog.edit(topic.namespace, [Edit(topic, decide, require)], deadline)
        if isinstance(done, CatalogError):
            raise done
        return done


def _with_known_configs(decide: Decide) -> Decide:
    """The same; configs that it changes must be such as Kafka's topics can have. Raises ``TopicInvalid``."""

    def decided(topic: TopicRecord | None) -> TopicRecord | None:
        after = decide(topic)
        if after is not None and after.configs and (topic is None or after.configs != topic.configs):
            from broker_core.kafka.configs import InvalidConfig, check_configs

            try:
                check_configs(after.configs, {})
            except InvalidConfig as error:
                raise TopicInvalid(str(error)) from None
        return after

    return decided
