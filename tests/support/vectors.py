"""The recorded vectors of ``tests/vectors`` (its README says where they come from)."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["VECTORS", "frames", "pattern_vectors", "watch_steps"]

VECTORS = Path(__file__).parent.parent / "vectors"


@cache
def pattern_vectors() -> dict[str, Any]:
    """``source``, ``namespace``, ``stored_names``, ``notes`` and ``cases`` of the recorded listings."""
    loaded: dict[str, Any] = json.loads((VECTORS / "pulsar-4.2.4-patterns.json").read_text(encoding="utf-8"))
    return loaded


def watch_steps() -> list[dict[str, Any]]:
    """The notifications of a real broker's watcher: steps (``after``), each with the commands that followed."""
    loaded: list[dict[str, Any]] = json.loads(
        (VECTORS / "pulsar-4.2.4-watch.json").read_text(encoding="utf-8")
    )
    return loaded[1:]


def frames(client: str) -> list[dict[str, Any]]:
    """The recorded lines of ``java``, ``go`` or ``python``; those with a ``hex`` are frames, the others events."""
    with (VECTORS / "frames" / f"{client}.jsonl").open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@cache
def acl_cases() -> list[dict[str, Any]]:
    """The recorded decisions of Kafka's authorizer: ``everyone``, ``acls`` and what ``asks`` were answered."""
    with (VECTORS / "kafka-4.3.1-acls.jsonl").open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@cache
def acl_filters() -> dict[str, Any]:
    """What the APIs of ACLs of a real Kafka broker said: ``acls``, ``describe``, ``delete`` and ``create``."""
    loaded: dict[str, Any] = json.loads(
        (VECTORS / "kafka-4.3.1-acl-filters.json").read_text(encoding="utf-8")
    )
    return loaded


@cache
def acl_answers() -> dict[str, Any]:
    """What a real Kafka broker answers to a client: by the name of what it may do, ``acls`` and ``answers``."""
    loaded: dict[str, Any] = json.loads(
        (VECTORS / "kafka-4.3.1-acl-answers.json").read_text(encoding="utf-8")
    )
    return loaded
