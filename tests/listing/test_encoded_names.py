"""Names in bulk: checked, in the order of the hash, encoded as they are sent, hashed as the answer is."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from broker_core import EncodedNames, Listing, Mode
from broker_core.errors import InvalidListing
from broker_core.listing.listing_hash import crc_text, topics_hash, utf16_key
from broker_core.patterns import compile_pattern
from tests.support.examples import examples

NAMESPACE = "acme/orders"
PARTS = ["a", "b", "-", "é", "\ue000", "😀", "__", "x" * 60, "y" * 130, "-partition-3", ","]


def drawn(seed: int, count: int) -> list[str]:
    pick = random.Random(seed)
    return ["".join(pick.choices(PARTS, k=pick.randint(1, 4))) for _ in range(count)]


@pytest.mark.parametrize("domain", ["persistent", "non-persistent"])
@pytest.mark.parametrize("seed", range(examples(5)))
def test_names_are_those_of_a_listing(seed: int, domain: str) -> None:
    names = [*drawn(seed, 60), "__change_events", "__change_events-partition-2"]
    encoded = EncodedNames.of(NAMESPACE, domain, names)
    full = [f"{domain}://{NAMESPACE}/{name}" for name in names]
    listing = Listing.from_names(NAMESPACE, Mode.ALL, full)
    assert [
        f"{domain}://{NAMESPACE}/{name}" for name in encoded.names.to_pylist()
    ] == listing.names.to_pylist()
    assert b"".join(encoded.fields.to_pylist()) == bytes(listing.all().body())
    batches = list(listing.batches("matched", "field", rows=7))
    assert encoded.matched.to_pylist() == [form for batch in batches for form in batch["matched"].to_pylist()]
    crc, size = encoded.crc((0, len(encoded)))
    assert crc_text(crc) == listing.topics_hash
    assert size == int(encoded.text_offsets[-1]) - 1
    again = EncodedNames.decode(NAMESPACE, domain, encoded.fields)
    assert again.names.equals(encoded.names)
    assert EncodedNames.decode(NAMESPACE, domain, encoded.fields, checked=True).names.equals(encoded.names)
    for text in (".*", "acme/orders/a.*", ".*-partition-3", ".*é.*", "acme/orders/a"):
        pattern = compile_pattern(text)
        picked = encoded.matching(pattern)
        rows = np.arange(*picked) if isinstance(picked, tuple) else picked
        assert np.array_equal(rows, listing.matching(pattern).row_array)
        assert crc_text(encoded.crc(rows)[0]) == listing.matching(pattern).topics_hash
    rows = np.array([4, 0, 4])
    assert encoded.matched_at(rows).to_pylist() == encoded.matched.take(pa.array(rows)).to_pylist()
    part = encoded.slice(3, 9)
    assert part.names.to_pylist() == encoded.names.to_pylist()[3:9]
    assert crc_text(part.crc((0, 6))[0]) == topics_hash(
        f"{domain}://{NAMESPACE}/{n}" for n in part.names.to_pylist()
    )


@pytest.mark.parametrize(
    "names", [["b", "a"], ["a", "a"], ["a", "__change_events"], ["a", "b/c"], ["a", ""], ["😀", "a"]], ids=str
)
def test_what_is_said_to_be_in_order_must_be(names: list[str]) -> None:
    with pytest.raises(InvalidListing):
        EncodedNames.of(NAMESPACE, "persistent", names, ordered=True)


@pytest.mark.parametrize(
    ("names", "why"),
    [(["b", "a"], "are not in the order of the hash"), (["__change_events", "a"], "are system topics")],
)
def test_why_it_is_no_order_is_said(names: list[str], why: str) -> None:
    with pytest.raises(InvalidListing, match=f"the persistent names of {NAMESPACE} {why}"):
        EncodedNames.of(NAMESPACE, "persistent", names, ordered=True)


def test_what_is_no_encoded_name_is_refused() -> None:
    good = EncodedNames.of(NAMESPACE, "persistent", ["a", "b", "c"])
    fields = good.fields.to_pylist()
    other = EncodedNames.of("acme/other", "persistent", ["a"]).fields.to_pylist()
    bad: list[list[Any]] = [
        [fields[1], fields[0]],
        [fields[0], fields[0]],
        [fields[0], other[0]],
        [fields[0], fields[1][:-1]],
        [fields[0], fields[1][:-1] + b"\xff"],
        [fields[0], None],
        [b"\x12\x7f" + fields[0][2:]],
    ]
    for column in bad:
        with pytest.raises(InvalidListing):
            EncodedNames.decode(NAMESPACE, "persistent", pa.array(column, pa.large_binary()))
    with pytest.raises(InvalidListing):
        EncodedNames.decode(NAMESPACE, "non-persistent", good.fields)
    with pytest.raises(InvalidListing, match="'queue' is no domain"):
        EncodedNames.of(NAMESPACE, "queue", ["a"])


def test_the_bytes_of_all_columns_that_are_there_count() -> None:
    names = EncodedNames.of(NAMESPACE, "persistent", ["a", "b"])
    made = int(names.fields.nbytes) + int(names.names.nbytes)
    assert names.nbytes == made
    matched = int(names.matched.nbytes)  # made now, and kept
    assert names.nbytes == made + matched > made


def test_rows_outside_are_refused() -> None:
    names = EncodedNames.of(NAMESPACE, "persistent", ["a", "b"])
    with pytest.raises(IndexError):
        names.crc((0, 3))
    with pytest.raises(IndexError):
        names.slice(1, 0)
    assert names.crc((1, 1)) == (0, 0)


def test_keys_sort_as_the_hash_does_and_lead_back() -> None:
    names = list(dict.fromkeys(drawn(5, 200)))
    keys = EncodedNames.sort_key(EncodedNames.check(names))
    order = EncodedNames.sorted_rows(keys)
    assert [names[row] for row in order] == sorted(names, key=utf16_key)
    assert EncodedNames.names_of_key(keys).to_pylist() == names
    hidden = EncodedNames.hidden(
        NAMESPACE, "persistent", pa.array(["a", "__change_events"], pa.large_string())
    )
    assert hidden is not None
    assert hidden.to_pylist() == [False, True]


def test_many_patterns_at_once() -> None:
    encoded = EncodedNames.of(NAMESPACE, "persistent", drawn(7, 300))
    patterns = [compile_pattern(text) for text in (".*", ".*a", ".*b-.*", "acme/orders/x.*")]
    for index, picked in encoded.matching_each(patterns):
        alone = encoded.matching(patterns[index])
        assert encoded.crc(picked) == encoded.crc(alone)


def test_the_crcs_of_parts_make_that_of_the_whole() -> None:
    whole = EncodedNames.of("t/n", "persistent", ["a", "b-partition-1", "😀", "\ue000", "x" * 200])
    parts = [whole.crc((low, low + 1)) for low in range(len(whole))]
    crcs, sizes = EncodedNames.joined_crcs(
        np.array([crc for crc, _ in parts], np.uint32),
        np.array([size for _, size in parts]),
        np.array([0, 2]),
    )
    assert (int(crcs[0]), int(sizes[0])) == whole.crc((0, 2))
    assert (int(crcs[1]), int(sizes[1])) == whole.crc((2, len(whole)))
    assert EncodedNames.hash_of_crc(int(crcs[0])) == topics_hash(
        ["persistent://t/n/a", "persistent://t/n/b-partition-1"]
    )
    assert EncodedNames.hash_of_crc(whole.crc((1, 1))[0]) == topics_hash([])


def test_the_crcs_of_many_groups_and_ranges_are_those_of_each() -> None:
    names = EncodedNames.of(NAMESPACE, "persistent", drawn(11, 300)).slice(3, 200)
    groups = [np.array(rows) for rows in ([5], [0, 7, 9], [0, 1, 2], [len(names) - 1], range(len(names)))]
    starts = np.cumsum([0, *(len(group) for group in groups[:-1])])
    crcs, sizes = names.crcs(np.concatenate(groups), starts)
    assert list(zip(crcs.tolist(), sizes.tolist(), strict=True)) == [names.crc(group) for group in groups]
    lows, highs = np.array([0, 5, 7, 0]), np.array([1, 9, len(names), len(names)])
    crcs, sizes = names.crcs_of_ranges(lows, highs)
    found = list(zip(crcs.tolist(), sizes.tolist(), strict=True))
    assert found == [names.crc((low, high)) for low, high in zip(lows.tolist(), highs.tolist(), strict=True)]
    assert [len(column) for column in names.crcs(np.empty(0, np.int64), np.empty(0, np.int64))] == [0, 0]
    nothing = EncodedNames.of(NAMESPACE, "persistent", [])
    assert [len(column) for column in nothing.crcs_of_ranges(starts[:0], starts[:0])] == [0, 0]


def test_changed_names_are_those_of_a_whole_column() -> None:
    names = EncodedNames.of("a/b", "persistent", ["b", "d", "é", "\uffff", "\U00010000"])
    came = EncodedNames.of("a/b", "persistent", ["a", "c", "z"])
    changed = names.with_changes(np.array([1, 3]), came, np.array([0, 1, 2]))
    whole = EncodedNames.of("a/b", "persistent", ["a", "b", "c", "z", "é", "\uffff"])
    assert changed.names.to_pylist() == whole.names.to_pylist()
    assert changed.fields.equals(whole.fields)
    parts = names.parts_with_changes(np.array([1, 3]), came, np.array([0, 1, 2]))
    assert [part.names.to_pylist() for part in parts] == [["a"], ["b"], ["c"], ["z"], ["é"], ["\uffff"]]
    nothing = np.empty(0, np.int64)
    behind = names.with_changes(
        nothing, EncodedNames.of("a/b", "persistent", ["\uffff9"]), np.array([len(names)])
    )
    assert behind.names.to_pylist() == [*names.names.to_pylist(), "\uffff9"]
    for gone, before in ((nothing, np.array([0, 1, 5])), (nothing, np.array([1, 1, 2]))):
        with pytest.raises(InvalidListing, match="not in order"):
            names.with_changes(gone, came, before)
    with pytest.raises(InvalidListing, match="not in order"):  # a name twice
        names.with_changes(nothing, names.slice(0, 1), np.array([1]))
    with pytest.raises(InvalidListing, match="names of a/c"):
        names.with_changes(nothing, EncodedNames.of("a/c", "persistent", ["a"]), np.array([0]))
