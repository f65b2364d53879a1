from __future__ import annotations

from pathlib import Path

import pytest

from tests.differential.comparison import Pairs
from tests.differential.run import Result, run
from tests.differential.world import Side, World
from tests.support.distributions import ROOT


async def result_against(folder: Path, settings: dict[str, dict[str, object]], requests: int) -> Result:
    """What a run finds if the second server has these settings besides those of both."""
    with World(folder, (Side(ROOT), Side(ROOT, settings))).serving() as servers:
        return await run(servers, requests, seed=1)


async def test_a_server_answers_as_another_one_of_the_same_tree(tmp_path: Path) -> None:
    result = await result_against(tmp_path, {}, 400)
    assert result.differences == []
    assert result.audited > 20
    roads = {road for road, _ in result.answers}
    assert roads == {"pulsar", "v1", "admin", "kafka", "damaged", "login"}
    assert {answer for road, answer in result.answers if road == "v1"} >= {"200", "201", "400", "403", "404"}


async def test_a_planted_difference_is_found_on_each_road(tmp_path: Path) -> None:
    """Another role is the one that may do everything."""
    result = await result_against(tmp_path, {"authorization": {"super_roles": ["nobody"]}}, 100)
    found = {each.request.split(" as ")[0] for each in result.differences}
    assert found >= {"pulsar", "v1", "admin"}
    assert any(each.startswith("audit line of ") for each in found)
    assert all(each.first != each.second for each in result.differences)


ID, OTHER = b"a" * 22, b"b" * 22


def test_an_id_stands_for_one_topic() -> None:
    pairs = Pairs()
    first, second = pairs.translated(
        b'"%b" Etag: "%b"' % (ID, b"0" * 32), b'"%b" Etag: "%b"' % (OTHER, b"1" * 32)
    )
    assert first == second
    first, second = pairs.translated(
        b'with the ETag \\"%b\\"' % (b"0" * 32), b'with the ETag \\"%b\\"' % (b"1" * 32)
    )
    assert first == second
    first, second = pairs.translated(b"[%b]" % ID, b"[%b]" % (b"c" * 22))
    assert first != second


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (b"at 2026-01-01T00:00:00.5Z", b"at 2026-01-01T00:00:01Z"),
        (b'Content-Length: 9\n{"ms": 1.5}', b'Content-Length: 10\n{"ms": 0.25}'),
        (b'"address": "127.0.0.1:5000"', b'"address": "127.0.0.1:6000"'),
        (b"version id:3." + b"0" * 24, b"version id:3." + b"f" * 24),
    ],
)
def test_times_and_what_is_random_count_for_nothing(first: bytes, second: bytes) -> None:
    first, second = Pairs().translated(first, second)
    assert first == second


@pytest.mark.parametrize(
    ("first", "second"), [(b"Content-Length: 9\n", b"Content-Length: 8\n"), (b"3", b"4")]
)
def test_all_else_counts(first: bytes, second: bytes) -> None:
    first, second = Pairs().translated(first, second)
    assert first != second
