"""The entry of a segment that a task wrote, for the driver."""

from __future__ import annotations

from dataclasses import dataclass

from broker_core_spark.format.manifest import SegmentEntry

__all__ = ["SegmentResult"]


@dataclass(frozen=True, slots=True)
class SegmentResult:
    """A segment in the store: its entry in the manifest.

    ``new`` is false if the store had both files. ``duplicates`` counts names that were given more than once. ``digest``
    is the digest of the keys of its whole stretch, if they were read
    (:meth:`~broker_core_spark.batch.staging.sorted_runs.KeyedNames.digest`).
    """

    entry: SegmentEntry
    new: bool = False
    duplicates: int = 0
    digest: str = ""
