"""What a server of Pulsar's protocol is set up with."""

from __future__ import annotations

from broker_core.servers.pulsar.options import PulsarOptions


def test_without_settings_there_is_room_for_everybody() -> None:
    options = PulsarOptions()
    assert (options.connections, options.connections_per_address, options.file_ceiling) == (None, 0, None)
