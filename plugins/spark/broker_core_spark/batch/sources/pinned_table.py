"""Tables of formats with versions, each at one of its versions."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["PinnedTable", "at_version", "name_and_version"]

_VERSION: Final = re.compile(r"(?P<name>.*\S)\s+version\s+as\s+of\s+(?P<version>[0-9]{1,19})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PinnedTable:
    """A table at one version: all ``rows``, with its columns.

    ``stamp`` distinguishes the version from all others of this table and of any other. ``changed_rows`` gives the rows
    that came and went after the version of a stamp, as in column ``_change_type``. A row that was only moved to another
    file may be among them, as one that went and came. It raises
    :exc:`~broker_core_spark.batch.build_errors.NothingToKeep` if the table does not know.
    """

    rows: DataFrame
    stamp: str
    changed_rows: Callable[[str], DataFrame]


def name_and_version(table: str) -> tuple[str, int | None]:
    """The name and the version of ``NAME VERSION AS OF N``, ``None`` for a name alone."""
    found = _VERSION.fullmatch(table)
    return (found["name"], int(found["version"])) if found else (table, None)


def at_version(spark: SparkSession, name: str, version: int) -> DataFrame:
    """The rows of a table at a version."""
    return spark.read.option("versionAsOf", version).table(name)
