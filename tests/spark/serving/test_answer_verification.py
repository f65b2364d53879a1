"""A wrong answer of a generation is found when it is asked, counted and reported, and the client gets the right one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from broker_core import EncodedNames, Listing, Mode
from broker_core.patterns import compile_pattern
from broker_core_spark.format.canonical_question import CanonicalQuestion, NameSelector
from broker_core_spark.format.picked_words import Matches
from broker_core_spark.serving.answer_verification import AnswerVerifier
from broker_core_spark.serving.opened import generation
from broker_core_spark.serving.opened.generation import PrecomputedAnswer
from broker_core_spark.serving.opened.verify_and_map import SampleChecks
from broker_core_spark.serving.pass_to_next_lister import PassToNextLister
from tests.spark.test_exact_answers import check, serving
from tests.support import generation_builder as module
from tests.support.generations import memory
from tests.support.narrowed import present
from tests.support.spark_model import Question, publish

ALL: Question = ("public/default", Mode.PERSISTENT, None, {})
TENS: Question = ("public/default", Mode.PERSISTENT, "public/default/t-1.*", {})
ODD: Question = ("public/default", Mode.PERSISTENT, "public/default/.*[13579]", {})
REGISTERED = [ALL, TENS, ODD]
NAMES = [f"persistent://public/default/t-{number:05}" for number in range(20_000)]


def others(names: EncodedNames, picked: Matches) -> Matches:
    """Only topics that do not match."""
    rows = np.arange(*picked) if isinstance(picked, tuple) else picked
    return np.setdiff1d(np.arange(len(names)), rows)


def one_more(names: EncodedNames, picked: Matches) -> Matches:
    rows = np.arange(*picked) if isinstance(picked, tuple) else picked
    return np.union1d(rows, np.asarray(others(names, picked))[:1])


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening samples, and here it samples what is right."""
    monkeypatch.setattr(generation, "SampleChecks", lambda: SampleChecks(hashed_bytes=0, rematched=0))


def faulty(monkeypatch: pytest.MonkeyPatch, change: Callable[[EncodedNames, Matches], Matches]) -> None:
    """A batch with wrong matches for each pattern, and their hashes."""
    right = module.matches_of

    def matches_of(
        names: EncodedNames, selectors: Any, properties: Any
    ) -> Iterator[tuple[NameSelector, Matches]]:
        for selector, picked in right(names, selectors, properties):
            yield selector, picked if selector.pattern is None else change(names, picked)

    monkeypatch.setattr(module, "matches_of", matches_of)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("change", [others, one_more])
async def test_a_wrong_posting_is_caught_and_the_right_answer_sent(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[EncodedNames, Matches], Matches]
) -> None:
    faulty(monkeypatch, change)
    async with serving() as (server, plugin, model, uri):
        await model.fill([f"persistent://public/default/t-{number}" for number in range(30)], Random(1))
        await publish(uri, model, REGISTERED)
        await plugin.lister.refresher.refresh()
        for _ in range(2):
            for requested in REGISTERED:
                await check(server, model, requested, Random(1))
        assert plugin.lister.counts.passed["wrong_answer"] >= 4
        assert plugin.lister.counts.answers.total() >= 2  # all topics are right
        # After a change too: changes are not spliced into a wrong answer.
        await model.create("persistent://public/default/t-199", Random(1))
        for requested in REGISTERED:
            await check(server, model, requested, Random(1))
        assert plugin.lister.counts.passed["wrong_answer"] >= 6
        served = present(plugin.lister.refresher.served)
        assert served.verifier.wrong == 2
        reported: list[Collection[str]] = []
        monkeypatch.setattr(plugin.lister.refresher, "_report", reported.append)
        await plugin.lister.refresher.refresh()
        ((problem,),) = reported
        assert "has wrong answers, 2 so far" in problem
        assert served.generation.id in problem


@pytest.mark.usefixtures("unchecked")
async def test_a_made_up_hash_is_caught_and_the_right_one_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(right: Any) -> Any:
        def changed(names: EncodedNames, *picked: Any) -> Any:
            crcs, sizes = right(names, *picked)
            return crcs ^ np.uint32(1), sizes

        return changed

    for method in ("crcs", "crcs_of_ranges"):
        monkeypatch.setattr(EncodedNames, method, wrong(getattr(EncodedNames, method)))
    async with serving() as (server, plugin, model, uri):
        await model.fill([f"persistent://public/default/t-{number}" for number in range(30)], Random(1))
        await publish(uri, model, REGISTERED)
        monkeypatch.undo()
        monkeypatch.setattr(generation, "SampleChecks", lambda: SampleChecks(hashed_bytes=0, rematched=0))
        await plugin.lister.refresher.refresh()
        for requested in REGISTERED:
            await check(server, model, requested, Random(1))
        assert plugin.lister.counts.passed["wrong_answer"] >= len(REGISTERED)
        assert plugin.lister.counts.answers.total() == 0


