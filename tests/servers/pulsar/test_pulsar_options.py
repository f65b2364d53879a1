"""The options of a server of Pulsar's protocol."""

from __future__ import annotations

from broker_core.servers.admission import FileBudget
from broker_core.servers.pulsar.command_handler import PulsarOptions
from broker_core.settings import LimitsSettings, PulsarSettings, Settings


def test_the_tables_of_settings_are_taken_as_they_are() -> None:
    options = PulsarOptions()
    assert (options.pulsar, options.limits) == (PulsarSettings(), LimitsSettings())
    assert (options.connections, options.file_ceiling) == (None, None)


def test_a_broker_has_as_many_clients_as_there_is_room_for() -> None:
    files = FileBudget.of_process()
    options = PulsarOptions.of(Settings(), files, "1.2", lambda: None)
    assert (options.connections, options.server_version) == (files.clients, "broker-core 1.2")
    few = Settings.model_validate({"limits": {"connections": 7}})
    assert PulsarOptions.of(few, files, "1.2", lambda: "gateway").connections == 7
