"""Helpers for tests of the checks before a start."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from broker_core.plugin_api.check_findings import Check
from broker_core.settings import Settings

__all__ = ["levels", "settings", "text"]


def settings(**tables: dict[str, Any]) -> Settings:
    return Settings(**{"pulsar": {"listen": "127.0.0.1:0"}} | tables)


def levels(found: Iterator[Check] | list[Check]) -> dict[str, str]:
    """The worst level of each name."""
    worst: dict[str, str] = {}
    for check in sorted(found, key=lambda check: ("ok", "warning", "error").index(check.level)):
        worst[check.name] = check.level
    return worst


def text(found: Iterator[Check] | list[Check], name: str) -> str:
    return " | ".join(check.text for check in found if check.name == name)
