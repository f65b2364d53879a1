"""Installs the plugin of the scenes as a distribution, and writes its rules."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.eventually import eventually_sync

__all__ = ["Gate"]

_METADATA = "Metadata-Version: 2.1\nName: interop-gate\nVersion: 1.0\n"
_ENTRY_POINTS = "[broker_core]\ngate = interop_gate:plugin\nwatchable = interop_gate:watchable\n"


class Gate:
    """The rules of the plugins `gate` and `watchable`, and the questions that they were asked; for several threads."""

    def __init__(self, folder: Path) -> None:
        #: Put on the path of a server, this is where the distribution `interop-gate` is found.
        self.site = folder / "site"
        info = self.site / "interop_gate-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(_METADATA)
        (info / "entry_points.txt").write_text(_ENTRY_POINTS)
        shutil.copy(Path(__file__).with_name("gate_plugin.py"), self.site / "interop_gate.py")
        self._rules_file = folder / "rules.json"
        self._questions_file = folder / "questions.jsonl"
        self._questions_file.touch()
        self._rules: dict[str, Mapping[str, Any]] = {}
        self._changing = threading.Lock()
        self.rule("public/none")

    @property
    def settings(self) -> dict[str, str]:
        """The own table of either plugin."""
        return {"rules": str(self._rules_file), "questions": str(self._questions_file)}

    def rule(self, namespace: str, **rules: Any) -> None:
        """Replace the rules of a namespace; they hold from the next question on."""
        with self._changing:
            self._rules[namespace] = rules
            fresh = self._rules_file.with_suffix(".new")
            fresh.write_text(json.dumps(self._rules))
            fresh.replace(self._rules_file)

    def questions(self, namespace: str) -> list[dict[str, Any]]:
        """What the plugin was asked about a namespace, oldest first."""
        lines = self._questions_file.read_text(encoding="utf-8").splitlines()
        return [asked for asked in map(json.loads, lines) if asked["namespace"] == namespace]

    def wait_for_failures(self, namespace: str, count: int, timeout: float) -> None:
        """Until ``count`` questions about a namespace have failed."""

        def enough() -> bool:
            return sum(bool(asked["failed"]) for asked in self.questions(namespace)) >= count

        eventually_sync(enough, timeout, what=f"{count} failed listings of {namespace}")

    def wait_for_questions(self, namespace: str, count: int, timeout: float) -> None:
        """Until ``count`` questions about a namespace were asked."""
        eventually_sync(
            lambda: len(self.questions(namespace)) >= count, timeout, what=f"{count} listings of {namespace}"
        )
