"""The queries of examples/monitoring, with what Grafana puts in place of its variables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import yaml  # type: ignore[import-untyped]

from tests.support.distributions import ROOT

__all__ = ["RULES", "dashboard_queries", "rules"]

_FOLDER = ROOT / "examples" / "monitoring"
RULES = _FOLDER / "alerts.yaml"
_VARIABLES = {"$__rate_interval": "5m", "$job": ".+", "$instance": ".+"}


def dashboard_queries() -> Iterator[tuple[str, str]]:
    """Each query with the title of its panel."""
    board = json.loads((_FOLDER / "dashboard.json").read_text(encoding="utf-8"))
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            query = target["expr"]
            for variable, value in _VARIABLES.items():
                query = query.replace(variable, value)
            assert "$" not in query, query
            yield panel["title"], query


def rules() -> list[dict[str, Any]]:
    """The alert rules."""
    (group,) = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found
