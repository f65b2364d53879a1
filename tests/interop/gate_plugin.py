"""The plugins of the scenes. A scene rewrites its rules, a JSON file, while the server runs.

The file maps a namespace to its rules:
    "fail": true                   every listing raises
    "hide": "secret"               topics with this text in their name are masked out, for everybody
    "roles": {"ROLE": "orders-"}   a role sees only the topics with this text in their name; a role without a text: none
    "teams": {"blue": [names]}     who gives the property `team` gets these topics; who gives none passes
    "topics": [names]              everybody gets these topics
    "noise": 1000                  and so many names of long topics that do not exist
Each question is written down as a JSON line, so that a scene sees what reached the plugin.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict

from broker_core import ListingRequest, NamespaceName, TopicListingResult, hookimpl
from tests.support.narrowed import present


class GateSettings(BaseModel):
    """The plugin's own table."""

    model_config = ConfigDict(extra="forbid")

    rules: Path
    questions: Path


class Gate:
    """Decides by the rules of the namespace."""

    def __init__(self) -> None:
        self._settings: GateSettings | None = None
        self._writing = threading.Lock()

    @hookimpl
    def broker_core_settings(self) -> type[BaseModel]:
        return GateSettings

    @hookimpl
    def broker_core_startup(self, broker: Any, settings: GateSettings) -> None:
        self._settings = settings

    @hookimpl
    def broker_core_list_topics(
        self, request: ListingRequest, namespace: NamespaceName, properties: Mapping[str, str]
    ) -> TopicListingResult | None:
        rules = self._rules(namespace)
        failing = bool(rules.get("fail"))
        self._write_down(request, failing=failing)
        if failing:
            raise RuntimeError(f"the rules of {namespace} say: fail")
        teams = rules.get("teams", {})
        if "team" in properties:
            return TopicListingResult.success(teams.get(properties["team"], []))
        if "topics" in rules:
            noise = (
                f"persistent://{namespace}/noise-{number:060d}" for number in range(rules.get("noise", 0))
            )
            return TopicListingResult.success([*rules["topics"], *noise])
        return None

    @hookimpl
    def broker_core_visible(self, request: ListingRequest, topics: pa.LargeStringArray) -> Any:
        rules = self._rules(request.namespace)
        if "roles" in rules:
            shown = rules["roles"].get(request.asker.role)
            return pc.match_substring(topics, "\n" if shown is None else shown)
        hide = rules.get("hide")
        return pc.invert(pc.match_substring(topics, hide)) if hide else None

    def _rules(self, namespace: NamespaceName) -> dict[str, Any]:
        rules: dict[str, Any] = json.loads(present(self._settings).rules.read_text(encoding="utf-8")).get(
            str(namespace), {}
        )
        return rules

    def _write_down(self, request: ListingRequest, *, failing: bool) -> None:
        assert self._settings is not None
        question = {
            "namespace": str(request.namespace),
            "pattern": request.topics_pattern,
            "hash": request.topics_hash,
            "properties": dict(request.properties),
            "client": request.asker.client_version,
            "role": request.asker.role,
            "failed": failing,
        }
        with self._writing, self._settings.questions.open("a", encoding="utf-8") as out:
            out.write(json.dumps(question) + "\n")


class Watchable(Gate):
    """The rules `fail` and `hide`, in namespaces that can be watched: it declares that no property matters, and tells
    of other rules."""

    @hookimpl
    def broker_core_depends_on(self) -> list[str]:
        return []

    @hookimpl
    def broker_core_startup(self, broker: Any, settings: GateSettings) -> None:
        super().broker_core_startup(broker, settings)

        def follow(stop: threading.Event) -> None:
            last = settings.rules.stat().st_mtime_ns
            while not stop.wait(0.02):
                if (now := settings.rules.stat().st_mtime_ns) != last:
                    last = now
                    broker.topics_changed(None)

        broker.spawn(follow, name="rules")


plugin, watchable = Gate(), Watchable()
