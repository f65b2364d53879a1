"""The overlay has the final state of changed names, matches questions, and puts changes into answers."""

from __future__ import annotations

import random
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.change_log import Change, ListedNames, Operation
from broker_core.listing.listing import Listing, Selection
from broker_core.listing.listing_hash import topics_hash
from broker_core.names import Mode, TopicName
from broker_core.names.listed_names import NOTHING, PLAIN
from broker_core.patterns import TopicsPattern, compile_pattern
from broker_core_spark.serving.changes.overlay import NameState, Overlay, TooManyNames, states_after
from tests.support.topics import NAMESPACE, assert_selection, full_names, visible


def change(
    version: int,
    name: str,
    before: ListedNames,
    after: ListedNames,
    properties_before: Mapping[str, str] | None = None,
    properties_after: Mapping[str, str] | None = None,
) -> Change:
    operation = Operation.UPDATE if before and after else Operation.CREATE if after else Operation.DELETE
    return Change(
        version,
        operation,
        TopicName.parse(name),
        uuid.UUID(int=1),
        before,
        after,
        properties_before or {},
        properties_after or {},
        datetime.fromtimestamp(0, UTC),
    )


def listed(states: Mapping[str, NameState]) -> dict[str, bool]:
    return {name.rpartition("/")[2]: state.listed for name, state in states.items()}


def test_the_last_state_of_a_name_counts() -> None:
    a, b = "persistent://t/n/a", "persistent://t/n/b"
    states = states_after(
        [
            change(1, a, NOTHING, PLAIN),
            change(2, b, PLAIN, NOTHING),
            change(3, a, PLAIN, NOTHING),
            change(4, b, NOTHING, PLAIN, {}, {"team": "red"}),
        ],
        ["team"],
        10,
    )
    assert listed(states) == {"a": False, "b": True}
    assert states[b] == NameState(listed=True, properties={"team": "red"}, version=4)


def test_partitions_that_stay_are_not_touched() -> None:
    name = "persistent://t/n/a"
    grown = change(1, name, ListedNames.partitioned(3), ListedNames.partitioned(5))
    assert listed(states_after([grown], (), 10)) == {"a-partition-3": True, "a-partition-4": True}
    shrunk = change(2, name, ListedNames.partitioned(5), ListedNames.partitioned(4))
    assert listed(states_after([shrunk], (), 10)) == {"a-partition-4": False}


def test_only_properties_that_select_touch_a_name() -> None:
    name = "persistent://t/n/a"
    update = change(1, name, PLAIN, PLAIN, {"note": "x", "team": "red"}, {"note": "y", "team": "red"})
    assert states_after([update], ["team"], 10) == {}
    other = change(2, name, ListedNames.partitioned(2), ListedNames.partitioned(2), {"team": "red"}, {})
    assert listed(states_after([other], ["team"], 10)) == {"a-partition-0": True, "a-partition-1": True}
    assert states_after([other], [], 10) == {}


def test_no_more_names_are_made_than_may_be_followed() -> None:
    many = change(1, "persistent://t/n/a", NOTHING, ListedNames.partitioned(2**31 - 1))
    with pytest.raises(TooManyNames):
        states_after([many], (), 10_000)
    several = [change(number, f"persistent://t/n/{number}", NOTHING, PLAIN) for number in range(1, 6)]
    assert len(states_after(several, (), 5)) == 5
    with pytest.raises(TooManyNames):
        states_after(several, (), 4)


def states(
    version: int, names: Mapping[str, bool], properties: Mapping[str, str] | None = None
) -> dict[str, NameState]:
    return {name: NameState(is_listed, properties or {}, version) for name, is_listed in names.items()}


def local(names: Selection) -> list[str]:
    return [name.partition("://t/n/")[2] for name in names.names.to_pylist()]


def test_names_are_matched_by_mode_pattern_and_version() -> None:
    overlay = Overlay.nothing(NAMESPACE)
    assert len(overlay) == 0
    overlay = overlay.with_states(
        states(3, {"persistent://t/n/c": False, "persistent://t/n/b-partition-1": True})
    )
    overlay = overlay.with_states(states(5, {"non-persistent://t/n/b": True, "persistent://t/n/c": True}))
    assert local(overlay.names.all()) == ["b", "b-partition-1", "c"]
    assert overlay.versions.tolist() == [5, 3, 5]

    b = compile_pattern("t/n/b")
    assert local(overlay.matching(Mode.ALL, None)) == ["b", "b-partition-1", "c"]
    assert local(overlay.matching(Mode.ALL, b)) == ["b", "b-partition-1"]
    assert local(overlay.matching(Mode.PERSISTENT, b)) == ["b-partition-1"]
    assert local(overlay.matching(Mode.NON_PERSISTENT, None)) == ["b"]
    assert local(overlay.matching(Mode.ALL, None, after=3)) == ["b", "c"]
    assert local(overlay.matching(Mode.ALL, b, after=3)) == ["b"]
    assert local(overlay.matching(Mode.ALL, b, after=5)) == []


