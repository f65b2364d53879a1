"""The topics of a Kafka cluster at one moment, from one answer of Metadata: columns, and no object per topic."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.counted import counted
from broker_core.kafka import legal_names
from broker_core.listing import Details, TopicRow, TopicTable
from broker_core.names import (
    PARTITION_SUFFIX,
    PERSISTENT,
    NamespaceName,
    column_data,
    partitioned_local_names,
    system_topic_mask,
)
from broker_core.redaction import shown
from broker_core.wire.kafka import ZERO_ID
from broker_core.wire.kafka.topic_fragments import PlacedTopics

__all__ = ["ClusterTopics"]

_Array = np.ndarray[Any, Any]
_BYTES: Final = pa.large_binary()
_TEXT: Final = pa.large_string()
_DIGEST: Final = 16
#: Names of topics that are left out, in a text about them.
_NAMED: Final = 5


class ClusterTopics:
    """Topics as Kafka clients see them, and as they are listed for all transports: by the names of their partitions.

    A topic with the name of another topic's partition (``orders-partition-0``), or of an internal topic of Pulsar's
    brokers, is left out, and counted: in a listing it would be another topic.
    """

    def __init__(
        self, namespace: NamespaceName, table: TopicTable, digest: bytes, left_out: pa.LargeBinaryArray
    ) -> None:
        self.namespace: Final = namespace
        self.table: Final = table
        #: The names of the topics that are left out, in order.
        self.left_out: Final = left_out
        #: The digest of the bytes of the cluster's answer.
        self.digest: Final = digest

    @classmethod
    def of(
        cls, namespace: NamespaceName, read: PlacedTopics, digest: bytes, old: ClusterTopics | None
    ) -> ClusterTopics:
        """The topics of an answer; chunks equal to those of ``old`` are the same objects."""

        left_out = pa.array([], _BYTES)

        def listable(names: pa.LargeBinaryArray) -> _Array | None:
            nonlocal left_out
            kept = _listable(names, namespace)
            if kept is not None:
                left_out = names.filter(pa.array(~kept)).sort()
            return kept

        table = TopicTable.of_columns(read.names, read.partitions, read.ids, listable, read.placements)
        if old is not None:
            table = table.sharing(old.table)
        return cls(namespace, table, digest, left_out)

    def left_out_text(self) -> str:
        """A text of how many topics are left out, with the names of some; empty: none."""
        some = [shown(name.as_py().decode("utf-8", "replace")) for name in self.left_out[:_NAMED]]
        more = ", ..." if len(self.left_out) > _NAMED else ""
        return f"{counted(len(self.left_out), 'topic')}: {', '.join(some)}{more}" if some else ""

    @cached_property
    def hash(self) -> str:
        """The hash of the listed names: equal for equal topics with as many partitions."""
        names, numbers = (hashlib.blake2b(digest_size=_DIGEST) for _ in range(2))
        for chunk in self.table.chunks:
            data, offsets = column_data(chunk.names)
            names.update(memoryview(data)[int(offsets[0]) : int(offsets[-1])])
            numbers.update(np.stack([np.diff(offsets), chunk.partitions], axis=1).tobytes())
        return names.hexdigest() + numbers.hexdigest()

    def names(self) -> pa.LargeStringArray:
        """The full names of all partitions."""
        columns = [self._partitions_of(chunk.names, chunk.partitions) for chunk in self.table.chunks]
        return pa.concat_arrays([pa.array([], _TEXT), *columns])

    def _partitions_of(self, names: pa.LargeBinaryArray, partitions: _Array) -> pa.LargeStringArray:
        ends = np.cumsum(partitions, dtype=np.int64)
        rows = np.repeat(np.arange(len(names)), partitions)
        numbers = np.arange(len(rows)) - np.repeat(ends - partitions, partitions)
        full = self._full(names)
        return pc.binary_join_element_wise(
            full.take(pa.array(rows)), pa.array(numbers).cast(_TEXT), pa.scalar(PARTITION_SUFFIX, _TEXT)
        )

    def _full(self, names: pa.LargeBinaryArray) -> pa.LargeStringArray:
        prefix = pa.scalar(f"{PERSISTENT}://{self.namespace}/", _TEXT)
        return pc.binary_join_element_wise(prefix, names.cast(_TEXT), pa.scalar("", _TEXT))

    def partitions_of(self, name: str) -> int:
        """The number of partitions of a topic; 0 if it does not exist."""
        row = self._row(name)
        return 0 if row is None else row.partitions

    def id_of(self, name: str) -> uuid.UUID:
        """The id of a topic; the zero id if it does not exist."""
        row = self._row(name)
        return ZERO_ID if row is None else uuid.UUID(bytes=row.topic_id)

    def names_of(self, ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, str]:
        """The names of the existing topics with these ids."""
        wanted = pa.array([each.bytes for each in ids], _BYTES)
        found: dict[uuid.UUID, str] = {}
        for chunk in self.table.chunks:
            rows = np.flatnonzero(pc.is_in(chunk.ids, value_set=wanted).to_numpy(zero_copy_only=False))
            some = (chunk.row(int(row)) for row in rows)
            found |= {uuid.UUID(bytes=row.topic_id): row.name.decode() for row in some}
        return found

    def _row(self, name: str) -> TopicRow | None:
        wanted = name.encode("utf-8", "replace")
        place = self.table.from_name(wanted)
        if place.chunk == len(self.table.chunks):
            return None
        row = self.table.chunks[place.chunk].row(place.row)
        return row if row.name == wanted else None

    def details(
        self, wants: frozenset[str], names: pa.LargeStringArray | None = None, ids: Any | None = None
    ) -> Details:
        """The details of the topics with these full names, or these ids; of all without either."""
        columns: list[tuple[pa.LargeStringArray, _Array, pa.LargeBinaryArray]] = []
        for chunk in self.table.chunks:
            rows: Any = None
            assert chunk.ids is not None
            if names is not None:
                rows = pc.is_in(self._full(chunk.names), value_set=names.cast(_TEXT))
            elif ids is not None:
                rows = pc.is_in(chunk.ids, value_set=ids.cast(_BYTES))
            some = chunk if rows is None else chunk.some(np.flatnonzero(rows.to_numpy(zero_copy_only=False)))
            if len(some):
                assert some.ids is not None
                columns.append((self._full(some.names), some.partitions, some.ids))
        topics = pa.concat_arrays([pa.array([], _TEXT), *(each[0] for each in columns)])
        counts = np.concatenate([np.zeros(0, np.int32), *(each[1] for each in columns)])
        topic_ids = pa.concat_arrays([pa.array([], _BYTES), *(each[2] for each in columns)])
        return Details.of(
            topics,
            partitions=pa.array(counts, pa.int32()) if "partitions" in wants else None,
            topic_id=topic_ids.cast(pa.binary(16)) if "topic_id" in wants else None,
        )


def _listable(names: pa.LargeBinaryArray, namespace: NamespaceName) -> _Array | None:
    """A mask of the names that a listing can have; ``None``: all."""
    legal = legal_names(names)
    if legal is not None:
        names = pc.if_else(pa.array(legal), names, pa.scalar(b"-", _BYTES))
    texts = names.cast(_TEXT)
    bases = partitioned_local_names(texts)
    system = system_topic_mask(bases, namespace, PERSISTENT)
    if legal is None and bases is texts and system is None:
        return None
    kept: _Array = np.ones(len(texts), np.bool_) if legal is None else legal
    kept = kept & pc.equal(bases, texts).to_numpy(zero_copy_only=False)
    if system is not None:
        kept &= ~system.to_numpy(zero_copy_only=False)
    return kept
