"""``matched_of`` and ``partition_of`` in SQL follow the rules of :mod:`broker_core.names`, for any name."""

from __future__ import annotations

import asyncio
from typing import Any

import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from broker_core.names.name_columns import partitioned_local_names
from broker_core.names.partitions import partition_index, partitioned_local_name
from tests.support.postgres_server import Database
from tests.support.vectors import pattern_vectors

_DIGITS = st.sampled_from(
    ["0", "1", "00", "01", "10", "2147483647", "2147483648", "9999999999", "10000000000", "٣", ""]
)
_PIECES = st.sampled_from(
    [
        "-partition-",
        "-partition",
        "partition-",
        "-Partition-",
        "x",
        "é",
        "😀",
        "\n",
        "-",
        "1",
        "%",
        "\\",
        " ",
        "'",
    ]
)
_NAMES = st.lists(_PIECES | _DIGITS | st.text(min_size=1, max_size=3), min_size=1, max_size=6).map("".join)
_LISTS = st.lists(
    _NAMES.filter(
        lambda name: name and not any(char in "\0/" or "\ud800" <= char <= "\udfff" for char in name)
    ),
    max_size=300,
)
_QUERY = """SELECT n, broker_core.matched_of(n), broker_core.partition_of(n)
    FROM unnest($1::text[]) WITH ORDINALITY u (n, place) ORDER BY place"""


def _expected(names: list[str]) -> list[tuple[str, str, int | None]]:
    indices = [partition_index(name) for name in names]
    return [
        (name, partitioned_local_name(name), None if index < 0 else index)
        for name, index in zip(names, indices, strict=True)
    ]


def test_any_names(database: Database) -> None:
    @settings(max_examples=20)
    @given(_LISTS)
    @example(
        [
            "x-partition-2147483647",
            "x-partition-2147483648",
            "x-partition-0",
            "-partition-0",
            "x-partition-00",
        ]
    )
    @example(
        ["x-partition-1-partition-2", "é-partition-7", "1-partition-1", "x-partition-1\n", "x-partition-"]
    )
    def check(names: list[str]) -> None:
        expected = _expected(names)
        assert list(map(tuple, runner.run(connection.fetch(_QUERY, names)))) == expected
        matched = partitioned_local_names(pa.array(names, pa.large_string())).to_pylist()
        assert matched == [each for _, each, _ in expected]

    with asyncio.Runner() as runner:
        connection = runner.run(database.connect())
        check()
        runner.run(connection.close())


async def test_the_recorded_names_as_rows(connection: Any) -> None:
    names = pattern_vectors()["stored_names"]
    await connection.execute(
        "INSERT INTO broker_core.topics (namespace, local_name) SELECT 'a/b', unnest($1::text[])", names
    )
    found = await connection.fetch("SELECT local_name, matched, partition FROM broker_core.topics")
    assert sorted(map(tuple, found), key=str) == sorted(_expected(names), key=str)
