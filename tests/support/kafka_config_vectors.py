"""What a Kafka 4.3.1 broker said of topic configs (``tests/vectors/kafka-4.3.1-configs.json``)."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from tests.support.vectors import VECTORS

__all__ = ["config_vectors"]


@cache
def config_vectors() -> dict[str, Any]:
    """The file; its ``notes`` say what is in it."""
    loaded: dict[str, Any] = json.loads((VECTORS / "kafka-4.3.1-configs.json").read_text(encoding="utf-8"))
    return loaded
