"""Rows that are no topics are put aside with the reason, and all others stay in their order."""

from __future__ import annotations

from collections.abc import Sequence

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

from broker_core_spark.batch.errors import InvalidCatalogue
from broker_core_spark.batch.sources import quarantine
from broker_core_spark.batch.sources.quarantine import (
    Quarantine,
    QuarantinedRow,
    without_bad_rows,
    without_bad_texts,
)
from broker_core_spark.batch.sources.stage_rows import stage_rows

TEXT = pa.large_string()


def texts(*values: str | None) -> pa.LargeStringArray:
    return pa.array(values, TEXT)


def good_names(
    aside: Quarantine, names: Sequence[str | None], namespaces: Sequence[str | None] | None = None
) -> list[tuple[str, str]]:
    """The names that stay, each with its property."""
    count = len(names)
    values = texts(*map(str, range(count)))
    found, places, domains, (rest,) = without_bad_rows(
        texts(*names), texts(*(namespaces or [None] * count)), texts(*[None] * count), [values], "a/b", aside
    )
    assert len(found) == len(places) == len(domains) == len(rest)
    return list(zip(found.to_pylist(), rest.to_pylist(), strict=True))


def test_every_kind_of_bad_row_is_put_aside_with_its_reason() -> None:
    aside = Quarantine()
    names = [
        "persistent://a/b/x",
        "persistent://a/b/c/d",
        "kafka://a/b/c",
        None,
        "local",
        "",
        "persistent://a/c/y",
        "bad\ud7ff\x00",
        "other",
    ]
    namespaces: list[str | None] = [None] * 9
    namespaces[6] = "a/b"  # another one than that of the name
    assert good_names(aside, names, namespaces) == [
        ("persistent://a/b/x", "0"),
        ("local", "4"),
        ("other", "8"),
    ]
    found = {row.name: row.reason for row in aside.rows}
    assert set(found) == {names[1], names[2], None, "", names[6], names[7]}
    assert "no '/'" in found["persistent://a/b/c/d"]
    assert "domain" in found["kafka://a/b/c"]
    assert "no name" in found[None]
    assert "is not in namespace a/b" in found["persistent://a/c/y"]
    assert next(row.namespace for row in aside.rows if row.name == "persistent://a/c/y") == "a/b"


PIECES = [
    "persistent",
    "non-persistent",
    "kafka",
    "://",
    "/",
    "a",
    "b",
    "",
    "x\x00",
    "-partition-1",
    "ü",
    "\n",
    "x" * 300,
]
BELOW = st.lists(st.sampled_from(PIECES), max_size=9).map("".join)
NAMES = st.one_of(st.none(), BELOW, BELOW.map("persistent://a/b/{}".format))
PLACES = st.one_of(st.none(), st.just("a/b"), BELOW)


@given(rows=st.lists(st.tuples(NAMES, PLACES, st.one_of(st.none(), st.sampled_from(PIECES))), max_size=6))
@pytest.mark.parametrize("default", [None, "a/b"])
def test_a_row_alone_is_refused_as_it_is_among_others(
    default: str | None, rows: list[tuple[str | None, str | None, str | None]]
) -> None:
    for row in rows:
        alone = quarantine._fault([texts(value) for value in row], default)
        assert (alone is None) == (quarantine._row_fault(*row, default) is None), (row, alone)
    names, places, domains = (texts(*(row[number] for row in rows)) for number in range(3))
    aside = Quarantine()
    found = without_bad_rows(names, places, domains, [], default, aside)
    assert len(found[0]) + len(aside.rows) == len(rows)
    assert quarantine._fault(found[:3], default) is None


def test_one_bad_row_of_many_is_found_with_few_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = []

    def counted(*arguments: object) -> object:
        checks.append(arguments)
        return stage_rows(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(quarantine, "stage_rows", counted)
    aside = Quarantine()
    names: list[str | None] = [f"t-{number}" for number in range(10_000)]
    assert len(good_names(aside, names)) == 10_000
    assert len(checks) == 1
    names[617] = "a/b"
    assert [name for name, _ in good_names(aside, names)] == names[:617] + names[618:]
    assert [row.name for row in aside.rows] == ["a/b"]
    assert len(checks) < 10


def test_bytes_that_are_no_text_are_put_aside() -> None:
    names = pa.array([b"good", b"bad-\xff\xfe", None, "süd".encode()])
    spoilt = pa.StringArray.from_buffers(
        4, names.buffers()[1], names.buffers()[2], names.buffers()[0], null_count=1
    )
    for column in (names, spoilt):
        aside = Quarantine()
        batch = without_bad_texts(pa.record_batch([column, pa.array([1, 2, 3, 4])], ["name", "n"]), aside)
        assert batch.column(1).to_pylist() == [1, 3, 4]
        assert [(row.name, row.reason) for row in aside.rows] == [
            ("bad-\\xff\\xfe", "Invalid topic name b'bad-\\xff\\xfe': no text in UTF-8")
        ]
    numbers = pa.record_batch([pa.array([1.5])], ["name"])
    assert without_bad_texts(numbers, Quarantine()) is numbers  # the source says what is wrong


def test_a_source_with_too_many_bad_rows_is_no_catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quarantine, "MOST_QUARANTINED", 3)
    aside = Quarantine()
    good_names(aside, ["a/b"] * 3)
    with pytest.raises(InvalidCatalogue, match=r"more than 3 rows are no topics; the first: .*a/b"):
        good_names(aside, ["x", "c/d"])


def test_rows_go_to_the_driver_beside_other_results() -> None:
    task = Quarantine()
    assert list(task.results()) == []
    task.add([QuarantinedRow.of("\ud800" + "x" * 5000, "r" * 5000, namespace="n", line=7)])
    (row,) = task.rows
    assert (len(row.name or ""), len(row.reason), row.line) == (1000, 1000, 7)
    driver = Quarantine()
    assert list(driver.take_from([b"{}", *task.results(), b"run"])) == [b"{}", b"run"]
    assert driver.rows == [row]
