"""The options of a server of Pulsar's protocol."""

from __future__ import annotations

from broker_core.servers.pulsar.options import PulsarOptions
from broker_core.settings import LimitsSettings, PulsarSettings


def test_the_tables_of_settings_are_taken_as_they_are() -> None:
    options = PulsarOptions()
    assert (options.pulsar, options.limits) == (PulsarSettings(), LimitsSettings())
    assert (options.connections, options.file_ceiling) == (None, None)
