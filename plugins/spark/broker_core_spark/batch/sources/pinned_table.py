"""Tables of formats with versions, each at one of its versions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["PinnedTable", "at_version", "name_and_version"]

_VERSION: Final = re.compile(r"(?P<name>.*\S)\s+version\s+as\s+of\s+(?P<version>[0-9]{1,19})", re.IGNORECASE)


class PinnedTable(Protocol):
    """A table at one version. ``stamp`` distinguishes the version from all others of this table and of any other."""

    @property
    def stamp(self) -> str: ...

    def frame(self) -> DataFrame:
        """All rows, with the columns of the version."""

    def changed_rows(self, since: str) -> DataFrame:
        """The rows that came and went after the version of the stamp ``since``, as in column ``_change_type``.

        A row that was only moved to another file may be among them, as one that went and came. Raises
        :exc:`~broker_core_spark.batch.build_errors.NothingToKeep` if the table does not know.
        """


def name_and_version(table: str) -> tuple[str, int | None]:
    """The name and the version of ``NAME VERSION AS OF N``, ``None`` for a name alone."""
    found = _VERSION.fullmatch(table)
    return (found["name"], int(found["version"])) if found else (table, None)


def at_version(spark: SparkSession, name: str, version: int) -> DataFrame:
    """The rows of a table at a version."""
    return spark.read.option("versionAsOf", version).table(name)
