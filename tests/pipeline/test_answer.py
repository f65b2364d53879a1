"""An answer counts its bytes, and releases its permits once."""

from __future__ import annotations

from broker_core import Page
from broker_core.listing.listing import Listing
from broker_core.memory.permit_budget import PermitBudget
from broker_core.names import Mode, NamespaceName
from broker_core.pipeline import Answer, Trace
from broker_core.pipeline.answer import has_hash, is_unchanged, without_hash
from tests.support.pipelines import request

NAMES = ["persistent://t/n/a", "persistent://t/n/bb"]


def test_topics_and_bytes_of_an_answer() -> None:
    selection = Listing.from_names(NamespaceName("t", "n"), Mode.PERSISTENT, NAMES).all()
    answer = Answer(selection, selection.topics_hash, True, "catalog", "all")
    assert (answer.changed, answer.topics) == (True, 2)
    assert answer.fields_size == sum(2 + len(name) for name in NAMES) == len(selection.body())
    answer.release()  # without permits too


def test_unchanged_is_an_answer_without_topics() -> None:
    answer = Answer(None, "01234567", False, "catalog", "none")
    assert (answer.changed, answer.topics, answer.fields_size) == (False, 0, 0)


def test_permits_go_back_once() -> None:
    budget = PermitBudget(100)
    permit = budget.try_acquire(60)
    answer = Answer(None, "01234567", False, "catalog", "none", permit)
    answer.release()
    assert budget.acquired == 0
    other = budget.try_acquire(60)
    answer.release()
    assert other is not None
    assert budget.acquired == 60


def test_traces_are_their_own() -> None:
    one, other = Trace(), Trace()
    one.permits["held"] = 5
    assert other.permits == {}
    assert other.chain == other.masks == []


def test_there_is_a_hash_of_all_names_and_of_nothing_but_names() -> None:
    assert has_hash(request())
    assert not has_hash(request(page=Page(limit=1)))
    assert not has_hash(request(wants=frozenset({"partitions"})))


def test_whoever_must_not_compare_gets_no_hash() -> None:
    asked = request(topics_hash="00000000")
    assert is_unchanged(asked, "00000000")
    hidden = without_hash(asked)
    assert hidden.topics_hash is None
    assert not is_unchanged(hidden, "00000000")
    assert without_hash(hidden) is hidden
