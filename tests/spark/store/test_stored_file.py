"""The paths of files in a store."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from broker_core_spark.errors import StoreFailed
from broker_core_spark.store.stored_file import StoredFile, checked_path, file_numbers


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


def test_the_numbers_of_files_are_those_with_no_other_leading_zeros() -> None:
    names = ("000000000012", "1000000000000", "0000000000013", "12", "x", "000000000003")
    files = [StoredFile(f"a/{name}.json", 0, datetime.now(UTC)) for name in names]
    assert file_numbers(
        [*files, StoredFile("a/000000000004.jsonl", 0, datetime.now(UTC))], "a/", ".json"
    ) == [
        3,
        12,
        10**12,
    ]
