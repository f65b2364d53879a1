"""Keys and tokens that `pulsar tokens` of Apache Pulsar 4.2.4 has made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

__all__ = ["RECORDED"]

RECORDED: Final[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "vectors" / "pulsar-4.2.4-tokens.json").read_text(encoding="utf-8")
)
