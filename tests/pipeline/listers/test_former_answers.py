"""Former answers: at a version, and the last good one: the newest, for exactly that question, never too old."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from broker_core import ListingRequest, TopicListingResult, hookimpl
from broker_core.access.asker import Asker
from broker_core.client import LookupSession
from broker_core.listing.listing import Listing
from broker_core.memory.permit_budget import PermitBudget
from broker_core.memory.permits import Leases
from broker_core.names import Mode, NamespaceName
from broker_core.patterns import compile_pattern
from broker_core.pipeline.change_notices import ChangeNotices
from broker_core.pipeline.listers.answer_store import AnswerStore
from broker_core.pipeline.listers.former_answers import FormerAnswers, FormerAnswersToQuestion, PluginAnswer
from broker_core.pipeline.request.listing_in_progress import AcceptedAnswer
from broker_core.plugins import LoadedPlugin, PluginFailed
from broker_core.testing import serve
from tests.support.plugins import PluginOf, loaded

NAMESPACE = NamespaceName("t", "n")
EVERYTHING = frozenset({"pattern", "properties", "principal", "client", "address"})


def listing(*names: str) -> Listing:
    return Listing.from_names(NAMESPACE, Mode.PERSISTENT, [f"persistent://t/n/{name}" for name in names])


def plugin(depends_on: frozenset[str] = EVERYTHING, max_stale: float = 10) -> LoadedPlugin:
    hooks = PluginOf(depends_on=lambda: depends_on, list_topics=lambda: None)
    return loaded(hooks, on_failure="stale", max_stale=max_stale)


def accepted_answer(names: Listing, *, filtered: bool = False, claimed: bool = False) -> AcceptedAnswer:
    return AcceptedAnswer("p", names.all(), filtered, None, claimed)


class Asked:
    """Questions to one plugin, with one memory."""

    def __init__(self, depends_on: frozenset[str] = EVERYTHING, budget: int = 10**8) -> None:
        self.plugin = plugin(depends_on)
        self.budget = PermitBudget(budget)
        self.leases = Leases()
        store = AnswerStore(self.budget, self.leases)
        self.last = FormerAnswers(store, lambda _: depends_on, ChangeNotices())

    def to(self, pattern: str | None = None, **fields: Any) -> FormerAnswersToQuestion:
        compiled = None if pattern is None else compile_pattern(pattern)
        return self.last.to(ListingRequest(NAMESPACE, pattern=compiled, **fields), compiled)

    def answered(
        self, what: AcceptedAnswer | None, at: float, pattern: str | None = None, **fields: Any
    ) -> None:
        self.to(pattern, **fields).answered(self.plugin, what, at)

    def recalled(
        self, now: float, pattern: str | None = None, topics_hash: str | None = None, **fields: Any
    ) -> tuple[str, Any, float] | None:
        """The word, the names (or the hash), and the age."""
        recalled = self.to(pattern, **fields).recalled(self.plugin, topics_hash, now)
        if recalled is None:
            return None
        what: Any = recalled.accepted
        if what is not None:
            assert what.stale == recalled.age
            what = what.topics_hash if what.selection is None else what.selection.listing
        return recalled.word, what, recalled.age


def test_it_is_good_for_max_stale_and_not_a_moment_longer() -> None:
    asked, names = Asked(), listing("a")
    assert asked.recalled(0) is None
    asked.answered(accepted_answer(names), 100)
    assert asked.recalled(100) == ("success", names, 0)
    assert asked.recalled(110) == ("success", names, 10)
    assert asked.recalled(110.001) is None
    assert asked.recalled(100) is None  # what is too old is let go
    assert asked.budget.acquired == names.nbytes  # this test has it still
    del names
    asked.leases.settle()
    assert asked.budget.acquired == 0


def test_the_newest_question_counts_not_the_last_answer() -> None:
    asked, older, newer = Asked(), listing("a"), listing("b")
    asked.answered(accepted_answer(newer), 105)
    asked.answered(accepted_answer(older), 101)  # asked before, and answered after
    assert asked.recalled(106) == ("success", newer, 1)
    asked.answered(None, 106)
    assert asked.recalled(107) == ("pass_through", None, 1)
    asked.answered(accepted_answer(older), 108)
    assert asked.recalled(108) == ("success", older, 0)


def test_the_same_names_again_are_only_younger() -> None:
    asked, names = Asked(), listing("a", "b")
    asked.answered(accepted_answer(names), 100)
    held = asked.budget.acquired
    asked.answered(accepted_answer(names), 109)
    assert asked.recalled(118) == ("success", names, 9)
    assert asked.budget.acquired == held


def test_another_part_of_the_same_listing_is_another_answer() -> None:
    asked, names = Asked(), listing("a", "b", "c")
    parts = [names.range(0, 2), names.all(), names.matching(compile_pattern("t/n/[ac]")), names.range(1, 3)]
    for at, part in enumerate([*parts, *reversed(parts)]):
        asked.answered(AcceptedAnswer("p", part, False, None), at)
        recalled = asked.to().recalled(asked.plugin, None, at)
        assert recalled is not None
        assert recalled.accepted is not None
        assert recalled.accepted.selection is not None
        assert recalled.accepted.selection.names.equals(part.names)


@pytest.mark.parametrize("what", sorted(EVERYTHING))
def test_another_question_has_no_answer(what: str) -> None:
    others: dict[str, dict[str, Any]] = {
        "pattern": {"pattern": "t/n/b.*"},
        "properties": {"properties": {"region": "us"}},
        "principal": {"asker": Asker(role="other", remote_address="here")},
        "client": {"asker": Asker(role="me", remote_address="here", client_version="other")},
        "address": {"asker": Asker(role="me", remote_address="other")},
    }
    base: dict[str, Any] = {
        "pattern": "t/n/a.*",
        "properties": {"region": "eu"},
        "asker": Asker(role="me", remote_address="here"),
    }
    asked = Asked()
    asked.answered(accepted_answer(listing("a")), 100, **base)
    assert asked.recalled(101, **base)
    assert asked.recalled(101, **base | others[what]) is None
    shared = Asked(EVERYTHING - {what})
    shared.answered(accepted_answer(listing("a")), 100, **base)
    assert shared.recalled(101, **base | others[what])


def test_what_was_filtered_by_one_pattern_is_no_answer_to_another() -> None:
    """Whatever the plugin says that it depends on."""
    asked = Asked(frozenset())
    asked.answered(accepted_answer(listing("a"), filtered=True, claimed=True), 100, "t/n/a.*")
    assert asked.recalled(101, "t/n/b.*") is None
    assert asked.recalled(101) is None
    assert asked.recalled(101, "t/n/a.*")
    asked.answered(accepted_answer(listing("a", "b")), 102, "t/n/a.*")
    assert asked.recalled(103, "t/n/b.*")


def test_unchanged_makes_the_same_names_younger() -> None:
    for pattern, filtered in ((None, False), ("t/n/a.*", False), ("t/n/a.*", True)):
        asked, names = Asked(), listing("a") if filtered else listing("a", "b")
        asked.answered(accepted_answer(names, filtered=filtered, claimed=filtered), 100, pattern)
        sent = names.all() if pattern is None else names.matching(compile_pattern(pattern))
        same = sent.topics_hash
        asked.answered(AcceptedAnswer("p", None, pattern is not None, same), 108, pattern)
        assert asked.recalled(115, pattern) == ("success", names, 7)
        asked.answered(AcceptedAnswer("p", None, pattern is not None, "01234567"), 116, pattern)
        assert asked.recalled(117, pattern) == ("success", names, 9)


def test_a_hash_alone_is_good_for_who_holds_it() -> None:
    asked, names = Asked(), listing("a")
    asked.answered(AcceptedAnswer("p", None, True, "01234567"), 100, "t/n/a.*")
    assert asked.recalled(101, "t/n/a.*") is None
    assert asked.recalled(101, "t/n/a.*", "76543210") is None
    assert asked.recalled(101, "t/n/b.*", "01234567") is None
    assert asked.recalled(101, "t/n/a.*", "01234567") == ("unchanged", "01234567", 1)
    assert asked.recalled(111, "t/n/a.*", "01234567") is None
    asked.answered(AcceptedAnswer("p", None, True, "01234567"), 90, "t/n/a.*")  # asked long ago
    assert asked.recalled(101, "t/n/a.*", "01234567") == ("unchanged", "01234567", 1)
    asked.answered(accepted_answer(names), 105, "t/n/a.*")
    # What is known to be true later counts.
    assert asked.recalled(106, "t/n/a.*", "01234567") == ("success", names, 1)


def test_a_part_of_a_listing_charges_all_that_it_holds_in_memory() -> None:
    asked, names = Asked(), listing(*(f"t-{number}" for number in range(1000)))
    for first in range(5):
        part = names.matching(compile_pattern(f"t/n/t-{first}.*"))
        asked.answered(AcceptedAnswer("p", part, False, None), 100, f"t/n/t-{first}.*")
    assert names.nbytes < asked.budget.acquired < names.nbytes + 5 * 2000
    small = Asked(budget=names.nbytes)
    small.answered(accepted_answer(names), 100)
    assert small.recalled(100) is None


ANSWERS = [listing("a"), listing("b"), listing("a", "b")]
EVENTS = st.lists(
    st.tuples(
        st.integers(0, 100),  # when it was asked
        st.integers(-1, 2),  # which names; -1 passes through
        st.sampled_from([None, "t/n/a.*", "t/n/b.*"]),
        st.sampled_from(["me", "you"]),
    ),
    max_size=30,
)


@given(events=EVENTS, now=st.integers(0, 120))
def test_what_is_recalled_is_what_a_full_record_says(events: list[Any], now: int) -> None:
    """Of all that was answered to exactly this question: the one that was asked last, if it is young enough."""
    asked = Asked()
    record: dict[Any, tuple[int, int]] = {}
    for at, which, pattern, role in events:
        what = None if which < 0 else accepted_answer(ANSWERS[which])
        asked.answered(what, at, pattern, asker=Asker(role=role))
        if (pattern, role) not in record or at >= record[pattern, role][0]:
            record[pattern, role] = at, which
    for pattern in (None, "t/n/a.*", "t/n/b.*"):
        for role in ("me", "you", "nobody"):
            found = asked.recalled(now, pattern, asker=Asker(role=role))
            at, which = record.get((pattern, role), (-1000, 0))
            if now - at > 10:
                assert found is None
            elif which < 0:
                assert found == ("pass_through", None, now - at)
            else:
                assert found == ("success", ANSWERS[which], now - at)


async def test_it_survives_a_reconnect_of_the_client() -> None:
    """The port of a client is another one each time."""
    fails = False

    class Failing:
        @hookimpl
        def broker_core_list_topics(self, namespace: object) -> TopicListingResult:
            if fails:
                raise OSError("the database is away")
            return TopicListingResult.success([f"persistent://{namespace}/a"])

    settings = {"plugins": {"failing": {"on_failure": "stale"}}}
    async with serve({"failing": Failing()}, settings=settings) as server:
        first = await server.list("t/n")
        fails = True
        async with LookupSession(server.url) as again:
            assert (await again.get_topics("t/n")).topics == first.topics == ["persistent://t/n/a"]


# -- while a version holds


class Kept:
    def __init__(self, *words: str) -> None:
        self.words = frozenset(words)
        self.notices = ChangeNotices()
        self.budget = PermitBudget(10**7)
        self.answers = FormerAnswers(AnswerStore(self.budget, Leases()), lambda _: self.words, self.notices)

    async def find(
        self, plugin: str, version: str, pattern: str | None = None, **fields: Any
    ) -> PluginAnswer | None:
        return await self.to(pattern, **fields).at_version(plugin, version, 1)

    def to(self, pattern: str | None = None, **fields: Any) -> FormerAnswersToQuestion:
        compiled = None if pattern is None else compile_pattern(pattern)
        return self.answers.to(ListingRequest(NAMESPACE, pattern=compiled, **fields), compiled)


async def test_the_same_version_is_the_same_answer() -> None:
    kept, names = Kept(), listing("a", "b")
    accepted = AcceptedAnswer("p", names.all(), False, None, owned=1000)
    kept.to().keep("p", "7", accepted)
    assert accepted.owned == 0  # charged where it is kept
    assert kept.budget.acquired > names.nbytes
    found = await kept.find("p", "7")
    assert found is not None
    assert found.word == "success"
    assert found.accepted is not None
    assert found.accepted.selection is not None
    assert found.accepted.selection.listing is names
    assert found.accepted.version == "7"
    assert await kept.find("p", "8") is None
    assert await kept.find("q", "7") is None
    assert await kept.find("p", "7", mode=Mode.ALL) is None


async def test_a_pass_through_is_an_answer() -> None:
    kept = Kept()
    kept.to().keep("p", "7", None)
    found = await kept.find("p", "7")
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
async def test_it_is_for_all_that_the_plugin_depends_on(word: str, fields: dict[str, Any]) -> None:
    for words, found in ((set(), True), ({word}, False)):
        kept = Kept(*words)
        kept.to().keep("p", "7", AcceptedAnswer("p", listing("a", "b").all(), False, None))
        assert (await kept.find("p", "7", **fields) is not None) is found


async def test_what_the_plugin_filtered_is_for_that_pattern_alone() -> None:
    kept = Kept()
    kept.to("t/n/a").keep("p", "7", AcceptedAnswer("p", listing("a", "b").all(), True, None, claimed=True))
    assert await kept.find("p", "7", "t/n/a") is not None
    assert await kept.find("p", "7", "t/n/b") is None
    assert await kept.find("p", "7") is None


async def test_what_becomes_known_to_be_depended_on_hides_what_was_kept_before() -> None:
    kept = Kept()
    kept.to().keep("p", "7", AcceptedAnswer("p", listing("a", "b").all(), False, None))
    kept.words = frozenset({"principal"})
    assert await kept.find("p", "7") is None


async def test_an_answer_without_topics_is_not_kept() -> None:
    kept = Kept()
    kept.to().keep("p", "7", AcceptedAnswer("p", None, False, "0a0b0c0d"))
    assert await kept.find("p", "7") is None


async def test_what_came_while_the_topics_changed_is_not_kept() -> None:
    kept = Kept()
    under_way = kept.to()
    kept.notices.announce(NamespaceName("t", "other"))
    kept.notices.announce(NAMESPACE)
    under_way.keep("p", "7", AcceptedAnswer("p", listing("a", "b").all(), False, None))
    assert await kept.find("p", "7") is None


async def test_more_is_wanted_than_was_asked_for() -> None:
    kept = Kept()
    kept.to().keep("p", "7", AcceptedAnswer("p", listing("a", "b").all(), False, None))
    assert await kept.find("p", "7", wants=frozenset({"partitions"})) is None
    kept.to(wants=frozenset({"partitions"})).keep(
        "p", "7", AcceptedAnswer("p", listing("a", "b").all(), False, None)
    )
    assert await kept.find("p", "7") is not None


@pytest.mark.parametrize("word", ["", "principal"])
async def test_a_failure_is_of_equal_questions_until_they_may_have_other_answers(word: str) -> None:
    """As when the plugin reads ``word``, which it does not declare, while it is asked."""
    kept, failure = Kept(), PluginFailed("p", "failed", reason="plugin_error")
    with suppress(PluginFailed), kept.to().make("p", "7"):
        waiting = asyncio.create_task(kept.find("p", "7"))
        await asyncio.sleep(0)
        kept.words = frozenset({word} - {""})
        raise failure
    (found,) = await asyncio.gather(waiting, return_exceptions=True)
    assert str(found) == str(None if word else failure)


async def test_the_rows_of_a_part_of_a_listing_are_counted() -> None:
    """Beside the listing, which all answers of it share."""
    names, taken = listing(*(f"t{number}" for number in range(1000))), []
    for selection in (names.all(), names.matching(compile_pattern("t/n/t.*[37]"))):
        kept = Kept()
        kept.to().keep("p", "7", AcceptedAnswer("p", selection, False, None))
        taken.append(kept.budget.acquired)
    assert taken[1] - taken[0] == selection.remembered_bytes > 0


async def test_what_does_not_fit_is_not_kept() -> None:
    kept = Kept()
    kept.budget.maximum = 1
    accepted = AcceptedAnswer("p", listing("a", "b").all(), False, None, owned=1000)
    kept.to().keep("p", "7", accepted)
    assert accepted.owned == 1000
    assert await kept.find("p", "7") is None
