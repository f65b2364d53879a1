"""Small answers are sent again as long as they stand, and are the same bytes as one that is made anew."""

from __future__ import annotations

from typing import Any

import pytest

from broker_core.servers.pulsar import PulsarOptions, listing_job
from broker_core.servers.pulsar.listing_job import ListingJob, SmallListingJob
from broker_core.settings import PulsarSettings
from broker_core.wire.pulsar import commands
from tests.support.memory_lister import MemoryLister
from tests.support.pulsar_handlers import Talk, decoded, talk

FEW = [f"persistent://t/n/{number}" for number in range(20)]
MANY = [f"persistent://t/n/{'x' * 100}-{number:04d}" for number in range(500)]


def frame(t: Talk, request_id: int = 7, **question: Any) -> bytes:
    job = t.say(commands.get_topics(request_id, "t/n", **question))
    assert isinstance(job, ListingJob | SmallListingJob)
    small = job.small_answer()
    assert small is not None
    job.release()
    return small


def kept(t: Talk, **question: Any) -> None:
    """Ask a question as often as it takes until its answer is kept."""
    for _ in range(2):
        frame(t, 1, **question)


def connected(lister: MemoryLister, **options: Any) -> Talk:
    t = talk(lister, **options)
    t.connect()
    return t


def made_anew(request_id: int = 7, names: list[str] = FEW, **question: Any) -> bytes:
    """The answer of a server that was never asked before."""
    return frame(connected(MemoryLister(names)), request_id, **question)


def asked_for(t: Talk, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The questions that take the whole way from now on."""
    asked: list[object] = []
    answer_now = t.pipeline.answer_now

    def noted(request: Any) -> Any:
        asked.append(request)
        return answer_now(request)

    monkeypatch.setattr(t.pipeline, "answer_now", noted)
    return asked


QUESTIONS = [
    {},
    {"topics_pattern": "t/n/1.*"},
    {"topics_pattern": "persistent://t/n/.*[02468]"},
    {"topics_hash": "?"},
]


@pytest.mark.parametrize("question", QUESTIONS)
async def test_an_answer_that_is_given_again_is_the_same(
    question: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    t = connected(MemoryLister(FEW))
    known = decoded(made_anew(**question)).getTopicsOfNamespaceResponse.topics_hash
    for topics_hash in (None, known):
        own = dict(question) if topics_hash is None else {**question, "topics_hash": known}
        kept(t, **own)
        asked = asked_for(t, monkeypatch)
        for request_id in (0, 1, 127, 128, 16_383, 16_384, 2**32, 2**63, 2**64 - 1):
            assert frame(t, request_id, **own) == made_anew(request_id, **own)
        assert asked == []


async def test_a_change_is_seen_at_once() -> None:
    lister = MemoryLister(FEW)
    t = connected(lister)
    before = decoded(frame(t)).getTopicsOfNamespaceResponse
    kept(t)
    kept(t, topics_hash=before.topics_hash)
    assert frame(t, topics_hash=before.topics_hash) == made_anew(topics_hash=before.topics_hash)
    more = [*FEW, "persistent://t/n/more"]
    lister.change(more)
    for _ in range(2):
        assert frame(t, 9) == made_anew(9, more)
        assert frame(t, 9, topics_hash=before.topics_hash) == made_anew(9, more)
    lister.change(FEW)
    assert frame(t, 9, topics_hash=before.topics_hash) == made_anew(9, topics_hash=before.topics_hash)


async def test_a_hash_that_holds_no_more_needs_no_answer_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    t = connected(MemoryLister(FEW))
    kept(t)
    asked = asked_for(t, monkeypatch)
    for old in ("00000000", "", "any text"):
        assert frame(t, topics_hash=old) == made_anew()
    assert asked == []


async def test_questions_are_told_apart() -> None:
    names = [*FEW, "non-persistent://t/n/1"]
    t = connected(MemoryLister(names))
    questions: list[dict[str, Any]] = [
        {},
        {"mode": 1},
        {"mode": 2},
        {"topics_pattern": ""},
        {"topics_pattern": "t/n/1"},
        {"topics_pattern": "persistent://t/n/1"},
        {"topics_pattern": "t/n/1", "mode": 2},
        {"topics_pattern": "t/n/1", "mode": 1},
    ]
    for _ in range(3):
        for question in questions:
            assert frame(t, **question) == made_anew(names=names, **question), question


async def test_a_larger_answer_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    t = connected(MemoryLister(MANY))
    asked = asked_for(t, monkeypatch)
    for _ in range(3):
        assert len(frame(t)) > 50_000
    assert len(asked) == 3


async def test_each_client_has_its_own_limit_of_frames() -> None:
    """What was kept for a client that reads any size is too large for one that does not."""
    lister = MemoryLister(MANY[:100])
    t = talk(lister, options=PulsarOptions(PulsarSettings(max_message_size=1024)))
    t.connect("Pulsar-CPP-v3.5.1")
    kept(t)
    assert len(frame(t)) > 11_264
    other = talk(lister, options=PulsarOptions(PulsarSettings(max_message_size=1024)))
    other.handler._services = t.handler._services
    other.connect("Pulsar-Java-v4.2.4")
    for _ in range(2):
        job = other.say(commands.get_topics(7, "t/n"))
        assert isinstance(job, ListingJob)
        with pytest.raises(Exception, match="over this client's limit of 11264"):
            job.small_answer()


async def test_what_is_kept_is_bounded() -> None:
    lister = MemoryLister(MANY[:100])
    t = connected(lister)
    answers = t.handler._services.small_answers._kept
    for number in range(1000):
        kept(t, topics_pattern=f"t/n/x*-.*|{number}")
    assert 300 < len(answers) < 800
    assert answers.nbytes <= answers.limit


async def test_what_is_seen_once_displaces_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    t = connected(MemoryLister(FEW))
    monkeypatch.setattr(listing_job, "_SEEN_ONCE", 10)
    kept(t)
    for number in range(100):
        frame(t, topics_pattern=f"t/n/{number}")
    small = t.handler._services.small_answers
    assert len(small._kept) == 1
    assert len(small._seen_once) <= 10
    asked = asked_for(t, monkeypatch)
    assert frame(t) == made_anew()
    assert asked == []
    for number in range(100):
        frame(t, topics_pattern=f"t/n/{number}")
    assert len(small._kept) == 1, "so many others were asked meanwhile"


async def test_an_answer_after_a_change_is_kept_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lister = MemoryLister(FEW)
    t = connected(lister)
    kept(t)
    lister.change(FEW[:3])
    assert frame(t) == made_anew(names=FEW[:3])
    asked = asked_for(t, monkeypatch)
    assert frame(t) == made_anew(names=FEW[:3])
    assert asked == []


async def test_all_places_taken_refuses_what_is_known_too() -> None:
    t = connected(MemoryLister(FEW), places=1)
    kept(t)
    assert t.slots.take()
    job = t.say(commands.get_topics(7, "t/n"))
    assert isinstance(job, ListingJob)
    assert job.small_answer() is None


class ForEachPrincipal(MemoryLister):
    """Lists for each principal, as brokers do."""

    depends_on = frozenset({"principal"})


async def test_an_answer_that_is_for_one_principal_is_kept_for_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for lister, is_sent in ((MemoryLister(FEW), False), (ForEachPrincipal(FEW), True)):
        t = connected(lister)
        kept(t)
        asked = asked_for(t, monkeypatch)
        assert frame(t) == made_anew()
        assert bool(asked) is is_sent
