from __future__ import annotations

from broker_core.kafka.configs.definitions import DEFINITIONS
from broker_core.kafka.configs.documentation import DOCUMENTATION


def test_every_config_is_documented() -> None:
    assert list(DOCUMENTATION) == list(DEFINITIONS)
    assert all(DOCUMENTATION.values())
