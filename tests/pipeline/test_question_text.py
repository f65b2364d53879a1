"""A question as text."""

from __future__ import annotations

from broker_core.listing.pages.page import Page
from broker_core.pipeline import QuestionText
from tests.support.pipelines import request


def test_of_a_request() -> None:
    question = QuestionText.of(request("t/n/0.*", properties={"a": "b"}, page=Page(None, 3)))
    assert (question.namespace, question.mode, question.pattern) == ("t/n", "PERSISTENT", "t/n/0.*")
    assert list(question.properties) == [("a", "b")]
    assert question.page_limit == 3


def test_a_pattern_that_the_request_does_not_have_yet() -> None:
    question = QuestionText.of(request(), "t/n/1.*")
    assert (question.pattern, question.page_limit) == ("t/n/1.*", None)
