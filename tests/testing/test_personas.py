"""Askers in tests of plugins."""

from __future__ import annotations

import pytest

from broker_core.access.asker import Asker
from broker_core.client import default_client_version
from broker_core.testing.personas import Persona, Personas, asker_of


def test_only_who_knows_the_name_is_the_persona() -> None:
    personas = Personas()
    name = personas.announce(
        Persona(role="auditor", address="203.0.113.7", client_version="Pulsar-Java-v4.2.4")
    )
    connection = object()
    came = Asker(
        remote_address="127.0.0.1:50000", client_version=name, protocol_version=21, connection=connection
    )
    seen = personas.identify(came)
    assert (seen.role, seen.remote_address, seen.client_version) == (
        "auditor",
        "203.0.113.7:0",
        "Pulsar-Java-v4.2.4",
    )
    assert (seen.protocol_version, seen.connection) == (21, connection)
    other = Asker(remote_address="127.0.0.1:50001", client_version="Pulsar-Java-v4.2.4")
    assert personas.identify(other) is other
    assert personas.announce(Persona(role="auditor")) != name


def test_what_a_persona_does_not_say_stays() -> None:
    seen = asker_of(Persona(role="auditor"), Asker(remote_address="[::1]:7"))
    assert (seen.remote_address, seen.client_version) == ("[::1]:7", default_client_version())
    assert Persona(client_version="x").is_plain
    assert not Persona(role="auditor").is_plain


def test_what_is_no_address_is_said_at_once() -> None:
    with pytest.raises(ValueError, match="address 'a:b': expected HOST or HOST:PORT"):
        Persona(address="a:b")
