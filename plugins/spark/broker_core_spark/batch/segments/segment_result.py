"""The entry of a segment that a task wrote, for the driver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from broker_core_spark.format.manifest import FileEntry, SegmentEntry

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

    def record(self) -> dict[str, Any]:
        """The result as members of JSON, for the task that merges its parts."""
        return {
            "name": self.entry.name,
            "size": self.entry.size,
            "first_local": self.entry.first_local,
            "runs": self.entry.runs,
            "postings": [self.entry.postings.name, self.entry.postings.size],
            "continues": self.entry.continues,
            "new": self.new,
            "duplicates": self.duplicates,
            "digest": self.digest,
        }

    @classmethod
    def of(cls, record: dict[str, Any]) -> SegmentResult:
        """The inverse of :meth:`record`."""
        entry = SegmentEntry(
            record["name"],
            record["size"],
            record["first_local"],
            tuple((namespace, domain, names) for namespace, domain, names in record["runs"]),
            FileEntry(*record["postings"]),
            record["continues"],
        )
        return cls(entry, record["new"], record["duplicates"], record["digest"])
