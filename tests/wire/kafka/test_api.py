from __future__ import annotations

from broker_core.wire.kafka import API_VERSIONS, APIS


def test_an_api_is_flexible_from_a_version_on() -> None:
    assert not API_VERSIONS.is_flexible(2)
    assert API_VERSIONS.is_flexible(3)


def test_apis_are_found_by_their_keys() -> None:
    assert all(api.key == key for key, api in APIS.items())