def test_properties_select_among_what_is_listed() -> None:
    overlay = Overlay.nothing(NAMESPACE, ["team"])
    names = {f"persistent://t/n/{letter}": True for letter in "ab"}
    overlay = overlay.with_states(states(1, names, {"team": "red", "other": "x"}))
    overlay = overlay.with_states(states(2, {"persistent://t/n/a": False}))
    overlay = overlay.with_states(states(2, {"persistent://t/n/c": True}))
    nothing = Listing.from_names(NAMESPACE, Mode.ALL, []).all()
    matching = overlay.matching(Mode.ALL, None)
    assert local(overlay.put_into(nothing, matching, {})) == ["b", "c"]
    assert local(overlay.put_into(nothing, matching, {"team": "red"})) == ["b"]
    assert overlay.put_into(nothing, matching, {"team": "blue"}) is nothing


def test_topics_that_no_client_sees_are_not_touched() -> None:
    overlay = Overlay.nothing(NAMESPACE).with_states(states(1, {"persistent://t/n/__change_events": True}))
    assert len(overlay) == 0


TEAMS = [None, "red", "blue"]
_PATTERNS = [
    None,
    *(
        ".*",
        "t/n/a.*",
        "t/n/[ab].*",
        ".*k.*",
        "(?s).*",
        "t/n/a",
        "t/n/x{100,}.*",
        ".*-partition-.*",
        "nothing",
    ),
]
PATTERNS = [pattern and compile_pattern(pattern) for pattern in _PATTERNS]
Names = dict[str, str | None]  # a full name and its team
Step = dict[str, tuple[bool, str | None]]  # names that changed: whether they are listed now, and their team


def requested(
    names: Names, mode: Mode, pattern: TopicsPattern | None, properties: Mapping[str, str]
) -> list[str]:
    """The answer, one name at a time."""
    return visible(
        name
        for name, team in names.items()
        if mode.lists(TopicName.parse(name).domain)
        and (pattern is None or pattern.matches(name))
        and all(team == value for value in properties.values())
    )


def answer_of(names: list[str], mode: Mode, wanted: list[str]) -> Selection:
    """An answer as a generation has it, by the rows of its listing."""
    listing = Listing.from_names(NAMESPACE, mode, [n for n in names if mode.lists(TopicName.parse(n).domain)])
    return listing.rows(listing.positions(wanted))


def with_step(overlay: Overlay, number: int, step: Step) -> Overlay:
    return overlay.with_states(
        {
            name: NameState(is_listed, {} if team is None else {"team": team}, number)
            for name, (is_listed, team) in step.items()
        }
    )


def apply(names: Names, step: Step) -> None:
    for name, (is_listed, team) in step.items():
        names.pop(name, None)
        if is_listed:
            names[name] = team


@given(st.sampled_from(Mode), st.sampled_from(PATTERNS), st.sampled_from(TEAMS), st.data())
def test_an_answer_after_changes_is_what_matching_anew_gives(
    mode: Mode, pattern: TopicsPattern | None, team: str | None, data: st.DataObject
) -> None:
    teams = st.sampled_from(TEAMS)
    names: Names = data.draw(st.dictionaries(full_names(), teams, max_size=20))
    properties = {} if team is None else {"team": team}
    base = kept = answer_of(list(names), mode, requested(names, mode, pattern, properties))
    known = st.one_of(full_names(), st.sampled_from(sorted(names))) if names else full_names()
    steps = data.draw(
        st.lists(st.dictionaries(known, st.tuples(st.booleans(), teams), max_size=6), min_size=1, max_size=3)
    )
    overlay = Overlay.nothing(NAMESPACE, ["team"])
    for number, step in enumerate(steps, 1):
        overlay = with_step(overlay, number, step)
        apply(names, step)
        expected = requested(names, mode, pattern, properties)
        # The changes since the answer before, and those since the generation, lead to the same.
        latest = overlay.matching(mode, pattern, after=number - 1)
        kept = overlay.put_into(kept, latest, properties)
        assert_selection(kept, expected)
        assert kept.topics_hash == topics_hash(expected)
        fresh = overlay.put_into(base, overlay.matching(mode, pattern), properties)
        assert_selection(fresh, expected)
        assert (fresh is base) == (expected == base.names.to_pylist())


