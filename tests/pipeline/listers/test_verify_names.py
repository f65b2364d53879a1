"""Names from a lister are trusted only as far as they were checked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from broker_core.errors import InvalidListing, ListingFailed
from broker_core.listing.listing import Listing, Selection
from broker_core.listing.listing_hash import topics_hash
from broker_core.names import Mode, NamespaceName
from broker_core.patterns import TopicsPattern, compile_pattern
from broker_core.pipeline.answer import known_selection
from broker_core.pipeline.listers.accept_answer import (
    SAMPLE_ALL,
    claim_sample,
    own_hash,
)
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.plugin_api.listing_result import TopicListingResult

NAMESPACE = NamespaceName("t", "n")
REQUEST = ListingRequest(NAMESPACE, Mode.ALL)
NAMES = ["persistent://t/n/a", "persistent://t/n/b", "non-persistent://t/n/c"]


def listing(names: list[str], mode: Mode = Mode.ALL) -> Listing:
    return Listing.from_names(NAMESPACE, mode, names)


def success(topics: Any, **fields: Any) -> TopicListingResult:
    return TopicListingResult.success(topics, **fields)


def test_a_listing_is_known_as_it_is() -> None:
    whole = listing(NAMES)
    selection = known_selection(success(whole), REQUEST)
    assert selection is not None
    assert selection.listing is whole
    assert len(selection) == 3
    part = whole.rows(whole.positions(pa.array(NAMES[:1], pa.large_string())))
    assert known_selection(success(part), REQUEST) is part
    assert known_selection(success(NAMES), REQUEST) is None


def test_a_listing_of_one_domain_is_a_part_of_all() -> None:
    part = listing(NAMES[:2], Mode.PERSISTENT)
    selection = known_selection(success(part), REQUEST)
    assert selection is not None
    assert selection.names.to_pylist() == NAMES[:2]


@pytest.mark.parametrize(
    ("namespace", "mode"), [("t/other", Mode.ALL), ("t/n", Mode.PERSISTENT), ("t/other", Mode.PERSISTENT)]
)
def test_a_listing_of_something_else_is_an_error(namespace: str, mode: Mode) -> None:
    request = ListingRequest(NamespaceName.parse(namespace), mode)
    with pytest.raises(ListingFailed, match=f"returned a listing of t/n ALL to a question about {namespace}"):
        known_selection(success(listing(NAMES)), request)


def test_names_are_built_into_a_listing() -> None:
    made = Listing.from_names(
        REQUEST.namespace, REQUEST.mode, pa.array([*NAMES, NAMES[0]], pa.large_string())
    )
    assert sorted(made.names.to_pylist()) == sorted(NAMES)
    with pytest.raises(InvalidListing, match="persistent://t/other/x"):
        Listing.from_names(
            REQUEST.namespace, REQUEST.mode, pa.array(["persistent://t/other/x"], pa.large_string())
        )


def test_the_hash_of_a_lister_is_used_where_it_is_of_these_topics() -> None:
    selection = listing(NAMES).all()
    given = topics_hash(NAMES)
    assert own_hash(success(NAMES, topics_hash=given), selection, 3) == given
    assert own_hash(success(NAMES), selection, 3) is None
    assert (
        own_hash(success(NAMES, topics_hash=given), selection, 4) is None
    )  # one collapsed, or was a system topic


@pytest.mark.parametrize("bad", ["", "xyz", "ABCDEF01", "0123456", "012345678", "0123456g", "é" * 8])
def test_a_hash_that_is_none_is_an_error(bad: str) -> None:
    with pytest.raises(ListingFailed, match="returned a topics hash that is none"):
        own_hash(success(NAMES, topics_hash=bad), listing(NAMES).all(), 3)


ODD = 7_780  # the one name that does not match, where a sample does not look


def claim_holds(selection: Selection, pattern: TopicsPattern, policy: str) -> bool:
    sample = claim_sample(selection, pattern, policy)
    return sample is None or len(sample.matching(pattern)) == len(sample)


@pytest.mark.parametrize(
    ("policy", "count", "liar", "holds"),
    [
        ("always", 100, True, False),
        ("always", 100, False, True),
        ("always", SAMPLE_ALL + 5000, True, False),
        ("sample", 100, True, False),
        ("sample", SAMPLE_ALL, True, False),
        ("sample", SAMPLE_ALL + 5000, True, True),  # one of 15,000 is easily missed
        ("never", 100, True, True),
    ],
)
def test_what_is_looked_at(policy: str, count: int, *, liar: bool, holds: bool) -> None:
    odd = ODD if count > ODD else 50
    names = [f"persistent://t/n/m-{number:06d}" for number in range(count)]
    if liar:
        names[odd] = f"persistent://t/n/m-{odd:06d}-odd"
    pattern = compile_pattern(r"persistent://t/n/m-\d+")
    assert claim_holds(listing(names).all(), pattern, policy) is holds


def test_a_sample_of_many_finds_a_lie_about_most() -> None:
    names = [f"persistent://t/n/m-{number:06d}{'' if number % 3 else 'x'}" for number in range(20_000)]
    pattern = compile_pattern(r"persistent://t/n/m-\d+")
    assert not claim_holds(listing(names).all(), pattern, "sample")


def test_what_the_core_filtered_is_believed() -> None:
    pattern = compile_pattern("persistent://t/n/a.*")
    selection = listing(NAMES).all().matching(pattern)
    assert selection.pattern == pattern.text
    assert claim_holds(selection, pattern, "always")
    other = compile_pattern("persistent://t/n/b.*")
    assert not claim_holds(selection, other, "always")


def test_an_empty_answer_is_always_filtered() -> None:
    pattern = compile_pattern("persistent://t/n/a.*")
    for policy in ("always", "sample", "never"):
        assert claim_holds(listing([]).all(), pattern, policy)


def test_requests_are_values() -> None:
    assert replace(REQUEST, mode=Mode.PERSISTENT).namespace == NAMESPACE
