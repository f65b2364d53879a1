"""The interface of sources of topics: a snapshot of a catalogue, and its version."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import ClassVar, Final

from broker_core.change_log import CatalogVersion
from broker_core_spark.batch.build_errors import NothingToKeep
from broker_core_spark.batch.staging.sorted_runs import SortedRun
from broker_core_spark.batch.staging.staging_area import StagingArea

__all__ = ["STATIC_ID", "CatalogueSnapshot", "CatalogueSource"]

#: The catalogue id of static sources.
STATIC_ID: Final = "static"


@dataclass(kw_only=True)
class CatalogueSnapshot(ABC):
    """One state of a catalogue, by default of a static one without versions.

    ``versions`` are the states of its namespaces, as far as they are known.
    ``unversioned`` says why the states of a static catalogue cannot be distinguished; it is empty if they can.
    ``repeats`` counts repeated names that are staged once, ``left_out`` the rows that a condition leaves out.
    """

    catalogue_id: str = STATIC_ID
    versions: Mapping[str, CatalogVersion] = field(default_factory=dict)
    unversioned: str = ""
    repeats: int = 0
    left_out: int = 0

    @abstractmethod
    def read(self, staging: StagingArea) -> list[SortedRun]:
        """Stage the names of the namespaces of a staging area."""

    def version(self, namespace: str, /) -> CatalogVersion | None:
        """The state of a namespace, or ``None``: there is no such namespace, or the catalogue is unversioned.

        Versions of a static catalogue have no numbers, only stamps, and any namespace has one.
        """
        return self.versions.get(namespace)

    def changes(
        self, since: Mapping[str, CatalogVersion], _property_keys: Sequence[str], /
    ) -> Mapping[str, Iterable[tuple[str, str]] | None]:
        """Names (domain, local name) that may have come, gone or changed after these versions, by namespace.

        A name changes if the value of one of the property keys does. ``None`` is for a namespace whose changes are no
        longer known. Raises :exc:`~broker_core_spark.batch.build_errors.NothingToKeep` if no changes are known.
        """
        return {namespace: self.changes_of(namespace, version) for namespace, version in since.items()}

    def changes_of(self, _namespace: str, _since: CatalogVersion, /) -> Iterable[tuple[str, str]] | None:
        """The changes of one namespace, as of :meth:`changes`."""
        raise NothingToKeep(self.unversioned)


class CatalogueSource(ABC):
    """A catalogue that gives snapshots."""

    #: Brokers cannot follow a static catalogue. Its generation is right as long as the operator says so.
    static: ClassVar = True

    @abstractmethod
    def snapshot(self) -> AbstractContextManager[CatalogueSnapshot]:
        """The current state, held until the context ends."""
