"""The paths of files in a store."""

from __future__ import annotations

import pytest

from broker_core_spark.errors import StoreFailed
from broker_core_spark.store.stored_file import checked_path


@pytest.mark.parametrize("path", ["segments/a", "temporary/a-b_c.D9", "x/..a"])
def test_two_parts_of_plain_letters_are_a_path(path: str) -> None:
    assert checked_path(path) == path


@pytest.mark.parametrize(
    "path",
    ["", "a", "../x", "segments/../../x", "/etc/passwd", "segments/a/b", "segments/..", "segments/", "A/b"],
)
def test_what_could_be_more_is_none(path: str) -> None:
    with pytest.raises(StoreFailed, match="no path of a store"):
        checked_path(path)
