"""A patched answer equals matching all names anew, whatever changed."""

from __future__ import annotations

import random
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_core.listing.listing import Listing, Selection
from broker_core.listing.topics_hash import topics_hash
from broker_core.names import Mode, TopicName
from broker_core.patterns import TopicsPattern, compile_pattern
from broker_core_spark.serving.changes.answer_patch import patch_for, patched
from broker_core_spark.serving.changes.overlay import NameState, Overlay
from tests.support.topics import NAMESPACE, assert_listing, assert_selection, full_names, visible

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


def asked(
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


def of_generation(names: list[str], mode: Mode, wanted: list[str]) -> tuple[Selection, int]:
    """A precomputed answer, and the row of the listing of all modes where its listing begins."""
    listing = Listing.from_names(NAMESPACE, mode, [n for n in names if mode.lists(TopicName.parse(n).domain)])
    rows = listing.positions(pa.array(wanted, pa.large_string())) if wanted else np.empty(0, np.int64)
    others = sum(name.startswith("non-") for name in visible(names)) if mode is Mode.PERSISTENT else 0
    return listing.rows(rows), others


def touched_by(base: Listing, steps: list[dict[str, tuple[bool, str | None]]]) -> Overlay:
    overlay = Overlay.nothing(NAMESPACE, ["team"])
    for number, step in enumerate(steps, 1):
        states = {
            name: NameState(listed, {} if team is None else {"team": team}, number)
            for name, (listed, team) in step.items()
        }
        overlay = overlay.with_states(base, states)
    return overlay


@settings(max_examples=200)
@given(st.sampled_from(Mode), st.sampled_from(PATTERNS), st.sampled_from(TEAMS), st.data())
def test_an_answer_after_changes_is_what_matching_anew_gives(
    mode: Mode, pattern: TopicsPattern | None, team: str | None, data: st.DataObject
) -> None:
    teams = st.sampled_from(TEAMS)
    names: Names = data.draw(st.dictionaries(full_names(), teams, max_size=20))
    properties = {} if team is None else {"team": team}
    wanted = asked(names, mode, pattern, properties)
    base, first_row = of_generation(list(names), mode, wanted)
    known = st.one_of(full_names(), st.sampled_from(sorted(names))) if names else full_names()
    step = st.dictionaries(known, st.tuples(st.booleans(), teams), max_size=6)
    steps = data.draw(st.lists(step, min_size=1, max_size=3))
    overlay = touched_by(Listing.from_names(NAMESPACE, Mode.ALL, list(names)), steps)
    for each in steps:
        for name, (listed, of_team) in each.items():
            if listed:
                names[name] = of_team
            else:
                names.pop(name, None)

    expected = asked(names, mode, pattern, properties)
    rows = overlay.matching(mode, pattern)
    patch = patch_for(base, first_row, overlay, rows, properties)
    if patch is None:
        assert expected == wanted
        return
    assert expected != wanted
    answer = patched(base, overlay, patch, pattern)
    assert len(answer) == len(base) + len(patch.added) - len(patch.removed)
    assert answer.topics_hash == topics_hash(expected)
    assert_selection(answer, expected)
    assert_listing(answer.listing, expected)


@pytest.mark.parametrize("scattered", [False, True], ids=["slice", "rows"])
def test_many_changes_of_a_long_answer(scattered: bool) -> None:
    chosen = random.Random(5)
    every = [f"persistent://t/n/{number:06}{'x' * (number % 140)}" for number in range(20_000)]
    names = [name for name in every if chosen.random() < 0.8]
    pattern = compile_pattern("t/n/.*[02468]x*" if scattered else "t/n/0[1-8].*")
    base = Listing.from_names(NAMESPACE, Mode.PERSISTENT, names).matching(pattern)
    assert base.is_slice is not scattered
    step: dict[str, tuple[bool, str | None]] = {
        name: (chosen.random() < 0.5, None) for name in chosen.sample(every, 3000)
    }
    overlay = touched_by(Listing.from_names(NAMESPACE, Mode.ALL, names), [step])
    now = dict.fromkeys(names)
    for name, (listed, _) in step.items():
        now.pop(name, None)
        if listed:
            now[name] = None
    expected = asked(now, Mode.PERSISTENT, pattern, {})
    patch = patch_for(base, 0, overlay, overlay.matching(Mode.PERSISTENT, pattern), {})
    assert patch is not None
    answer = patched(base, overlay, patch, pattern)
    assert_selection(answer, expected)


def test_what_is_as_before_again_is_no_change() -> None:
    names = [f"persistent://t/n/{letter}" for letter in "abc"]
    base = Listing.from_names(NAMESPACE, Mode.PERSISTENT, names)
    steps: list[dict[str, tuple[bool, str | None]]] = [
        {names[0]: (False, None), "persistent://t/n/d": (True, None)},
        {names[0]: (True, "red"), "persistent://t/n/d": (False, None)},
    ]
    overlay = touched_by(base, steps)
    rows = overlay.matching(Mode.PERSISTENT, None)
    assert len(rows) == 2
    assert patch_for(base.all(), 0, overlay, rows, {}) is None
    nobody = base.rows(np.empty(0, np.int64))
    assert patch_for(nobody, 0, overlay, rows, {"team": "red"}) is not None
