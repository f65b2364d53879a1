"""Several catalogues as one: the topics of all of them, each once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from types import MappingProxyType

from broker_core.change_log import CatalogVersion
from broker_core_spark.batch.build_errors import InvalidCatalogue
from broker_core_spark.batch.sources.catalogue_source import CatalogueSnapshot, CatalogueSource
from broker_core_spark.batch.staging.sorted_runs import SortedRun
from broker_core_spark.batch.staging.staging_area import StagingArea

__all__ = ["JoinedCatalogues"]


class JoinedCatalogues(CatalogueSource):
    """A static catalogue of several static ones: a broker follows the changes of one catalogue alone.

    Raises :exc:`InvalidCatalogue` if one of them has versions that brokers follow.
    """

    def __init__(self, sources: Sequence[CatalogueSource]) -> None:
        if not all(source.static for source in sources):
            raise InvalidCatalogue(
                "several catalogues are tables, Parquet or files of names: brokers follow the changes of one "
                "database or embedded catalogue, which is built alone"
            )
        self._sources = sources

    @contextmanager
    def snapshot(self) -> Iterator[CatalogueSnapshot]:
        """The current state of each, held until the context ends."""
        with ExitStack() as held:
            yield _JoinedSnapshot([held.enter_context(source.snapshot()) for source in self._sources])


class _JoinedSnapshot(CatalogueSnapshot):
    unversioned = "several catalogues have no version together"
    versions: Mapping[str, CatalogVersion] = MappingProxyType({})

    def __init__(self, parts: Sequence[CatalogueSnapshot]) -> None:
        self._parts = parts
        self.repeats = sum(part.repeats for part in parts)
        self.left_out = sum(part.left_out for part in parts)

    def read(self, staging: StagingArea) -> list[SortedRun]:
        return [run for part in self._parts for run in part.read(staging)]
