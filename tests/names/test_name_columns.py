"""Columns of names: accepted and refused types, and the rules of single names."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.errors import InvalidListing, InvalidName
from broker_core.listing.encoded_names import EncodedNames
from broker_core.listing.listing import Listing
from broker_core.names import (
    DOMAINS,
    MAX_NAME_BYTES,
    PERSISTENT,
    Mode,
    NamespaceName,
    TopicName,
    name_columns,
)
from broker_core.names import system_topics as rules
from broker_core.names.name_columns import (
    as_column,
    check_local_names,
    column_data,
    contains,
    split_full_names,
    system_topic_mask,
    with_ends,
    without_ends,
)
from broker_core.names.partitions import partitioned_local_name
from broker_core.names.system_topics import is_system_topic
from broker_core.names.topic_name import check_local_name
from broker_core.plugin_api.listing_builder import ListingBuilder
from broker_core.plugin_api.listing_request import ListingRequest
from tests.support.topics import NAMESPACE, full_names, local_names

NAMES = ["b", "", "é😀", "a"]


def column(names: list[str]) -> pa.LargeStringArray:
    """A slice in the midst of a column, so that offsets do not begin at 0."""
    return pa.array(["é", *names, "z"], pa.large_string())[1:-1]


def _invalid_utf8(kind: pa.DataType, offsets: Any, data: bytes) -> pa.Array[Any]:
    bounds = pa.py_buffer(np.array([0, len(data)], offsets))
    return pa.Array.from_buffers(kind, 1, [None, bounds, pa.py_buffer(data)])


@pytest.mark.parametrize(
    "given_names",
    [
        NAMES,
        tuple(NAMES),
        [np.str_(name) for name in NAMES],
        pa.array(NAMES),
        pa.array(NAMES, pa.large_string()),
        pa.array(["x", *NAMES, "y"])[1:5],
        pa.array(["x", *NAMES, "y"], pa.large_string())[1:5],
        pa.array(["x", *NAMES], pa.string_view())[1:],
        pa.array(NAMES).dictionary_encode(),
        pa.chunked_array([NAMES[:1], [], NAMES[1:]]),
        pa.chunked_array([NAMES[:1], NAMES[1:]], pa.large_string()),
        pa.chunked_array([NAMES]),
        pa.chunked_array([NAMES[:2], NAMES[2:]]).dictionary_encode(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_any_strings_make_a_column(given_names: Any) -> None:
    made = as_column(given_names)
    assert made.type == pa.large_string()
    assert isinstance(made, pa.LargeStringArray)
    assert made.to_pylist() == NAMES


@pytest.mark.parametrize(
    "nothing", [[], (), pa.array([], pa.string()), pa.nulls(0), pa.chunked_array([], pa.string())]
)
def test_nothing_is_a_column_too(nothing: Any) -> None:
    assert as_column(nothing).to_pylist() == []


@pytest.mark.parametrize(
    ("given_names", "says"),
    [
        (["a", None], "must not be null, but the name at position 1 is"),
        (pa.array(["a", "b", None]), "must not be null, but the name at position 2 is"),
        (pa.array(["a", None])[1:], "position 0"),
        (pa.nulls(2), "position 0"),
        (pa.array(["a", None]).dictionary_encode(), "position 1"),
        (pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", None])), "position 1"),
        (["a", 1], "must be strings, but that at position 1 is of type int"),
        ([b"a"], "must be strings, but that at position 0 is of type bytes: write name.decode()"),
        (["a", b"a"], "that at position 1 is of type bytes"),
        ("abc", "must be a sequence of strings"),
        ([["a"]], "must be strings"),
        ([float("nan")], "must be strings"),
        (["a\ud800"], "lone surrogate"),
        (pa.array([b"a"]), "not a column of binary"),
        (pa.array([1]), "not a column of int64"),
        (pa.array([1]).dictionary_encode(), "not a column of dictionary"),
        (_invalid_utf8(pa.string(), np.int32, b"a\xff"), "UTF-?8"),
        (_invalid_utf8(pa.large_string(), np.int64, b"\xed\xa0\x80"), "UTF-?8"),
        (pa.array([b"\xff" * 20], pa.binary_view()).view(pa.string_view()), "UTF-?8"),
        (pa.chunked_array([pa.array(["a"]), _invalid_utf8(pa.string(), np.int32, b"\xc0\x80")]), "UTF-?8"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_string_is_refused(given_names: Any, says: str) -> None:
    with pytest.raises(InvalidListing, match=says):
        as_column(given_names)


def test_the_data_of_a_slice_is_its_own_part() -> None:
    data, offsets = column_data(column(NAMES))
    values = [bytes(memoryview(data)[low:high]).decode() for low, high in itertools.pairwise(offsets)]
    assert values == NAMES
    data, offsets = column_data(pa.array([], pa.large_string()))
    assert (bytes(data), offsets.tolist()) == (b"", [0])


@given(st.lists(local_names(), max_size=5), st.text(st.sampled_from("ab.*\\né"), min_size=1, max_size=3))
def test_whether_a_column_contains_a_text(names: list[str], literal: str) -> None:
    assert contains(column(names), literal) == (literal in "".join(names))


@given(st.lists(st.one_of(local_names(), st.sampled_from(["", "a/b", "/", "a\0", "\0"])), max_size=6))
def test_local_names_are_checked_as_one_is(names: list[str]) -> None:
    wanted = None
    for name in names:
        try:
            check_local_name(name)
        except InvalidName as error:
            wanted = str(error)
            break
    if wanted is None:
        check_local_names(column(names))
    else:
        with pytest.raises(InvalidName) as caught:
            check_local_names(column(names))
        assert str(caught.value) == wanted


def test_the_length_of_local_names_is_checked() -> None:
    check_local_names(column(["a", "x" * MAX_NAME_BYTES]))
    with pytest.raises(InvalidName, match="32768 bytes"):
        check_local_names(column(["a", "x" * (MAX_NAME_BYTES + 1)]))


@given(
    st.sampled_from(Mode).flatmap(
        lambda mode: st.tuples(st.just(mode), st.lists(full_names(mode), max_size=8))
    )
)
def test_full_names_are_split_by_domain(drawn: tuple[Mode, list[str]]) -> None:
    mode, names = drawn
    split = split_full_names(column(names), NAMESPACE, mode)
    for domain, locals_ in zip(DOMAINS, split, strict=True):
        prefix = f"{domain}://{NAMESPACE}/"
        assert locals_.to_pylist() == [name.removeprefix(prefix) for name in names if name.startswith(prefix)]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("persistent://t/other/a", "'persistent://t/other/a' is not in namespace t/n"),
        ("persistent://t/n2/a", "is not in namespace t/n"),
        ("persistent://T/n/a", "is not in namespace t/n"),
        ("non-persistent://t/n/a", "does not belong into a listing of mode PERSISTENT"),
        ("t/n/a", "expected domain://"),
        ("", "expected domain://"),
        ("persistent://t/n", "expected domain://"),
        ("persistent://t/n/", "the local name is empty"),
        ("persistent://t/n/a/b", "no '/'"),
        ("persistent://t/n/a\0", "no NUL"),
        ("topic://t/n/a", "Invalid topic domain"),
        ("persistent://t/n/" + "x" * (MAX_NAME_BYTES + 1), "bytes, at most"),
        ("nonsense" * 10_000, "expected domain://"),
    ],
)
@pytest.mark.parametrize("before", [[], ["persistent://t/n/fine"]], ids=["first", "later"])
def test_one_foreign_name_is_an_error_that_shows_it(name: str, says: str, before: list[str]) -> None:
    with pytest.raises(InvalidListing, match=says) as caught:
        split_full_names(column([*before, name]), NAMESPACE, Mode.PERSISTENT)
    assert len(str(caught.value)) < 1000


def test_a_name_of_the_wrong_mode_is_an_error_whichever_it_is() -> None:
    with pytest.raises(InvalidListing, match="mode NON_PERSISTENT"):
        split_full_names(column(["persistent://t/n/a"]), NAMESPACE, Mode.NON_PERSISTENT)
    with pytest.raises(InvalidListing, match="mode NON_PERSISTENT"):
        split_full_names(
            column(["non-persistent://t/n/a", "persistent://t/n/a"]), NAMESPACE, Mode.NON_PERSISTENT
        )


SYSTEM = [
    *("__change_events", "x__change_events", "__change_eventsx", "a__transaction_pending_ack", "__"),
    *("transaction_coordinator_assign", "transaction_coordinator_assign-partition-0", "__transaction_log_1"),
    *("__transaction_buffer_snapshot", "__transaction_buffer_snapshot_indexes", "__transaction_log", "plain"),
]


@pytest.mark.parametrize("namespace", ["t/n", "pulsar/system", "pulsar/system2"])
@pytest.mark.parametrize("domain", DOMAINS)
def test_system_topics_are_seen_as_one_is(namespace: str, domain: str) -> None:
    where = NamespaceName.parse(namespace)
    for names in (SYSTEM, SYSTEM[:1], ["plain"], []):
        mask = system_topic_mask(column([partitioned_local_name(name) for name in names]), where, domain)
        expected = [is_system_topic(domain, where, name) for name in names]
        assert (mask is not None) == any(expected)
        if mask is not None:
            assert mask.to_pylist() == expected


@given(st.lists(local_names(), max_size=6))
def test_system_topics_of_any_names(names: list[str]) -> None:
    mask = system_topic_mask(column([partitioned_local_name(name) for name in names]), NAMESPACE, PERSISTENT)
    expected = [is_system_topic(PERSISTENT, NAMESPACE, name) for name in names]
    assert (mask.to_pylist() if mask is not None else [False] * len(names)) == expected


@given(st.lists(local_names(), max_size=6), st.sampled_from(["", "é/"]), st.sampled_from(["", ",", "😀"]))
def test_ends_are_put_on_and_taken_off(names: list[str], prefix: str, suffix: str) -> None:
    wrapped = with_ends(column(names), prefix, suffix)
    assert wrapped.to_pylist() == [f"{prefix}{name}{suffix}" for name in names]
    assert wrapped.type == pa.large_string()
    assert without_ends(wrapped, len(prefix.encode()), len(suffix.encode())).to_pylist() == names


@pytest.mark.parametrize("count", [0, 1, 4999, 5000, 5001, 12_345])
@pytest.mark.parametrize("kind", [list, tuple])
def test_a_column_of_strings_is_made_in_slices(count: int, kind: type) -> None:
    names = [f"persistent://t/n/é😀-{number}" for number in range(count)]
    column = as_column(kind(names))
    assert column.type == pa.large_string()
    assert column.to_pylist() == names


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (b"x", "position 11000 is of type bytes"),
        (7, "position 11000 is of type int"),
        ("\ud800", "lone surrogate"),
        (None, "position 11000"),
    ],
)
def test_a_bad_name_far_behind_is_found(bad: object, message: str) -> None:
    names: list[object] = [f"persistent://t/n/{number}" for number in range(12_000)]
    names[11_000] = bad
    with pytest.raises(InvalidListing, match=message):
        as_column(names)


def test_others_have_the_interpreter_between_the_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    passed: list[None] = []
    monkeypatch.setattr(name_columns, "pass_lock_on", lambda: passed.append(None))
    names = [f"persistent://t/n/{number}" for number in range(40_000)]
    assert as_column(names).to_pylist() == names
    assert len(passed) == 8  # slices


@pytest.mark.parametrize(
    ("list_of", "change", "system"),
    [
        ("SYSTEM_LOCAL_NAMES", lambda known: known | {"ledger"}, ["ledger", "ledger-partition-3"]),
        ("SYSTEM_LOCAL_NAMES", lambda known: known | {"__ledger"}, ["__ledger"]),
        ("SYSTEM_LOCAL_SUFFIX", lambda _: ".internal", ["x.internal", ".internal-partition-0"]),
        ("SYSTEM_NAME_PREFIXES", lambda known: (*known, f"persistent://{NAMESPACE}/own-"), ["own-", "own-x"]),
        ("SYSTEM_NAME_PREFIXES", lambda known: (*known, "persistent://"), ["anything"]),
    ],
)
def test_a_name_that_becomes_a_system_topic_is_one_everywhere(
    list_of: str, change: Callable[[Any], Any], system: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    full = [f"persistent://{NAMESPACE}/{local}" for local in system]
    assert Listing.from_names(NAMESPACE, Mode.PERSISTENT, full).names.to_pylist() == sorted(full)
    monkeypatch.setattr(rules, list_of, change(getattr(rules, list_of)))
    assert all(TopicName.parse(name).is_system for name in full)
    assert len(Listing.from_names(NAMESPACE, Mode.PERSISTENT, full)) == 0
    builder = ListingBuilder(ListingRequest(NAMESPACE))
    builder.add(full)
    assert len(builder.finish()) == 0
    locals_ = pa.array(system, pa.large_string())
    assert len(EncodedNames.of(NAMESPACE, PERSISTENT, locals_)) == 0
