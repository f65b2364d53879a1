"""The forms of a change count as one event."""

from __future__ import annotations

from broker_core.service.following.follower import ChangeEvent
from tests.support.followers import RecordingFollower


def test_an_event_has_the_size_of_all_its_forms() -> None:
    renderer = RecordingFollower.renderer
    assert ChangeEvent("a", "b", {}).size == 0
    assert ChangeEvent("a", "b", {renderer: (b"one", b"three")}).size == 8
