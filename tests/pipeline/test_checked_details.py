from __future__ import annotations

import pyarrow as pa
import pytest

from broker_core import Details, Listing, Mode
from broker_core.errors import ListingFailed
from broker_core.pipeline.checked_details import check_details, check_listed_details

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
