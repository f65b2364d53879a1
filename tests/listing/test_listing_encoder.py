"""A listing encoded page by page is the listing that is built of the same names at once."""

from __future__ import annotations

import random

import pytest

from broker_core.errors import InvalidListing
from broker_core.listing.chunks.block_hashes import crc_of_fields
from broker_core.listing.listing import Listing, data_of
from broker_core.listing.listing_encoder import ListingEncoder
from broker_core.names import NON_PERSISTENT, PERSISTENT, Mode, NamespaceName
from broker_core.patterns import compile_pattern
from tests.support.examples import examples
from tests.support.one_test import in_one_test

NAMESPACE = NamespaceName.parse("acme/orders")
PARTS = ["a", "b", "-", "é", "\ue000", "😀", "\n", "__", "x" * 60, "y" * 130, "-partition-3", ","]
SYSTEM = ["__change_events", "a__transaction_pending_ack", "__change_events-partition-0"]

#: Bytes of a chunk of the second round.
TINY_CHUNK = 400


def page(names: list[str]) -> bytes:
    return "".join(f"/{name}" for name in names).encode()


def names_drawn(rng: random.Random, count: int) -> list[str]:
    drawn = ["".join(rng.choices(PARTS, k=rng.randint(1, 4))) for _ in range(count)]
    return drawn + rng.sample(SYSTEM, rng.randint(0, 3))


def same(encoded: Listing, wanted: Listing) -> None:
    assert encoded.topics_hash == wanted.topics_hash
    assert bytes(encoded.all().body()) == bytes(wanted.all().body())
    assert encoded.names.equals(wanted.names)
    for text in ("acme/orders/.*a.*", "acme/orders/n.*"):
        found, expected = (one.matching(compile_pattern(text)) for one in (encoded, wanted))
        assert found.names.equals(expected.names)
    assert len(encoded) == len(wanted)
    for chunk in data_of(encoded).chunks:
        assert chunk.crc == crc_of_fields(chunk.column(0, chunk.size))


@in_one_test("seed", range(examples(10)))
@in_one_test("mode", list(Mode))
def test_pages_in_any_order(mode: Mode, seed: int) -> None:
    rng = random.Random(seed)
    encoder = ListingEncoder(NAMESPACE, mode)
    full = []
    for _ in range(rng.randint(0, 4)):
        domain, names = rng.choice([PERSISTENT, NON_PERSISTENT]), names_drawn(rng, rng.choice([1, 3, 50]))
        counted = encoder.add(domain, page(names))
        assert counted == (len(names) if mode.lists(domain) else 0)
        full += [f"{domain}://{NAMESPACE}/{name}" for name in names if mode.lists(domain)]
    same(encoder.finish(), Listing.from_names(NAMESPACE, mode, full))


@pytest.mark.parametrize("shortest", [1, 100, 120, 16_340], ids=str)
def test_pages_in_order_with_lengths_of_every_width(shortest: int) -> None:
    names = sorted(f"{index:04d}" + "n" * (shortest + index % 40) for index in range(400))
    encoder = ListingEncoder(NAMESPACE, Mode.PERSISTENT)
    for start in range(0, 400, 150):
        encoder.add(PERSISTENT, page(names[start : start + 150]))
    assert encoder.nbytes > sum(map(len, names))
    wanted = Listing.from_names(NAMESPACE, Mode.PERSISTENT, [f"persistent://{NAMESPACE}/{n}" for n in names])
    same(encoder.finish(), wanted)


def test_what_the_core_asks_a_listing_works_on_an_encoded_one() -> None:
    names = [f"n{index}" for index in range(100)]
    encoder = ListingEncoder(NAMESPACE, Mode.ALL)
    encoder.add(NON_PERSISTENT, page(["n5", "n7\n"]))
    encoder.add(PERSISTENT, page(names))
    listing = encoder.finish()
    held = sum(chunk.fields_size + chunk.field_offsets.nbytes for chunk in data_of(listing).chunks)
    assert data_of(listing).column_bytes == held
    found = listing.matching(compile_pattern("acme/orders/n5.*"))
    assert found.names.to_pylist()[:2] == ["non-persistent://acme/orders/n5", "persistent://acme/orders/n5"]
    assert data_of(listing).chunks[0].has_newline
    with pytest.raises(AttributeError):
        _ = listing.nothing  # type: ignore[attr-defined]


@pytest.mark.parametrize("wrong", [b"a/b", b"/a//b", b"/", b"/a\0b", b"/" + b"x" * 40_000], ids=range(5))
def test_names_that_are_none(wrong: bytes) -> None:
    with pytest.raises(InvalidListing):
        ListingEncoder(NAMESPACE, Mode.PERSISTENT).add(PERSISTENT, wrong)


def test_the_topics_of_transactions_are_hidden_in_their_own_namespace() -> None:
    encoder = ListingEncoder(NamespaceName.parse("pulsar/system"), Mode.PERSISTENT)
    encoder.add(PERSISTENT, page(["transaction_coordinator_assign-partition-0", "x"]))
    assert encoder.finish().names.to_pylist() == ["persistent://pulsar/system/x"]
