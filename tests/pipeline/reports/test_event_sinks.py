"""What a server tells of listings is opened by its settings, and nothing by default."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from broker_core.pipeline import EventSinks, open_event_sinks
from broker_core.pipeline.reports.event_sinks import TracingUnavailable
from broker_core.reloads import LiveSettings, Reloads
from broker_core.settings import AccessLogSettings, LogSettings, Settings, TracingSettings


async def test_nothing_is_told_by_default() -> None:
    reloads = Reloads()
    async with open_event_sinks(LiveSettings(Settings()), reloads) as sinks:
        assert sinks == EventSinks()
    assert reloads.parts == ()


async def test_the_last_lines_of_the_access_log_are_written_at_the_end(tmp_path: Path) -> None:
    reloads = Reloads()
    settings = Settings(log=LogSettings(access=AccessLogSettings(path=tmp_path / "access.jsonl")))
    async with open_event_sinks(LiveSettings(settings), reloads) as sinks:
        assert reloads.parts == ("access log",)
        assert sinks.access_log is not None
        sinks.access_log.write('"x":1')
    assert (tmp_path / "access.jsonl").read_text().endswith('"x":1}\n')


async def test_tracing_needs_its_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "broker_core.tracing.open_telemetry", raising=False)
    monkeypatch.delitem(sys.modules["broker_core.tracing"].__dict__, "Tracing", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(TracingUnavailable, match="needs the libraries of the extra otel"):
        async with open_event_sinks(LiveSettings(Settings(tracing=TracingSettings(endpoint=""))), Reloads()):
            pass


def test_nothing_of_tracing_is_imported_by_default() -> None:
    script = (
        "import sys, broker_core.broker; print([name for name in sys.modules if 'opentelemetry' in name])"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"
