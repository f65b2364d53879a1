"""One question to a lister, and the check of its return value: the answer, or an error message for the author."""

from __future__ import annotations

from typing import Any

import pytest

from broker_core.access.asker import Refused
from broker_core.plugin_api.listing_result import TopicListingResult
from broker_core.plugins import PluginFailed
from broker_core.plugins.hooks.listers import checked_answer
from tests.support.plugin_chains import dispatcher
from tests.support.plugins import PluginOf, asked


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


class _Mine(TopicListingResult):
    """May have changed what it likes."""


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (["persistent://acme/orders/a"], "a list, .*: write `return TopicListingResult.success\\(topics\\)`"),
        ({"a"}, "a set, .*: write `return TopicListingResult.success"),
        ("persistent://acme/orders/a", "a str, .*: write `return TopicListingResult.success"),
        ((name for name in "ab"), "a generator, .*: write `return TopicListingResult.success"),
        (True, "a bool, .*: write `return None` to pass"),
        (TopicListingResult.pass_through, "write the brackets of a call"),
        (TopicListingResult, "write the brackets of a call"),
        (object.__new__(TopicListingResult), "AttributeError"),
        (_Mine.success([]), "a _Mine, and not what"),
    ],
)
async def test_what_a_plugin_wrongly_returns_says_what_to_write(answer: Any, says: str) -> None:
    chain = dispatcher({"p": PluginOf(list_topics=lambda: answer)})
    ((_, caller),) = chain.lister_hook.chain(asked().namespace)
    assert caller is not None
    with pytest.raises(PluginFailed, match=f"plugin 'p' gave a wrong answer: .*{says}") as caught:
        async with chain.lister_hook.asking(caller, asked()):
            pass
    assert caught.value.reason == "plugin_answer"
    await chain.shutdown()
