"""Detection of a running broker-core, by a request that it does not count as a failed client."""

from __future__ import annotations

import json
from typing import Final

__all__ = ["PATIENCE", "is_live"]

#: Seconds that a broker-core has to answer.
PATIENCE: Final = 2.0


def is_live(url: str) -> bool:
    """Whether a broker-core answers a health request at an address, ``http://...`` or ``unix:...``."""
    from broker_core.cli.running_broker import BrokerUnreachable, get

    try:
        return bool(json.loads(get(url, "/-/live", timeout=PATIENCE)) == {"status": "live"})
    except BrokerUnreachable as failure:
        return failure.wants_credentials
    except ValueError:
        return False
