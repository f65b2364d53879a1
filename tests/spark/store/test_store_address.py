"""An address names one store, or is refused with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker_core_spark.errors import StoreFailed
from broker_core_spark.store import open_store


@pytest.mark.parametrize(
    ("uri", "wrong"),
    [
        ("", "empty"),
        ("ftp://host/x", "no place for generations"),
        ("file://host/x", "no host"),
        ("s3://", "no bucket"),
        ("s3://user@bucket/x", "not part of the address"),
        ("s3://bucket/x?endpoint=y", "not part of the address"),
    ],
)
def test_an_address_that_is_none_is_refused(uri: str, wrong: str) -> None:
    with pytest.raises(StoreFailed, match=wrong):
        open_store(uri)


def test_a_store_says_where_it_is_and_memory_is_shared_by_its_name(tmp_path: Path) -> None:
    assert open_store(str(tmp_path)).uri == str(tmp_path)
    assert open_store("memory://one").uri == "memory://one"
    open_store("memory://shared").put_new("segments/a", b"x")
    assert open_store("memory://shared").get("segments/a", 1) == b"x"
