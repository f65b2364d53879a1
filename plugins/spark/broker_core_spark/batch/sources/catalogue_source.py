"""Where the topics come from: a snapshot that is held while it is read, and what is known of its version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final, Protocol

from broker_core.change_log import CatalogVersion
from broker_core_spark.batch.staging.sorted_runs import SortedRun
from broker_core_spark.batch.staging.staging_area import StagingArea

__all__ = ["STATIC_ID", "CatalogueSnapshot", "CatalogueSource"]

#: The catalogue id of sources that have none, since nothing says when they change.
STATIC_ID: Final = "static"


class CatalogueSnapshot(Protocol):
    """One state of a catalogue.

    ``versions`` has every namespace of it, with its version; ``None`` where the catalogue has none (a static one, whose
    namespaces are known when it is read). ``stamps`` are those of the versions, where the catalogue has them.
    ``repeats`` is how often names were repeated that are staged once all the same.
    """

    catalogue_id: str
    versions: Mapping[str, int] | None
    stamps: Mapping[str, str]
    repeats: int

    def read(self, staging: StagingArea, namespaces: Sequence[str] | None) -> list[SortedRun]:
        """Stage the names of these namespaces (``None``: of all)."""

    def changed(self, namespace: str, since: CatalogVersion) -> Iterable[tuple[str, str]] | None:
        """(domain, local name) of every name that may have come, gone or changed after ``since``.

        ``None`` where the change log does not say.
        """


class CatalogueSource(Protocol):
    """A catalogue that a snapshot can be taken of."""

    #: It has no change log: a generation of it is right only for as long as the operator says.
    static: bool

    def snapshot(self) -> AbstractContextManager[CatalogueSnapshot]:
        """A state of it, held until the end."""
