"""Checks of a lister's return value: the answer, or an error message for the author."""

from __future__ import annotations

import pytest

from broker_core.access.access import Refused
from broker_core.errors.causes import Cause
from broker_core.plugin_api.listing_result import TopicListingResult
from broker_core.plugins.hooks.check_lister_answer import checked_answer, refusal_of
from tests.support.plugins import asked


def test_each_kind_has_its_word() -> None:
    success = TopicListingResult.success(["persistent://acme/orders/x"])
    unchanged = TopicListingResult.unchanged("0a1b2c3d")
    refused = TopicListingResult.refused("not for you")
    assert checked_answer(None, asked()) == (None, "pass_through")
    assert checked_answer(TopicListingResult.pass_through(), asked()) == (None, "pass_through")
    with_reason = TopicListingResult.pass_through("not mine")
    assert checked_answer(with_reason, asked()) == (with_reason, "pass_through")
    assert checked_answer(success, asked()) == (success, "success")
    assert checked_answer(unchanged, asked(topics_hash="0a1b2c3d")) == (unchanged, "unchanged")
    assert checked_answer(refused, asked()) == (refused, "refused")


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ([], "it returned a list, not a TopicListingResult or None: write"),
        (True, "write `return None` to pass"),
        (TopicListingResult.unchanged("0a1b2c3d"), "the request carries no topics hash"),
    ],
)
def test_what_is_no_answer_says_what_to_write(answer: object, says: str) -> None:
    with pytest.raises((TypeError, ValueError), match=says):
        checked_answer(answer, asked())


def test_a_refusal_that_was_changed_is_no_answer() -> None:
    for other in (None, "no", object()):
        refused = TopicListingResult.refused("not for you")
        object.__setattr__(refused, "refusal", other)
        with pytest.raises(TypeError, match="a refusal whose fields were changed"):
            checked_answer(refused, asked())
    with pytest.raises(AttributeError):
        object.__setattr__(Refused("no"), "cause", "denied")


def test_a_refusal_goes_to_the_client_as_it_is_written() -> None:
    failure = refusal_of("p", TopicListingResult.refused("who are you?", Cause.UNAUTHENTICATED))
    assert (failure.message, failure.cause, failure.plugin) == ("who are you?", Cause.UNAUTHENTICATED, "p")
    assert (failure.reason, failure.counts) == ("refused", False)