@pytest.mark.parametrize("scattered", [False, True], ids=["slice", "rows"])
def test_many_changes_of_a_long_answer(scattered: bool) -> None:
    chosen = random.Random(5)
    every = [f"persistent://t/n/{number:06}{'x' * (number % 140)}" for number in range(20_000)]
    names: Names = {name: None for name in every if chosen.random() < 0.8}
    pattern = compile_pattern("t/n/.*[02468]x*" if scattered else "t/n/0[1-8].*")
    base = Listing.from_names(NAMESPACE, Mode.PERSISTENT, list(names)).matching(pattern)
    assert base.is_slice is not scattered
    step: Step = {name: (chosen.random() < 0.5, None) for name in chosen.sample(every, 3000)}
    overlay = with_step(Overlay.nothing(NAMESPACE, ["team"]), 1, step)
    apply(names, step)
    expected = requested(names, Mode.PERSISTENT, pattern, {})
    for _ in range(2):  # the second one finds the places of the names remembered
        answer = overlay.put_into(base, overlay.matching(Mode.PERSISTENT, pattern), {})
        assert_selection(answer, expected)
        assert answer.pattern == pattern.text  # the core has matched all of it, so it is not matched again


@pytest.mark.parametrize("seed", range(3))
def test_several_answers_of_one_listing_with_several_overlays(seed: int) -> None:
    chosen = random.Random(seed)
    every = [
        f"{domain}://t/n/{number:06}" for number in range(400) for domain in ("non-persistent", "persistent")
    ]
    first: Names = {name: None for name in every if chosen.random() < 0.7}
    listing = Listing.from_names(NAMESPACE, Mode.ALL, list(first))
    patterns = [compile_pattern(text) for text in (".*", "t/n/0001.*", "t/n/.*[02468]")]
    states: list[tuple[Overlay, Names]] = []
    overlay, names = Overlay.nothing(NAMESPACE, ["team"]), dict(first)
    for number in range(1, 4):
        step: Step = {name: (chosen.random() < 0.5, None) for name in chosen.sample(every, 90)}
        overlay = with_step(overlay, number, step)
        apply(names, step)
        states.append((overlay, dict(names)))
    # An older overlay may still be put into an answer after a newer one.
    for overlay, names in chosen.sample(states * 2, 6):
        for pattern in patterns:
            answer = overlay.put_into(listing.matching(pattern), overlay.matching(Mode.ALL, pattern), {})
            assert_selection(answer, requested(names, Mode.ALL, pattern, {}))


def test_what_is_as_before_again_is_no_change() -> None:
    names = [f"persistent://t/n/{letter}" for letter in "abc"]
    base = Listing.from_names(NAMESPACE, Mode.PERSISTENT, names)
    overlay = Overlay.nothing(NAMESPACE, ["team"])
    overlay = with_step(overlay, 1, {names[0]: (False, None), "persistent://t/n/d": (True, None)})
    overlay = with_step(overlay, 2, {names[0]: (True, "red"), "persistent://t/n/d": (False, None)})
    matching = overlay.matching(Mode.PERSISTENT, None)
    assert len(matching) == 2
    every, nobody = base.all(), base.rows([])
    assert overlay.put_into(every, matching, {}) is every
    assert overlay.put_into(nobody, matching, {"team": "red"}).names.to_pylist() == [names[0]]


def test_a_name_that_was_created_anew_has_the_state_of_the_new_topic() -> None:
    """Also with the same properties: what was computed for the old topic is asked again."""
    a = "persistent://t/n/a"
    states = states_after(
        [change(7, a, PLAIN, NOTHING, {"team": "red"}), change(7, a, NOTHING, PLAIN, {}, {"team": "red"})],
        ["team"],
        10,
    )
    assert states == {a: NameState(listed=True, properties={"team": "red"}, version=7)}
    gone = states_after([change(7, a, NOTHING, PLAIN), change(8, a, PLAIN, NOTHING)], ["team"], 10)
    assert gone == {a: NameState(listed=False, properties={}, version=8)}
