"""The official clients, unmodified, with the gateway as their service URL and a real broker behind it.

All scenes play at the same time, so that what their clients wait for is waited for once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future

import pytest

from tests.interop import scenes_java, scenes_python
from tests.interop.playing_scenes import playing_scenes
from tests.interop.stage import Stage

pytestmark = pytest.mark.interop

SCENES: dict[str, Callable[[Stage], None]] = {
    "java-properties": scenes_java.is_told_by_its_properties,
    "java-later": scenes_java.finds_what_is_created_later,
    "java-failing": scenes_java.loses_nothing_while_the_plugin_fails,
    "java-limit": scenes_java.outlives_a_listing_beyond_its_limit,
    "python-large": scenes_python.reads_a_large_listing,
    "python-shown": scenes_python.sees_what_the_plugin_shows,
    "python-failing": scenes_python.loses_nothing_while_the_plugin_fails,
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
