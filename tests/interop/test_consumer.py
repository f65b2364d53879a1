"""`broker_core.consumer` with the gateway as its service URL and a real broker behind it; all scenes play together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future

import pytest

from tests.interop import scenes_consumer
from tests.interop.playing_scenes import playing_scenes
from tests.interop.stage import Stage

pytestmark = pytest.mark.interop

SCENES: dict[str, Callable[[Stage], None]] = {
    "properties": scenes_consumer.is_told_by_its_properties,
    "leaving": scenes_consumer.closes_what_leaves_and_goes_on_when_it_returns,
    "failing": scenes_consumer.loses_nothing_while_the_plugin_fails,
    "settling": scenes_consumer.settles_messages,
    "types": scenes_consumer.shares_and_takes_over,
    "seeking": scenes_consumer.goes_on_elsewhere,
    "catalogue": scenes_consumer.is_listed_by_another_server,
}
_LONGEST = 1200.0


@pytest.fixture(scope="module")
def playing(
    request: pytest.FixtureRequest, new_stage: Callable[[str], Stage]
) -> Iterator[dict[str, Future[None]]]:
    """The scenes that were selected, all of them playing."""
    with playing_scenes(request, SCENES, new_stage) as scenes:
        yield scenes


@pytest.mark.parametrize("scene", SCENES)
def test_scene(playing: dict[str, Future[None]], scene: str) -> None:
    playing[scene].result(_LONGEST)
