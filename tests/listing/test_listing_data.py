"""Data of listings: built, encoded and mapped ones are equal, and mapped ones compute columns on demand."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from broker_core import Listing, Mode
from broker_core.errors import InvalidListing
from broker_core.listing.listing import data_of
from broker_core.listing.listing_data import ListingData
from broker_core.listing.listing_hash import topics_hash
from broker_core.patterns import compile_pattern
from tests.support.chunks import first_keys_read, tiny_chunks
from tests.support.mapped import mapped
from tests.support.topics import NAMESPACE, assert_listing

PATTERNS = ["t/n/.*", "t/n/n1.*", ".*7", "t/n/n12", "t/n/(n1|n2).*-partition-.*", ".*é.*", "(?i)T/N/N3.*"]

#: Bytes of a chunk of the second round.
TINY_CHUNK = 4000


def names_of(count: int, seed: int = 0) -> list[str]:
    pick = random.Random(seed)
    domains = ["persistent", "persistent", "non-persistent"]
    tails = ["", "", "é", "😀", "-partition-3", "x" * 120]
    names: list[str] = Listing.from_names(
        NAMESPACE,
        Mode.ALL,
        [f"{pick.choice(domains)}://t/n/n{number}{pick.choice(tails)}" for number in range(count)],
    ).names.to_pylist()
    return names


def read_only(column: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    _, offsets, data = column.buffers()
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(column), [None, mapped(offsets.to_pybytes()), mapped(data.to_pybytes())]
    )


def both(count: int) -> tuple[Listing, Listing, list[str]]:
    names = names_of(count)
    built = Listing.from_names(NAMESPACE, Mode.ALL, names)
    return (
        built,
        Listing.from_encoded(NAMESPACE, Mode.ALL, read_only(built.all().column()), mapped=True),
        names,
    )


def test_an_encoded_listing_says_what_a_built_one_says() -> None:
    built, encoded, names = both(500)
    assert data_of(encoded).column_bytes == 0
    pick = np.array(sorted(random.Random(1).sample(range(500), 60)))
    for one in (encoded.all(), encoded.range(20, 333), encoded.rows(pick)):
        other = built.rows(one.row_array)
        assert one.names.equals(other.names)
        assert one.topics_hash == other.topics_hash
        assert bytes(one.body()) == bytes(other.body())
    assert not data_of(encoded).forms_are_made
    assert_listing(encoded, names)
    assert data_of(encoded).forms_are_made
    assert data_of(encoded).column_bytes > 0


def test_a_claim_about_some_rows_makes_no_columns_of_all() -> None:
    _, encoded, names = both(5000)
    for rows in (np.arange(300, 900), np.arange(0, 5000, 40)):
        for text in PATTERNS:
            pattern = compile_pattern(text)
            found = encoded.rows(rows).matching(pattern)
            assert found.names.to_pylist() == [names[row] for row in rows if pattern.matches(names[row])]
    assert not data_of(encoded).forms_are_made


def test_a_claim_about_all_of_a_mapped_listing_makes_none_either() -> None:
    _, encoded, names = both(800)
    claim = encoded.all().as_claim()
    for text in PATTERNS:
        pattern = compile_pattern(text)
        wanted = [name for name in names if pattern.matches(name)]
        assert claim.matching(pattern).names.to_pylist() == wanted
        assert encoded.all().known_matching(pattern) is not None
    assert not data_of(encoded).forms_are_made
    with pytest.raises(InvalidListing, match="no topics hash"):
        Listing.from_encoded(NAMESPACE, Mode.ALL, [], topics_hash="nonsense")


def test_what_was_looked_at_is_remembered_for_another_array_of_the_same_rows() -> None:
    listing, _, _ = both(5000)
    pattern = compile_pattern(".*7.*")
    rows = np.arange(0, 5000, 3)
    first = listing.rows(rows)
    assert first.known_matching(pattern) is None
    assert not first.hash_known
    found, hashed = first.matching(pattern), first.topics_hash
    again = listing.rows(rows.astype(np.int64))
    assert again.hash_known
    assert again.topics_hash == hashed
    known = again.known_matching(pattern)
    assert known is not None
    assert known.names.equals(found.names)
    assert listing.rows(rows[1:]).known_matching(pattern) is None
    assert listing.range(4, 90).topics_hash == topics_hash(listing.names.to_pylist()[4:90])
    assert listing.range(4, 90).hash_known


def wrong_at(row: int, count: int = 20_000) -> Listing:
    _, encoded, _ = both(count)
    column = encoded.all().column()
    fields = column.to_pylist()
    fields[row] = fields[row].replace(b"t/n", b"t/m")
    return Listing.from_encoded(NAMESPACE, Mode.ALL, pa.array(fields, pa.large_binary()))


def test_only_what_an_answer_has_is_looked_at() -> None:
    listing = wrong_at(15_000)
    listing.range(0, 4000).check()
    listing.range(14_000, 14_020).check()
    listing.rows(np.array([3, 14_999, 15_001, 19_999])).check()
    bad: list[Any] = [
        listing.range(14_990, 15_010),
        listing.rows([1, 15_000]),
        listing.all(),
        listing.range(9000, 20_000),
    ]
    for some in bad:
        assert not some.is_checked
        for use in (some.check, lambda some=some: some.names, lambda some=some: some.topics_hash):
            with pytest.raises(InvalidListing):
                use()
        assert not some.is_checked
    assert listing.range(0, 4000).is_checked


def test_the_order_is_looked_at_across_stretches() -> None:
    _, encoded, _ = both(9000)
    fields = encoded.all().column().to_pylist()
    fields[4095], fields[4096] = fields[4096], fields[4095]
    listing = Listing.from_encoded(NAMESPACE, Mode.ALL, pa.array(fields, pa.large_binary()))
    with pytest.raises(InvalidListing, match="order of the hash"):
        listing.range(4090, 9000).check()
    with pytest.raises(InvalidListing, match="order of the hash"):
        listing.range(0, 4100).check()


def test_the_order_is_looked_at_across_chunks() -> None:
    _, encoded, _ = both(3000)
    fields = encoded.all().column().to_pylist()
    good = Listing.from_encoded(NAMESPACE, Mode.ALL, pa.array(fields, pa.large_binary()))
    edges = [data_of(good).start(number) for number in range(1, len(data_of(good).chunks))]
    for edge in edges[:: max(len(edges) // 5, 1)]:
        swapped = [*fields]
        swapped[edge - 1], swapped[edge] = swapped[edge], swapped[edge - 1]
        listing = Listing.from_encoded(NAMESPACE, Mode.ALL, pa.array(swapped, pa.large_binary()))
        for some in (listing.all(), listing.range(edge - 1, edge + 1), listing.rows([0, edge - 1, edge])):
            with pytest.raises(InvalidListing):
                some.check()
    good.all().check()
    assert good.all().is_checked


def test_a_change_shares_all_other_chunks() -> None:
    listing = Listing.from_names(
        NAMESPACE, Mode.ALL, [f"persistent://t/n/{number:05}" for number in range(900)]
    )
    chunks = data_of(listing).chunks
    after = listing.with_changes(["persistent://t/n/00500"], ["persistent://t/n/00501x"])
    changed = set(data_of(after).chunks) - set(chunks)
    assert 1 <= len(changed) <= 2
    assert len(set(data_of(after).chunks) & set(chunks)) >= len(chunks) - 2


def test_what_is_known_of_a_listing_is_known_after_a_change() -> None:
    _, encoded, _ = both(3000)
    data = data_of(encoded)
    added = data_of(encoded.with_changes([], ["persistent://t/n/!"]))
    assert not added.is_nearly_hashed
    assert not added.is_believed  # of those chunks alone that it shares, and which are not looked at yet
    encoded.all().check()
    assert encoded.topics_hash == topics_hash(encoded.names.to_pylist())
    assert data.is_believed
    again = data_of(encoded.with_changes([], ["persistent://t/n/!"]))
    assert again.is_believed
    assert again.is_nearly_hashed
    assert again.range_hash(0, again.size) == added.range_hash(0, added.size)


@pytest.mark.parametrize("seed", range(5))
def test_what_is_taken_over_is_what_a_fresh_look_at_all_chunks_says(seed: int) -> None:
    pick = random.Random(seed)
    listing = Listing.from_names(NAMESPACE, Mode.ALL, names_of(400, seed))
    known, _, _ = data_of(listing), listing.topics_hash, data_of(listing).first_keys
    for step in range(30):
        names = listing.names.to_pylist()
        at = pick.randrange(len(names))
        gone = names[at : at + pick.choice([0, 1, 1, 60])] + pick.sample(names, pick.choice([0, 0, 3]))
        more = [
            f"{pick.choice(['persistent', 'non-persistent'])}://t/n/n{pick.randrange(500)}+{step}"
            for _ in range(pick.choice([0, 1, 1, 40]))
        ]
        listing = listing.with_changes(sorted(set(gone)), sorted(set(more)))
        data = data_of(listing)
        fresh = ListingData(data.namespace, data.mode, data.chunks)
        numbers = range(len(data.chunks) + 1)
        assert [data.start(number) for number in numbers] == [fresh.start(number) for number in numbers]
        assert data.size == fresh.size
        assert data.first_keys == fresh.first_keys
        assert data.form_edges == fresh.form_edges
        assert data.is_nearly_hashed
        assert data.range_hash(0, data.size) == fresh.range_hash(0, fresh.size)
        for former in (known, fresh):
            since = set(data.chunks_since(former))
            assert set(data.chunks) - set(former.chunks) <= since <= set(data.chunks)
        assert not set(data.chunks_since(fresh))
        known = data


def test_after_a_change_here_and_there_only_new_chunks_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    with tiny_chunks(600):
        listing = Listing.from_names(NAMESPACE, Mode.ALL, names_of(400, 1))
    former = data_of(listing)
    names, _ = listing.names.to_pylist(), former.first_keys
    assert len(former.chunks) > 20
    looked_at = first_keys_read(monkeypatch)
    with tiny_chunks(600):
        data = data_of(listing.with_changes([names[1], names[-2]], []))
    assert {*looked_at} == {*data.chunks} - {*former.chunks}
    assert data.first_keys == ListingData(data.namespace, data.mode, data.chunks).first_keys


def test_a_change_does_not_make_lies_about_the_order_of_chunks_true() -> None:
    column = both(9000)[1].all().column()
    persistent_ = [field for field in column.to_pylist() if b"non-persistent" not in field]
    others = [field for field in column.to_pylist() if b"non-persistent" in field]

    def lie(*columns: list[bytes]) -> Listing:
        arrays = [pa.array(fields, pa.large_binary()) for fields in columns]
        return Listing.from_encoded(NAMESPACE, Mode.ALL, arrays)

    half = len(persistent_) // 2
    lies = [
        lie(persistent_[:half], persistent_[:half], persistent_[half:]),
        lie(persistent_[half:], persistent_[:half]),
        lie(persistent_, others),
        lie([*others[:-1], b"\x12\x04a\xff\xffz"], persistent_),
    ]
    for listing in lies:
        for removed, added in (
            ([], ["persistent://t/n/!"]),
            (["persistent://t/n/n1"], []),
            ([], ["persistent://t/n/zz"]),
        ):
            with pytest.raises(InvalidListing):
                listing.with_changes(removed, added).all().check()
    good = lie(others, persistent_[:half], persistent_[half:])
    changed = good.with_changes([], ["persistent://t/n/!"])
    assert len(changed.names) == 9001
    assert changed.topics_hash == topics_hash(changed.names.to_pylist())
