"""What `check` says while a server runs: asked once for all, and never of a process that does not end."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from broker_core.cli.server_process.settings_check import SettingsCheck
from tests.support.narrowed import present


async def test_callers_share_one_run(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text("[pulsar\n")
    check = SettingsCheck([f"--config={tmp_path / 's.toml'}"])
    first, second = await asyncio.gather(check(), check())
    assert first is second
    (found,) = first.found
    assert (found.level, found.name, "not valid TOML" in found.text) == ("error", "settings", True)
    assert await check() is first
    await check.stop()


async def test_a_command_that_fails_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    check = SettingsCheck(["--no-such-option"])
    (found,) = (await check()).found
    assert (found.level, found.text) == ("error", "the command `check` ended with 2")
    monkeypatch.setattr(sys, "executable", "/absent/python")
    (found,) = (await SettingsCheck([])()).found
    assert (found.level, "FileNotFoundError" in found.text) == ("error", True)


async def test_a_caller_that_leaves_does_not_end_it_and_the_server_does() -> None:
    check = SettingsCheck([])
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await check()
    run = present(check._run)
    assert not run.done()
    await check.stop()
    assert run.cancelled()
