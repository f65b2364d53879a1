"""What the parameters of pages ask for."""

from __future__ import annotations

import pytest

from broker_core.listing.pages.page import Page, Position
from broker_core.names import NamespaceName
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.servers.http.api.topics.cursor import cursor_of
from broker_core.servers.http.api.topics.pages import (
    COUNT,
    CURSOR,
    DETAIL,
    LIMIT,
    OFFSET,
    PLAN,
    PageQuestion,
    page_question,
)
from tests.support.topics import NAMESPACE

POSITION = Position("persistent://t/n/a", 3)
GIVEN = {each.name: each.default for each in (LIMIT, CURSOR, DETAIL, COUNT, OFFSET, PLAN)}
PLAIN = PageQuestion(None, (), count=False, most=500)


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ({}, PLAIN),
        ({"limit": 10}, PageQuestion(Page(None, 10), (), count=False, most=500)),
        (
            {"limit": 10, "cursor": cursor_of(POSITION)},
            PageQuestion(Page(POSITION, 10), (), count=False, most=500),
        ),
        ({"cursor": cursor_of(POSITION)}, PageQuestion(Page(POSITION, 500), (), count=False, most=500)),
        (
            {"detail": ("partitions",), "count": True},
            PageQuestion(None, ("partitions",), count=True, most=500),
        ),
    ],
)
def test_what_is_asked_for(given: dict[str, object], asked: PageQuestion) -> None:
    assert page_question(GIVEN | given, NAMESPACE, 500) == asked


def test_a_question_with_it() -> None:
    question = ListingRequest(NamespaceName("t", "n"))
    assert PLAIN.is_plain
    assert PLAIN.of(question) is question
    asked = PageQuestion(Page(POSITION, 7), ("partitions",), count=False, most=500)
    assert not asked.is_plain
    assert (asked.of(question).page, asked.of(question).wants) == (asked.page, frozenset({"partitions"}))
    assert asked.first == PageQuestion(Page(None, 500), ("partitions",), count=False, most=500)


def test_words_of_detail() -> None:
    assert DETAIL.read("properties,partitions,properties") == ("partitions", "properties")
    for wrong in ("", "partitions,", "configs", "partitions, topic_id"):
        with pytest.raises(
            ValueError, match="must be of partitions, topic_id, properties with commas between"
        ):
            DETAIL.read(wrong)
