"""An address means a table or a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker_core_spark.batch.build_errors import InvalidCatalogue
from broker_core_spark.batch.source_address import is_table, path_of


def test_what_is_a_table() -> None:
    assert is_table("x.parquet?versionId=1")
    assert not is_table("x.sqlite")


def test_the_path_of_a_file() -> None:
    assert path_of("file:///a%20b/c") == Path("/a b/c")
    assert path_of("names.txt") == Path("names.txt")
    with pytest.raises(InvalidCatalogue, match="No catalogue of the kind 'mysql'"):
        path_of("mysql://host/db")
