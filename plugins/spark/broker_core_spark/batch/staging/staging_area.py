"""The staging area of a build, by which each task opens its own store and writer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath

from broker_core_spark.batch.staging.order_keys import KeyRanges
from broker_core_spark.format import LARGEST_FACTOR
from broker_core_spark.store import Store, open_store

__all__ = ["StagingArea"]


@dataclass(frozen=True, slots=True)
class StagingArea:
    """The place and the form of staged names. ``target`` is the average size of segments in bytes.

    Names outside of ``key_ranges`` and of ``namespaces`` are left out; ``None`` takes all. ``stretches`` are
    those of the last generation, each by the key in front of it and its number of names: each run has the digests of
    those that it may have whole.
    """

    uri: str
    folder: str
    property_keys: tuple[str, ...]
    target: int
    options: Mapping[str, str] = field(default_factory=dict)
    key_ranges: KeyRanges | None = None
    largest_segment_bytes: int | None = None
    namespaces: frozenset[str] | None = None
    stretches: tuple[tuple[bytes, int], ...] = ()

    @property
    def largest(self) -> int:
        """Bytes of the largest segment."""
        return self.largest_segment_bytes or LARGEST_FACTOR * self.target

    def open(self) -> Store:
        """The store, opened by a task. Files that a killed task leaves have names of staged files."""
        return open_store(self.uri, self.options, staged=f"{PurePath(self.folder).name}-part")
