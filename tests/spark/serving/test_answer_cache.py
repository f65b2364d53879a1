"""Cached answers are right for a version, and bounded by what anybody still has."""

from __future__ import annotations

import gc

from broker_core import Listing, Selection
from broker_core.names import Mode
from broker_core_spark.serving.answer_cache import AnswerCache
from tests.support.chunks import tiny_chunks
from tests.support.mapped import mapped_listing
from tests.support.narrowed import present


def answer(topics: int) -> Selection:
    names = [f"persistent://t/n/{number:06}" for number in range(topics)]
    return Listing.from_names("t/n", Mode.PERSISTENT, names).all()


def test_an_answer_is_kept_for_a_version() -> None:
    answers = AnswerCache(1 << 20)
    some = answer(10)
    answers.put(b"a", 5, some)
    answers.put(b"b", 6, None)
    kept = present(answers.get(b"a"))
    assert (kept.number, kept.selection) == (5, some)
    answers.put(b"a", 4, None)  # of an earlier version, finished later
    assert answers.get(b"a") == kept
    answers.put(b"a", 9, some)
    again = present(answers.get(b"a"))
    assert (again.number, again.selection) == (9, some)
    assert answers.get(b"c") is None


def test_memory_counts_while_anybody_has_an_answer() -> None:
    answers = AnswerCache(1 << 20)
    some = answer(1000)
    answers.put(b"a", 1, some)
    size = some.listing.all().column().nbytes
    assert answers.made.nbytes >= size
    answers.put(b"a", 2, None)
    assert answers.made.nbytes >= size  # a client still reads it
    del some
    gc.collect()
    assert answers.made.nbytes == 0


def test_what_answers_share_counts_once_and_mapped_files_do_not() -> None:
    with tiny_chunks(32 * 1024):
        base = mapped_listing(answer(30_000).listing).all()
        one = Listing.from_names("t/n", Mode.PERSISTENT, ["persistent://t/n/012345-new"]).all()
        first = base.with_changes([], one)
        second = first.with_changes(["persistent://t/n/000007"], one)
    answers = AnswerCache(1 << 20)
    answers.put(b"a", 1, first)
    changed = answers.made.nbytes
    assert 20_000 < changed < 80_000 < base.fields_size // 8
    answers.put(b"a", 2, second)  # somebody still has the first
    assert 1.5 * changed < answers.made.nbytes < 2.5 * changed
    del first
    assert 1.5 * changed < answers.made.nbytes < 2.5 * changed  # the second has its chunk too
    del second
    answers.close()
    assert answers.made.nbytes == 0


def test_the_least_used_answers_make_room() -> None:
    size = answer(1000).listing.all().column().nbytes
    answers = AnswerCache(3 * size + 2000)
    for key in (b"a", b"b"):
        answers.put(key, 1, answer(1000))
    answers.put(b"c", 1, None)
    assert answers.get(b"a") is not None
    assert answers.made.claim(2 * size)
    assert answers.get(b"b") is None
    assert answers.get(b"a") is not None
    assert answers.get(b"c") is not None  # takes no room
    assert not answers.made.claim(2 * size)  # the claim itself does not make room
    assert answers.get(b"a") is None
    answers.made.give_back(2 * size)
    assert answers.made.claim(3 * size)
    assert not answers.made.claim(3 * size + 2001)


def test_nothing_is_kept_when_it_is_closed() -> None:
    answers = AnswerCache(1 << 20)
    answers.put(b"a", 1, answer(10))
    answers.close()
    assert answers.get(b"a") is None
    assert answers.made.nbytes == 0
