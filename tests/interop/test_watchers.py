"""A broker whose topic list watchers are on would lead Java clients past the gateway: a warning at start says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.conftest import gateway_settings
from tests.interop.pulsar_peer import PulsarBroker
from tests.support.eventually import eventually_sync
from tests.support.served import Served

pytestmark = pytest.mark.interop

_SWITCH = "enableBrokerTopicListWatcher"


def test_watchers_on_is_a_warning_at_start(pulsar_broker: PulsarBroker, tmp_path: Path) -> None:
    watching = PulsarBroker(tmp_path / "pulsar", heap="384m", settings={_SWITCH: "true"})
    with watching, Served(tmp_path / "gateway", gateway_settings(watching)) as served:
        eventually_sync(lambda: _SWITCH in served.log.read_text(), what="a warning that names the setting")
        line = next(line for line in served.log.read_text().splitlines() if _SWITCH in line)
        assert "warn" in line.lower()


def test_watchers_off_is_none(gateway: Served) -> None:
    assert _SWITCH not in gateway.log.read_text()
