"""The interface of sources of topics: a snapshot of a catalogue, and its version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final, Protocol

from broker_core.change_log import CatalogVersion
from broker_core_spark.batch.sources.quarantine import QuarantinedRow
from broker_core_spark.batch.staging.sorted_runs import SortedRun
from broker_core_spark.batch.staging.staging_area import StagingArea

__all__ = ["STATIC_ID", "CatalogueSnapshot", "CatalogueSource"]

#: The catalogue id of static sources.
STATIC_ID: Final = "static"


class CatalogueSnapshot(Protocol):
    """One state of a catalogue.

    ``versions`` has the version of every namespace, or is ``None`` in a static catalogue. ``stamps`` are those of the
    versions, where the catalogue has them. ``repeats`` counts repeated names that are staged once.
    ``quarantined`` has the rows that are no topics, once the names are read, if the source puts these aside.
    """

    catalogue_id: str
    versions: Mapping[str, int] | None
    stamps: Mapping[str, str]
    repeats: int

    @property
    def quarantined(self) -> Sequence[QuarantinedRow]: ...

    def read(self, staging: StagingArea, namespaces: Sequence[str] | None) -> list[SortedRun]:
        """Stage the names of these namespaces, or of all for ``None``."""

    def changed(self, namespace: str, since: CatalogVersion) -> Iterable[tuple[str, str]] | None:
        """(domain, local name) of every name that may have come, gone or changed after ``since``.

        Returns ``None`` where the change log does not say.
        """


class CatalogueSource(Protocol):
    """A catalogue that gives snapshots."""

    #: A static catalogue has no change log. Its generation is right as long as the operator says so.
    static: bool

    def snapshot(self) -> AbstractContextManager[CatalogueSnapshot]:
        """The current state, held until the context ends."""