def answer_of(pattern: str, *, wrong: bool = False) -> tuple[CanonicalQuestion, PrecomputedAnswer]:
    """A large scattered answer, which is verified beside the event loop."""
    listing = Listing.from_names("public/default", Mode.PERSISTENT, NAMES)
    found = listing.matching(compile_pattern(pattern))
    rows = found.row_array + (1 if wrong else 0)
    given = Listing.from_encoded("public/default", Mode.PERSISTENT, listing.all().column()).rows(rows)
    question = CanonicalQuestion.of("public/default", Mode.PERSISTENT, pattern)
    return question, PrecomputedAnswer(lambda: given, len(given), found.topics_hash, given.fields_size)


async def test_an_answer_is_looked_at_once_for_all_who_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    pattern = "public/default/.*[02468]"
    question, answer = answer_of(pattern)
    looked = 0
    look = PrecomputedAnswer.verify

    def counted(self: PrecomputedAnswer, compiled: Any) -> None:
        nonlocal looked
        looked += 1
        look(self, compiled)

    monkeypatch.setattr(PrecomputedAnswer, "verify", counted)
    proofs, before = AnswerVerifier("g"), answer.selection
    compiled = compile_pattern(pattern)
    waiting = [asyncio.create_task(proofs.verify(question, answer, compiled)) for _ in range(5)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    await proofs.verify(question, answer, compiled)
    assert (looked, answer.fault, proofs.wrong) == (1, None, 0)
    assert answer.selection is not before
    assert answer.selection.pattern == pattern  # by the core's own engine
    assert answer.selection.hash_known
    assert answer.selection.names.equals(before.names)


async def test_a_large_wrong_answer_is_passed_on_each_time() -> None:
    pattern = "public/default/.*[0246]"
    question, answer = answer_of(pattern, wrong=True)
    proofs = AnswerVerifier("g")
    for _ in range(2):
        with pytest.raises(PassToNextLister, match=r"8000 of its 8000 topics do not match") as caught:
            await proofs.verify(question, answer, compile_pattern(pattern))
        assert caught.value.reason == "wrong_answer"
    assert proofs.wrong == 1
    await proofs.close()


@pytest.mark.parametrize("wrong", [False, True])
async def test_several_who_ask_at_once_get_a_verified_answer(
    monkeypatch: pytest.MonkeyPatch, *, wrong: bool
) -> None:
    """An answer that is too large to be kept is another object for each of them."""
    monkeypatch.setattr(generation, "SELECTIONS_BYTES", 0)
    if wrong:
        faulty(monkeypatch, others)
    store, pattern = memory(), "public/default/.*[13579]"
    question = CanonicalQuestion.of("public/default", Mode.PERSISTENT, pattern)
    names = {"public/default": {"persistent": [f"t-{number:05}" for number in range(20_000)]}}
    made = module.build_generation(store, names, [question], catalogue_id="c")
    unchecked = SampleChecks(hashed_bytes=0, rematched=0)
    opened = generation.Generation.open(store, made.id, checks=unchecked)
    answers = [present(opened.lookup(question)) for _ in range(3)]
    assert answers[0] is not answers[1]
    verifier = AnswerVerifier(made.id)
    given = await asyncio.gather(
        *(verifier.verify(question, answer, compile_pattern(pattern)) for answer in answers),
        return_exceptions=True,
    )
    if wrong:
        assert [type(result) for result in given] == [PassToNextLister] * 3
    else:
        assert all(isinstance(result, PrecomputedAnswer) and result.is_verified for result in given)


async def test_names_that_were_changed_in_the_file_are_no_answer() -> None:
    """Mapped bytes are private. If they change all the same, there is no answer."""
    listing = Listing.from_names("public/default", Mode.PERSISTENT, NAMES[:10])
    damaged = bytearray(listing.all().body())
    damaged[damaged.index(b"default")] = ord("x")
    column = listing.all().column()
    offsets = column.buffers()[1]
    fields = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), 10, [None, offsets, pa.py_buffer(bytes(damaged))]
    )
    given = Listing.from_encoded("public/default", Mode.PERSISTENT, fields).all()
    answer = PrecomputedAnswer(lambda: given, 10, listing.topics_hash, given.fields_size)
    with pytest.raises(PassToNextLister, match="wrong"):
        await AnswerVerifier("g").verify(
            CanonicalQuestion.of("public/default", Mode.PERSISTENT, None), answer, None
        )
