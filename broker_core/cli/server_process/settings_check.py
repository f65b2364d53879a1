"""Runs of `broker-core check` for a running server, in a process of their own.

A check loads plugins, opens files and connects to databases, and a plugin's check may do anything: none of that may
happen in the process that serves clients.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from broker_core.cli.exit_codes import EXIT_FAILED
from broker_core.plugin_api import Check
from broker_core.servers.http import CheckResult

__all__ = ["SettingsCheck"]

#: Seconds for which a result is used again.
_FRESH: Final = 30.0
#: Seconds until the command is given up; it bounds each of its checks itself.
_PATIENCE: Final = 660.0


class SettingsCheck:
    """Runner of `check` with the given arguments: one run at a time, and not again within half a minute."""

    def __init__(self, arguments: Sequence[str]) -> None:
        # Without the working directory in its path, as the command itself runs.
        command = [sys.executable, "-P", "-m", "broker_core.cli", "check", "--by-server", "--format=json"]
        self._command = [*command, *arguments]
        self._run: asyncio.Task[CheckResult] | None = None

    async def __call__(self) -> CheckResult:
        """The result, and its time. A cancelled caller does not end the run for the others."""
        run = self._run
        if run is None or (run.done() and (run.cancelled() or time.time() - run.result().at > _FRESH)):
            run = self._run = asyncio.get_running_loop().create_task(self._checked(), name="check")
        return await asyncio.shield(run)

    async def stop(self) -> None:
        """Give up a run under way."""
        if self._run is not None:
            self._run.cancel()
            await asyncio.wait([self._run])

    async def _checked(self) -> CheckResult:
        started = time.time()
        try:
            async with asyncio.timeout(_PATIENCE):
                return CheckResult(await self._checks(), started)
        except (OSError, ValueError, TypeError, TimeoutError) as error:
            why = "it takes too long" if isinstance(error, TimeoutError) else type(error).__name__
            return CheckResult([Check.error("check", f"the command `check` has no result: {why}")], started)

    async def _checks(self) -> list[Check]:
        process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            said, _ = await process.communicate()
        except BaseException:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            raise
        if process.returncode not in {0, EXIT_FAILED}:
            return [Check.error("check", f"the command `check` ended with {process.returncode}")]
        return [Check(each["level"], each["name"], each["text"]) for each in json.loads(said)]
