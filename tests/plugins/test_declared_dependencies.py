"""Dependencies of a plugin: the declared ones, and those found while it runs."""

from __future__ import annotations

from structlog.testing import capture_logs

from broker_core import Asker
from broker_core.plugins.declared_dependencies import DeclaredDependencies
from tests.support.plugins import PluginOf, asked, loaded


def words(*declared: str) -> DeclaredDependencies:
    return DeclaredDependencies([loaded(PluginOf(depends_on=lambda: set(declared)))])


def test_words_only_become_more() -> None:
    of = words("pattern")
    assert of.of("p") == {"pattern"}
    assert frozenset(of._added["p"]) == frozenset()
    of.add("p", {"principal", "pattern"})
    of.add("p", {"client"})
    assert of.of("p") == {"pattern", "principal", "client"}
    assert frozenset(of._added["p"]) == {"principal", "client"}


def test_one_property_adds_nothing_to_all_of_them() -> None:
    of = words("properties")
    of.add("p", {"property:region"})
    assert frozenset(of._added["p"]) == frozenset()


def test_who_does_not_declare_the_principal_and_reads_it_is_told_once() -> None:
    of = words("properties")
    request = asked(asker=Asker("alice", "bob"))
    with capture_logs() as logs:
        told = of.request_for(request, "p")
        assert told.topics_pattern is None
        assert of.of("p") == {"properties"}, "nothing of the asker was read"
        assert told.asker.original_principal == "bob"
        assert of.request_for(request, "p").asker.role == "alice"
    assert [each["word"] for each in logs] == ["principal"]
    assert of.of("p") == {"properties", "principal"}
    assert of.request_for(request, "p") is request


def test_who_declares_the_client_and_reads_the_address_is_told_once() -> None:
    of = words("client", "principal")
    request = asked(asker=Asker(remote_address="192.0.2.7:1"))
    with capture_logs() as logs:
        for _ in range(2):
            told = of.request_for(request, "p")
            assert told.asker.client_version == ""
            assert told.asker.host == "192.0.2.7"
    assert [each["word"] for each in logs] == ["address"]
    assert of.of("p") == {"client", "principal", "address"}
    assert of.request_for(request, "p") is request
    assert words("client", "principal", "address").request_for(request, "p") is request
    assert words("pattern", "principal").request_for(request, "p") is request
