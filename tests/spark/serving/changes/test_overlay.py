"""The overlay has the final state of changed names, and matches questions."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from broker_core.change_log import Change, ListedNames, Operation
from broker_core.listing.listing import Listing
from broker_core.names import Mode, NamespaceName, TopicName
from broker_core.names.listed_names import NOTHING, PLAIN
from broker_core.patterns import compile_pattern
from broker_core_spark.serving.changes.overlay import NameState, Overlay, TooManyNames, states_after

NAMESPACE = NamespaceName.parse("t/n")


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


def test_names_are_matched_by_mode_pattern_and_version() -> None:
    base = Listing.from_names(NAMESPACE, Mode.ALL, ["persistent://t/n/a", "persistent://t/n/c"])
    overlay = Overlay.nothing(NAMESPACE)
    assert len(overlay) == 0
    overlay = overlay.with_states(
        base, states(3, {"persistent://t/n/c": False, "persistent://t/n/b-partition-1": True})
    )
    overlay = overlay.with_states(
        base, states(5, {"non-persistent://t/n/b": True, "persistent://t/n/c": True})
    )
    names = overlay.names.names.to_pylist()
    assert names == ["non-persistent://t/n/b", "persistent://t/n/b-partition-1", "persistent://t/n/c"]
    assert overlay.base_rows.tolist() == [0, 1, 1]
    assert overlay.in_base.tolist() == [False, False, True]
    assert overlay.versions.tolist() == [5, 3, 5]

    b = compile_pattern("t/n/b")
    assert overlay.matching(Mode.ALL, None).tolist() == [0, 1, 2]
    assert overlay.matching(Mode.ALL, b).tolist() == [0, 1]
    assert overlay.matching(Mode.PERSISTENT, b).tolist() == [1]
    assert overlay.matching(Mode.NON_PERSISTENT, None).tolist() == [0]
    assert overlay.matching(Mode.ALL, None, after=3).tolist() == [0, 2]
    assert overlay.matching(Mode.ALL, b, after=3).tolist() == [0]
    assert overlay.matching(Mode.ALL, b, after=5).tolist() == []


def test_properties_select_among_what_is_listed() -> None:
    base = Listing.from_names(NAMESPACE, Mode.ALL, [])
    overlay = Overlay.nothing(NAMESPACE, ["team"])
    names = {f"persistent://t/n/{letter}": True for letter in "ab"}
    overlay = overlay.with_states(base, states(1, names, {"team": "red", "other": "x"}))
    overlay = overlay.with_states(base, states(2, {"persistent://t/n/a": False}))
    overlay = overlay.with_states(base, states(2, {"persistent://t/n/c": True}))
    rows = overlay.matching(Mode.ALL, None)
    assert overlay.listed_with(rows, {}).tolist() == [False, True, True]
    assert overlay.listed_with(rows, {"team": "red"}).tolist() == [False, True, False]
    assert overlay.listed_with(rows, {"team": "blue"}).tolist() == [False, False, False]


def test_topics_that_no_client_sees_are_not_touched() -> None:
    base = Listing.from_names(NAMESPACE, Mode.ALL, [])
    overlay = Overlay.nothing(NAMESPACE).with_states(
        base, states(1, {"persistent://t/n/__change_events": True})
    )
    assert len(overlay) == 0
