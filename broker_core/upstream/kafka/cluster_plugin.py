"""The topics of a Kafka cluster as the last plugin of the chain: for all transports, after the operator's plugins."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, create_model

from broker_core.access import Asker, Sessions
from broker_core.change_log import ChangeLog
from broker_core.errors import Cause, ListingFailed
from broker_core.guards import ShrinkGuard
from broker_core.listing import Details, Listing, TopicTable
from broker_core.memory import Permits
from broker_core.metrics import Metrics
from broker_core.names import Mode, NamespaceName
from broker_core.plugin_api import DescribeRequest, ListingRequest, TopicListingResult, hookimpl
from broker_core.snapshots import Snapshot
from broker_core.upstream.kafka.cluster_store import KafkaTopicStore
from broker_core.upstream.kafka.cluster_topics import ClusterTopics
from broker_core.upstream.kafka.kafka_cluster import KafkaCluster
from broker_core.upstream.kafka.list_invalidation import ChangedTopics
from broker_core.upstream.snapshots import LiveSnapshots, SnapshotLog, View, ViewOfNamespace

__all__ = ["CLUSTER_PLUGIN", "ClusterPlugin"]

#: The name of the plugin, wherever plugins have one.
CLUSTER_PLUGIN: Final = "kafka-upstream"
#: Seconds that a call of the plugin has: a little more than a listing of the cluster.
_DEADLINE: Final = 27.0


class ClusterPlugin:
    """The hooks of a built-in plugin, and the tables of its topics, for servers that need more than names.

    Topics that were not compared with the cluster for ``max_age`` seconds are given to nobody. With ``sessions`` each
    client gets what the cluster lists for it. Made and used on one event loop.
    """

    #: The name of the lister whose listings have tables.
    lister: Final = CLUSTER_PLUGIN

    def __init__(
        self,
        cluster: KafkaCluster,
        namespace: NamespaceName,
        permits: Permits,
        guard: ShrinkGuard,
        *,
        max_age: float,
        sessions: Sessions | None = None,
    ) -> None:
        self.namespace: Final = namespace
        #: Seconds since the last comparison with the cluster for which topics are served.
        self.max_age = max_age
        self.store: Final = KafkaTopicStore(cluster, namespace, sessions)
        self._topics_changed: Callable[[NamespaceName], None] | None = None
        self.snapshots: Final = LiveSnapshots(self.store, permits, self._changed, guard=guard)
        self.snapshots.kept.on_let_go.append(lambda place: self.store.let_go(place.view))
        self._topics: weakref.WeakKeyDictionary[Listing, ClusterTopics] = weakref.WeakKeyDictionary()
        cluster.on_write.append(self._wrote)

    def _wrote(self, changed: ChangedTopics) -> None:
        """Note that topics were changed through this gateway: the next question gets a listing that shows it."""
        self.store.unshown.note(changed)
        gone = [name for name, partitions in changed.items() if partitions is None]
        self.snapshots.wrote(self.namespace, lambda view: self._partitions_of(view, gone))

    def _partitions_of(self, view: View, names: Sequence[str]) -> int:
        """The number of listed names of some topics."""
        topics = self._newest(view)
        return 0 if topics is None else sum(topics.partitions_of(name) for name in names)

    def _changed(self, namespace: NamespaceName) -> None:
        if self._topics_changed is not None:
            self._topics_changed(namespace)

    async def close(self) -> None:
        """Drop all snapshots."""
        await self.snapshots.close()

    # ---- tables of listings

    def known(self, listing: Listing) -> tuple[TopicTable, bool] | None:
        """The table of a listing of this plugin's, which is kept; ``None`` if it is no longer known."""
        found = self._topics.get(listing)
        return None if found is None else (found.table, True)

    async def of(self, listing: Listing) -> tuple[TopicTable, bool] | None:
        """The table of a listing of this plugin's, as :meth:`known`."""
        return self.known(listing)

    def hold(self, namespace: NamespaceName, parts: Sequence[tuple[object, int]]) -> bool:  # noqa: ARG002
        """Hold permits for encoded parts of a table, while each part lives; false without room."""
        return self.snapshots.kept.hold_beside(ViewOfNamespace(self.namespace, None), parts)

    async def completed(self, table: TopicTable, asker: Asker) -> TopicTable:
        """Topics that another plugin lists, with the cluster's data as far as it has them."""
        topics = await self.current(asker)
        names = [chunk.names for chunk in table.chunks]
        every = topics.table.joined()
        if every is None or not names:
            return TopicTable((), table.left_out + table.size)
        rows = pc.index_in(pa.concat_arrays(names), value_set=every.names)
        some = every.some(np.sort(rows.drop_null().to_numpy()).astype(np.int64))
        left_out = table.left_out + table.size - len(some)
        return TopicTable((some,) if len(some) else (), left_out)

    # ---- the hooks

    @hookimpl
    def broker_core_settings(self) -> type[BaseModel]:
        """The model of the settings, without those by which another plugin, or none, would answer for the cluster."""
        only: Any = Literal[str(self.namespace)]
        fields: dict[str, Any] = {
            "deadline": (float, _DEADLINE),
            "on_failure": (Literal["error"], "error"),
            "namespaces": (tuple[only], (str(self.namespace),)),
        }
        return create_model("ClusterPluginSettings", **fields)

    @hookimpl
    def broker_core_depends_on(self) -> Collection[str]:
        return () if self.store.lists_for_all else ("principal",)

    @hookimpl
    async def broker_core_startup(self, broker: Any) -> None:
        self._topics_changed = broker.topics_changed

    @hookimpl
    async def broker_core_change_log(self) -> ChangeLog | None:
        """The change log of the listing for all clients."""
        if not self.store.lists_for_all:
            return None

        def is_current(place: ViewOfNamespace) -> bool:
            return self.snapshots.now(place, Mode.PERSISTENT, self._since) is not None

        async def make_current(place: ViewOfNamespace) -> None:
            await self.snapshots.current(place, Mode.PERSISTENT, self._since)

        logs, log_id = self.snapshots.logs, self.snapshots.id
        return SnapshotLog(logs, log_id, None, current=make_current, is_current=is_current, name=self.lister)

    @hookimpl
    async def broker_core_list_topics(self, request: ListingRequest) -> TopicListingResult:
        try:
            view = self.store.view_of(request.asker)
            snapshot = await self._snapshot(view, request.mode)
        except ListingFailed as failure:
            if failure.cause is Cause.DENIED:  # of this client alone: no failure of the plugin
                return TopicListingResult.refused(failure.message)
            raise
        listing, details = snapshot.listing, None
        if request.mode is not Mode.NON_PERSISTENT:
            topics = self._kept(view)
            self._topics[listing] = topics
            if request.wants:
                details = topics.details(request.wants)
        return TopicListingResult.success(listing, version=str(snapshot.version), details=details)

    @hookimpl
    async def broker_core_describe_topics(self, request: DescribeRequest) -> Details:
        topics = await self.current(request.asker)
        return topics.details(request.wants, request.names, request.ids)

    async def current(self, asker: Asker) -> ClusterTopics:
        """The topics that a client may see. Raises :exc:`ListingFailed`."""
        view = self.store.view_of(asker)
        await self._snapshot(view, Mode.PERSISTENT)
        return self._kept(view)

    def _kept(self, view: View) -> ClusterTopics:
        """The newest topics; without room for them there would be nothing but names."""
        topics = self._newest(view)
        if topics is None:
            raise ListingFailed("The topics of the Kafka cluster have no room", cause=Cause.PERMITS)
        return topics

    @property
    def _since(self) -> float:
        """The earliest moment that a listing may be of."""
        return self.snapshots.clock() - self.max_age

    async def _snapshot(self, view: View, mode: Mode) -> Snapshot:
        place = ViewOfNamespace(self.namespace, view)
        kept = self.snapshots.now(place, mode, self._since)
        return await self.snapshots.current(place, mode, self._since) if kept is None else kept.snapshot

    def _newest(self, view: View) -> ClusterTopics | None:
        return self.store.topics_of(view, self.snapshots.known_hash(ViewOfNamespace(self.namespace, view)))

    def show(self, metrics: Metrics, cluster: KafkaCluster) -> None:
        """Declare the metrics of the cluster."""
        metrics.gauge(
            "kafka_upstream_up",
            "Whether the Kafka cluster behind this gateway answered when its nodes were asked last: 1 or 0.",
            lambda: float(cluster.problem is None),
        )
        metrics.read_counter(
            "kafka_upstream_listings",
            "Requests for all topics of the Kafka cluster, for its snapshots.",
            lambda: self.store.listings,
        )
        metrics.read_counter(
            "kafka_upstream_snapshot_listings",
            "Comparisons of snapshots with the Kafka cluster, by outcome.",
            lambda: dict(self.snapshots.counts),
            "outcome",
        )
