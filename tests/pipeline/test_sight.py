"""What a server tells of listings is opened by its settings, and nothing by default."""

from __future__ import annotations

from pathlib import Path

from broker_core.pipeline import Sight, open_sight
from broker_core.settings import AccessLogSettings, LogSettings, Settings
from broker_core.sighup_reloads import Reloads


async def test_nothing_is_told_by_default() -> None:
    reloads = Reloads()
    async with open_sight(Settings(), reloads) as sight:
        assert sight == Sight()
    assert reloads.parts == ()


async def test_the_last_lines_of_the_access_log_are_written_at_the_end(tmp_path: Path) -> None:
    reloads = Reloads()
    settings = Settings(log=LogSettings(access=AccessLogSettings(path=tmp_path / "access.jsonl")))
    async with open_sight(settings, reloads) as sight:
        assert reloads.parts == ("access log",)
        assert sight.access_log is not None
        sight.access_log.write('"x": 1')
    assert (tmp_path / "access.jsonl").read_text().endswith('"x": 1}\n')
