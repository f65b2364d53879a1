"""Versions as text, there and back."""

from __future__ import annotations

import pytest

from broker_core.change_log import CatalogVersion
from broker_core.errors import InvalidName
from broker_core.service import read_version, version_text


@pytest.mark.parametrize("stamp", ["", "5f0c"])
def test_versions_are_read_again(stamp: str) -> None:
    version = CatalogVersion("cafe", 12, stamp)
    found = read_version(version_text(version))
    assert (found, found.stamp) == (version, stamp)


@pytest.mark.parametrize("wrong", ["", "12", ".", ":1", "cafe:", "cafe:-1", "cafe:x.5f", "cafe:12.5f.6a"])
def test_what_is_no_version(wrong: str) -> None:
    with pytest.raises(InvalidName):
        read_version(wrong)
