"""What ``broker_core.testing`` exports, each thing imported when it is first used."""

from __future__ import annotations

import pytest

import broker_core.testing


@pytest.mark.parametrize("name", broker_core.testing.__all__)
def test_what_it_exports_is_there(name: str) -> None:
    assert getattr(broker_core.testing, name).__name__ == name


def test_what_it_does_not_export_is_not() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'server_of_nothing'"):
        _ = broker_core.testing.server_of_nothing
