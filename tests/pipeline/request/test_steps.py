"""The rules that the fast and the slow path share."""

from __future__ import annotations

import pytest

from broker_core import Page
from broker_core.errors import Cause, ListingFailed
from broker_core.listing.listing import Listing
from broker_core.memory.permits import Permits
from broker_core.names import Mode
from broker_core.pipeline import PipelineOptions
from broker_core.pipeline.request import steps
from broker_core.settings import LimitsSettings, PatternsSettings
from tests.support.pipelines import FEW, NAMESPACE, request


def listing(names: list[str]) -> Listing:
    return Listing.from_names(NAMESPACE, Mode.PERSISTENT, names)


def test_there_is_a_hash_of_all_names_and_of_nothing_but_names() -> None:
    assert steps.has_hash(request())
    assert not steps.has_hash(request(page=Page(limit=1)))
    assert not steps.has_hash(request(wants=frozenset({"partitions"})))


def test_whoever_must_not_compare_gets_no_hash() -> None:
    asked = request(topics_hash="00000000")
    assert steps.is_unchanged(asked, "00000000")
    hidden = steps.without_hash(asked)
    assert hidden.topics_hash is None
    assert not steps.is_unchanged(hidden, "00000000")
    assert steps.without_hash(hidden) is hidden


def test_the_pattern_that_the_core_applies() -> None:
    supported, refused = request("t/n/a.*"), request("(?!x)")
    usual = PipelineOptions()
    assert steps.applied_pattern(request(), usual) is None
    assert steps.applied_pattern(supported, usual) is supported.pattern
    assert steps.applied_pattern(refused, usual) is None
    assert steps.applied_pattern(supported, PipelineOptions(PatternsSettings(evaluate=False))) is None
    with pytest.raises(ListingFailed, match="Unsupported topics pattern") as raised:
        steps.applied_pattern(refused, PipelineOptions(PatternsSettings(unsupported="error")))
    assert raised.value.cause is Cause.PATTERN


def test_the_plan_says_how_the_pattern_is_applied() -> None:
    literal, refused = request("t/n/a"), request("(?!x)")
    assert steps.listing_plan(request(), None) == "none"
    assert steps.listing_plan(literal, literal.pattern) == "literal"
    assert steps.listing_plan(refused, None) == "unsupported"
    assert steps.listing_plan(literal, literal.pattern, filtered_by_lister=True) == "lister"


def test_what_is_taken_before_anything_is_known() -> None:
    assert steps.unknown_size(Permits(LimitsSettings(heap_permits=4000))) == 1000
    selection = listing(FEW).all()
    assert steps.names_bytes(selection) == selection.fields_size + 160
