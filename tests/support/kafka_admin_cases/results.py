"""What a client made of an answer, without what differs from run to run: ids, ports, the cluster."""

from __future__ import annotations

import json
import re
import uuid
from typing import Final

__all__ = ["canonical", "normal"]

_BASE64_ID: Final = re.compile(r"\b[A-Za-z0-9_-]{22}\b")
_HEX_ID: Final = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")


def normal(value: object, key: str = "") -> object:
    """JSON-able, without what differs from run to run."""
    if hasattr(value, "to_dict"):  # a response of kafka-python
        value = value.to_dict()
    if isinstance(value, dict):
        return {str(k): normal(v, str(k)) for k, v in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(normal(v, key) for v in value)  # type: ignore[type-var]
    if isinstance(value, (list, tuple)):
        return [normal(v, key) for v in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, uuid.UUID):
        return "<id>"
    if key in ("finalized_features_epoch", "port"):
        return f"<{key}>"
    if isinstance(value, str):
        if key == "cluster_id":
            return "<cluster>"
        if key == "topic_id":
            return value if value == "AAAAAAAAAAAAAAAAAAAAAA" else "<id>"
        value = _HEX_ID.sub("<id>", value)
        return _BASE64_ID.sub(lambda m: "<id>" if re.search("[0-9A-Z]", m[0]) else m[0], value)
    return value


def canonical(case: str, value: object) -> object:
    """For comparing: Kafka promises no order of rows, except in pages."""
    if isinstance(value, dict):
        return {k: canonical(case, v) for k, v in value.items()}
    if isinstance(value, list):
        rows = [canonical(case, v) for v in value]
        return rows if "pages" in case else sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))
    return value
