from __future__ import annotations

import pyarrow as pa
import pytest

from broker_core import Details, Listing, Mode
from broker_core.errors import ListingFailed
from broker_core.patterns import compile_pattern
from broker_core.pipeline.listers.verify_answer_claims import check_details, check_listed_details

BASE = "persistent://t/n/"
LISTED = Listing.from_names("t/n", Mode.ALL, [f"{BASE}a-partition-0", f"{BASE}a-partition-1", f"non-{BASE}b"])
WANTS = frozenset({"partitions"})


def test_details_are_of_the_topics_that_were_listed() -> None:
    check_listed_details(Details.of([f"non-{BASE}b", f"{BASE}a"], partitions=[0, 5]), WANTS, LISTED.all())
    check_listed_details(Details.of([]), WANTS, LISTED.all())
    for other in (f"{BASE}b", f"{BASE}a-partition-0", "b", ""):
        with pytest.raises(ListingFailed, match="gave details of") as raised:
            check_listed_details(Details.of([other], partitions=[1]), WANTS, LISTED.all())
        assert raised.value.message == f"gave details of {other!r}, which it did not list"


def test_details_are_of_the_topics_that_were_asked_about() -> None:
    names = pa.array([f"{BASE}a"], pa.large_string())
    check_details(Details.of([f"{BASE}a"], partitions=[1]), WANTS, names)
    check_details(Details.of([]), WANTS, names)
    with pytest.raises(ListingFailed, match="'persistent://t/n/b', which was not asked about"):
        check_details(Details.of([f"{BASE}b"], partitions=[1]), WANTS, names)


def test_a_wrong_value_is_the_plugins_failure() -> None:
    with pytest.raises(ListingFailed, match="gave wrong details: a negative number of partitions"):
        check_details(Details.of([f"{BASE}a"], partitions=[-1]), WANTS, None)


def test_details_of_what_the_pattern_takes_away_are_dropped() -> None:
    """A plugin gives the details of all that it read, and the pattern filters its names alone."""
    topics = [f"{BASE}a", f"{BASE}other", f"{BASE}__change_events"]
    given = Details.of(topics, partitions=[5, 2, 1])
    listed = LISTED.matching(compile_pattern("t/n/a"))
    kept = check_listed_details(given, WANTS, listed, compile_pattern("t/n/a"))
    assert kept.topics.to_pylist() == [f"{BASE}a"]
    for pattern in (None, compile_pattern("t/n/.*"), compile_pattern("t/n/(?!x).*")):
        with pytest.raises(ListingFailed, match="which it did not list"):
            check_listed_details(given, WANTS, listed, pattern)
