"""Brokers that start after the gateway, with their topic list watchers on.

Such watchers would lead Java clients past the gateway, so the gateway warns as soon as it sees them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks.wire_client import Answer, RawClient, get_topics_frame, read_answer
from tests.interop.conftest import gateway_settings
from tests.interop.pulsar_peer import PulsarBroker
from tests.support.eventually import eventually_sync
from tests.support.ports import free_ports
from tests.support.served import Served

pytestmark = pytest.mark.interop

_SWITCH = "enableBrokerTopicListWatcher"


def _list(served: Served) -> Answer:
    client = RawClient(served.address)
    try:
        return read_answer(client.ask(get_topics_frame(1, "public/late")))
    finally:
        client.close()


def test_brokers_may_come_later_and_watchers_of_theirs_are_a_warning(
    pulsar_broker: PulsarBroker, tmp_path: Path
) -> None:
    binary, http = free_ports(2)
    late = PulsarBroker(tmp_path / "pulsar", heap="384m", settings={_SWITCH: "true"}, ports=(binary, http))
    with Served(tmp_path / "gateway", gateway_settings(late)) as served:
        # Nobody there is an error, never a namespace without topics: clients would unsubscribe.
        assert _list(served).error is not None
        with late:
            late.admin.create_namespace("public/late")
            late.admin.create_topic("persistent://public/late/here")
            eventually_sync(lambda: _list(served).topics == 1, 60, what="a listing of the broker that came")
            eventually_sync(
                lambda: _SWITCH in served.log.read_text(), what="a warning that names the setting"
            )
            line = next(line for line in served.log.read_text().splitlines() if _SWITCH in line)
            assert "warn" in line.lower()
        gone = _list(served)
        assert gone.error is not None
        assert gone.topics == 0


def test_watchers_off_is_no_warning(gateway: Served) -> None:
    assert _SWITCH not in gateway.log.read_text()
