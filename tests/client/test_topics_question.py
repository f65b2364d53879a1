"""What becomes of a server's answer: names that match, and a hash for the next question."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from broker_core.client import InvalidQuestion, TopicListing, UnexpectedAnswer, topics_hash
from broker_core.client.topics_question import TopicsQuestion
from broker_core.errors import InvalidName, InvalidPattern
from broker_core.names import Mode, NamespaceName

NAMES = [f"persistent://t/n/{name}" for name in ("b", "a-partition-10", "a-partition-2", "a", "ab")]
A = [NAMES[3], NAMES[1], NAMES[2]]


def question(
    pattern: str | None = None, known: str | None = None, mode: Mode = Mode.PERSISTENT
) -> TopicsQuestion:
    return TopicsQuestion.of("t/n", mode, pattern, known, None)


async def listing(
    asked: TopicsQuestion, names: Any = NAMES, *, filtered: bool = False, topics_hash: str | None = "server"
) -> TopicListing:
    return await asked.listing(names, filtered=filtered, changed=True, topics_hash=topics_hash)


def test_equal_questions() -> None:
    one = TopicsQuestion.of("t/n", Mode.ALL, "x", "y", {"a": "1", "b": "2"})
    assert one == TopicsQuestion.of(NamespaceName("t", "n"), Mode.ALL, "x", "y", {"b": "2", "a": "1"})
    assert len({one, TopicsQuestion.of("t/n", Mode.ALL, "x", "y", {"a": "1"})}) == 2
    with pytest.raises(InvalidName):
        TopicsQuestion.of("t", Mode.ALL, None, None, None)


async def test_what_the_server_filtered_is_taken_as_it_is() -> None:
    found = await listing(question("t/n/nothing"), filtered=True)
    assert found == NAMES
    assert (found.filtered, found.topics_hash) == (True, "server")


@pytest.mark.parametrize("pattern", ["persistent://t/n/a", "t/n/a", "^persistent://t/n/a$", "t/./[a]"])
async def test_what_the_server_did_not_filter_is_filtered_here(pattern: str) -> None:
    """In full, without the scheme of the pattern, and without the partition suffix of the topic."""
    for names in (NAMES, pa.array(NAMES, pa.large_string())):
        found = await listing(question(pattern), names)
        assert found == A
        # The server's hash is of all that it sent, and what it compares the next one with.
        assert (found.filtered, found.topics_hash) == (False, "server")


async def test_a_pattern_that_can_match_nothing_is_told_where_nothing_matches() -> None:
    found = await listing(question("a.*"), [], filtered=True)
    (warning,) = found.warnings
    assert "can match no topic of t/n" in warning
    filtered_here = await listing(question("a.*"))
    assert (len(filtered_here), filtered_here.warnings) == (0, (warning,))
    empty = topics_hash([])
    assert (await listing(question("a.*", empty), topics_hash=None)).warnings == (warning,)
    # Whoever filtered these took the pattern for another one.
    assert (await listing(question("a.*"), filtered=True)).warnings == ()
    for pattern in ("t/n/nothing", "ftp://x", "(?=x)", None):
        assert (await listing(question(pattern), [], filtered=True)).warnings == ()


async def test_a_hash_that_was_not_sent_is_computed() -> None:
    found = await listing(question("t/n/a"), topics_hash=None)
    assert found.topics_hash == topics_hash(A)
    again = await listing(question("t/n/a", found.topics_hash), topics_hash=None)
    assert (again.changed, len(again), again.topics_hash) == (False, 0, found.topics_hash)
    assert (await listing(question("t/n/a", "another"), topics_hash=None)).changed


async def test_a_listing_of_the_hash_that_was_sent_is_a_listing() -> None:
    assert (await listing(question("t/n/a", "server"))).changed, "the server ignores the hash"


async def test_many_names_are_filtered_too() -> None:
    names = pa.array([f"persistent://t/n/{number}" for number in range(5000)], pa.large_string())
    assert len(await listing(question("t/n/1.*"), names)) == 1111


async def test_patterns_that_are_too_long_for_a_broker() -> None:
    """Up to the size of program that RE2 is given."""
    others = "|".join(f"other-{number}" for number in range(1000))
    assert await listing(question(f"t/n/(a|{others})")) == A
    with pytest.raises(InvalidPattern, match="longer than the maximum of 65536"):
        await listing(question(f"t/n/{'a' * 65536}"))


async def test_patterns_that_re2_has_not() -> None:
    with pytest.raises(InvalidPattern, match=r"did not apply the topics pattern .* this client cannot"):
        await listing(question("t/n/(?!a).*"))
    with pytest.raises(InvalidPattern):
        await listing(question("t/n/("))


async def test_names_that_cannot_be_listed() -> None:
    for names in (["x"], ["persistent://t/other/a"], ["non-persistent://t/n/a"]):
        with pytest.raises(UnexpectedAnswer, match="the server lists what cannot be listed"):
            await listing(question("t/n/a"), names)
    found = await listing(question("t/n/a", mode=Mode.ALL), ["non-persistent://t/n/a", *NAMES])
    assert found == ["non-persistent://t/n/a", *A]


@pytest.mark.parametrize("arrow", [False, True])
async def test_names_of_another_namespace_or_mode_that_the_server_filtered(arrow: bool) -> None:
    for bad in ("x", "persistent://t/other/a", "persistent://t/n2/a", "non-persistent://t/n/a"):
        names: Any = [*NAMES, bad]
        with pytest.raises(
            UnexpectedAnswer, match="does not belong into a listing of t/n of mode PERSISTENT"
        ):
            await listing(question(), pa.array(names, pa.large_string()) if arrow else names, filtered=True)
    both: Any = ["non-persistent://t/n/a", *NAMES]
    found = await listing(
        question(mode=Mode.ALL), pa.array(both, pa.large_string()) if arrow else both, filtered=True
    )
    assert found == both


@pytest.mark.parametrize("bad", [None, 1, b"x", "\ud800"])
def test_properties_that_are_no_texts(bad: Any) -> None:
    for properties in ({"a": bad}, {bad: "a"}, {bad: "a", "b": "c"}):
        with pytest.raises(InvalidQuestion, match=r"texts, not|no Unicode"):
            TopicsQuestion.of("t/n", Mode.ALL, None, None, properties)
    if bad is not None:
        with pytest.raises(InvalidQuestion):
            TopicsQuestion.of("t/n", Mode.ALL, bad, None, None)
