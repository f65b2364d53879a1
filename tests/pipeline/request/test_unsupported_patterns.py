"""The pattern that the core applies, by the rules that the fast and the slow path share."""

from __future__ import annotations

from dataclasses import replace

import pytest

from broker_core.errors import Cause, ListingFailed
from broker_core.patterns import compile_pattern
from broker_core.pipeline import PipelineOptions
from broker_core.pipeline.request.unsupported_patterns import applied_pattern, listing_plan
from broker_core.settings import PatternsSettings
from tests.support.pipelines import request


def test_the_pattern_that_the_core_applies() -> None:
    supported, refused = request("t/n/a.*"), request("(?!x)")
    usual = PipelineOptions()
    assert applied_pattern(request(), usual) is None
    assert applied_pattern(supported, usual) is supported.pattern
    assert applied_pattern(refused, usual) is None
    assert applied_pattern(supported, PipelineOptions(PatternsSettings(evaluate=False))) is None
    with pytest.raises(ListingFailed, match="Unsupported topics pattern") as raised:
        applied_pattern(refused, PipelineOptions(PatternsSettings(unsupported="error")))
    assert raised.value.cause is Cause.PATTERN


def test_the_plan_says_how_the_pattern_is_applied() -> None:
    literal, refused = request("t/n/a"), request("(?!x)")
    assert listing_plan(request(), None) == "none"
    assert listing_plan(literal, literal.pattern) == "literal"
    assert listing_plan(refused, None) == "unsupported"
    assert listing_plan(literal, literal.pattern, filtered_by_lister=True) == "lister"


def test_a_pattern_is_long_that_is_never_compiled() -> None:
    options = PipelineOptions(PatternsSettings(max_length=8))
    ask = request("t/n/.*")
    assert ask.pattern is not None
    assert not options.is_long(request())
    assert not options.is_long(ask)
    assert not options.is_long(replace(ask, pattern=compile_pattern("x" * 8)))
    assert options.is_long(replace(ask, pattern=compile_pattern("x" * 9)))
