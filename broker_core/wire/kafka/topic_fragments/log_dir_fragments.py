"""The topics of DescribeLogDirs' answers: partitions whose logs are empty."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Final

from broker_core.wire.kafka.topic_fragments.family import Family, Layout, partition_block
from broker_core.wire.kafka.writer import unsigned_varint

__all__ = ["log_dir_family"]

#: The first version with variable lengths.
_FLEXIBLE: Final = 2
#: The number of a partition, the size of its log, the lag behind its end, and whether it is a future log.
_PARTITION: Final = bytes(4 + 8 + 8 + 1)


@lru_cache(maxsize=2)
def _family(compact: bool) -> Family:
    return Family(("log_dirs", compact), Layout(b"", compact, False, partial(_tail, compact)))


def log_dir_family(version: int) -> Family:
    """The family of a version."""
    return _family(version >= _FLEXIBLE)


def _tail(compact: bool, _internal: bool, start: int, stop: int, _operations: int | None) -> bytes:
    if compact:
        block = partition_block(_PARTITION + b"\0", stop, start, at=0)
        return unsigned_varint(stop - start + 1) + block + b"\0"
    return (stop - start).to_bytes(4, "big") + partition_block(_PARTITION, stop, start, at=0)
