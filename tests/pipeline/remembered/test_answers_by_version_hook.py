"""Answers cached by the version hook: which are stored, and which are not."""

from __future__ import annotations

from typing import Any

import pytest

from broker_core import Listing, ListingRequest, Mode
from broker_core.access.asker import Asker
from broker_core.memory.leases import Leases
from broker_core.memory.permit_budget import PermitBudget
from broker_core.names import NamespaceName
from broker_core.patterns import compile_pattern
from broker_core.pipeline.change_notices import ChangeNotices
from broker_core.pipeline.remembered.answer_store import AnswerStore
from broker_core.pipeline.remembered.answers_by_version_hook import (
    AnswersByVersionHook,
    VersionedAnswersToQuestion,
)
from broker_core.pipeline.request.listing_in_progress import AcceptedAnswer

NAMESPACE = NamespaceName("t", "n")


def listing() -> Listing:
    return Listing.from_names(NAMESPACE, Mode.PERSISTENT, ["persistent://t/n/a", "persistent://t/n/b"])


class Kept:
    def __init__(self, *words: str) -> None:
        self.words = frozenset(words)
        self.notices = ChangeNotices()
        self.budget = PermitBudget(10**7)
        self.answers = AnswersByVersionHook(
            AnswerStore(self.budget, Leases()), lambda _: self.words, self.notices
        )

    def to(self, pattern: str | None = None, **fields: Any) -> VersionedAnswersToQuestion:
        compiled = None if pattern is None else compile_pattern(pattern)
        return self.answers.to(ListingRequest(NAMESPACE, pattern=compiled, **fields))


def test_the_same_version_is_the_same_answer() -> None:
    kept, names = Kept(), listing()
    accepted = AcceptedAnswer("p", names.all(), False, None, owned=1000)
    kept.to().keep("p", "7", accepted)
    assert accepted.owned == 0  # charged where it is kept
    assert kept.budget.acquired > names.nbytes
    found = kept.to().find("p", "7")
    assert found is not None
    assert found.word == "success"
    assert found.accepted.selection.listing is names
    assert found.accepted.version == "7"
    assert kept.to().find("p", "8") is None
    assert kept.to().find("q", "7") is None
    assert kept.to(mode=Mode.ALL).find("p", "7") is None


def test_a_pass_through_is_an_answer() -> None:
    kept = Kept()
    kept.to().keep("p", "7", None)
    found = kept.to().find("p", "7")
    assert found is not None
    assert (found.word, found.accepted) == ("pass_through", None)


@pytest.mark.parametrize(
    ("word", "fields"),
    [
        ("principal", {"asker": Asker(role="me")}),
        ("address", {"asker": Asker(remote_address="192.0.2.7:1")}),
        ("properties", {"properties": {"a": "b"}}),
        ("pattern", {"pattern": "t/n/a"}),
    ],
)
def test_it_is_for_all_that_the_plugin_depends_on(word: str, fields: dict[str, Any]) -> None:
    for words, found in ((set(), True), ({word}, False)):
        kept = Kept(*words)
        kept.to().keep("p", "7", AcceptedAnswer("p", listing().all(), False, None))
        assert (kept.to(**fields).find("p", "7") is not None) is found


def test_what_the_plugin_filtered_is_for_that_pattern_alone() -> None:
    kept = Kept()
    kept.to("t/n/a").keep("p", "7", AcceptedAnswer("p", listing().all(), True, None, claimed=True))
    assert kept.to("t/n/a").find("p", "7") is not None
    assert kept.to("t/n/b").find("p", "7") is None
    assert kept.to().find("p", "7") is None


def test_what_becomes_known_to_be_depended_on_hides_what_was_kept_before() -> None:
    kept = Kept()
    kept.to().keep("p", "7", AcceptedAnswer("p", listing().all(), False, None))
    kept.words = frozenset({"principal"})
    assert kept.to().find("p", "7") is None


def test_an_answer_without_topics_is_not_kept() -> None:
    kept = Kept()
    kept.to().keep("p", "7", AcceptedAnswer("p", None, False, "0a0b0c0d"))
    assert kept.to().find("p", "7") is None


def test_what_came_while_the_topics_changed_is_not_kept() -> None:
    kept = Kept()
    under_way = kept.to()
    kept.notices.announce(NamespaceName("t", "other"))
    kept.notices.announce(NAMESPACE)
    under_way.keep("p", "7", AcceptedAnswer("p", listing().all(), False, None))
    assert kept.to().find("p", "7") is None


def test_more_is_wanted_than_was_asked_for() -> None:
    kept = Kept()
    kept.to().keep("p", "7", AcceptedAnswer("p", listing().all(), False, None))
    assert kept.to(wants=frozenset({"partitions"})).find("p", "7") is None
    kept.to(wants=frozenset({"partitions"})).keep("p", "7", AcceptedAnswer("p", listing().all(), False, None))
    assert kept.to().find("p", "7") is not None


def test_what_does_not_fit_is_not_kept() -> None:
    kept = Kept()
    kept.budget.maximum = 1
    accepted = AcceptedAnswer("p", listing().all(), False, None, owned=1000)
    kept.to().keep("p", "7", accepted)
    assert accepted.owned == 1000
    assert kept.to().find("p", "7") is None
