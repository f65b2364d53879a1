"""Where the topics come from: a snapshot that is held while it is read, and what is known of its version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from broker_core.change_log import CatalogVersion
from broker_core_spark.batch.staging.sorted_runs import Run, RunWriter, Window
from broker_core_spark.store import Store, open_store

__all__ = ["STATIC_ID", "CatalogueSource", "Snapshot", "Staging"]

#: The catalogue id of sources that have none, since nothing says when they change.
STATIC_ID: Final = "static"


@dataclass(frozen=True, slots=True)
class Staging:
    """Where and how names are staged; what a task is given to open its own writer."""

    uri: str
    folder: str
    property_keys: tuple[str, ...]
    target: int
    options: Mapping[str, str] = field(default_factory=dict)
    window: Window | None = None

    def open(self) -> Store:
        """The store, opened by this process."""
        return open_store(self.uri, options=self.options)

    def writer(self) -> RunWriter:
        """A writer of runs."""
        return RunWriter(
            self.open(),
            self.folder,
            properties=len(self.property_keys),
            target=self.target,
            window=self.window,
        )

    def within(self, window: Window | None) -> Staging:
        """The same for a part of the names."""
        return replace(self, window=window)


class Snapshot(Protocol):
    """One state of a catalogue.

    ``versions`` has every namespace of it, with its version; ``None`` where the catalogue has none (a static one, whose
    namespaces are known when it is read). ``stamps`` are those of the versions, where the catalogue has them.
    ``repeats`` is how often names were repeated that are staged once all the same.
    """

    catalogue_id: str
    versions: Mapping[str, int] | None
    stamps: Mapping[str, str]
    repeats: int

    def read(self, staging: Staging, namespaces: Sequence[str] | None) -> list[Run]:
        """Stage the names of these namespaces (``None``: of all)."""

    def changed(self, namespace: str, since: CatalogVersion) -> Iterable[tuple[str, str]] | None:
        """(domain, local name) of every name that may have come, gone or changed after ``since``.

        ``None`` where the change log does not say.
        """


class CatalogueSource(Protocol):
    """A catalogue that a snapshot can be taken of."""

    #: It has no change log: a generation of it is right only for as long as the operator says.
    static: bool

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """A state of it, held until the end."""
