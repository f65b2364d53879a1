"""The files of the page, as they are in the repository and in the wheel."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Final

from broker_core_explorer import plugin
from broker_core_explorer.settings import ExplorerSettings

STATIC: Final = Path(plugin.__file__).parent / "static"
#: Bytes of files that the server does not compress, as in site_files.py.
_LEAST_GZIP: Final = 512


def files() -> list[Path]:
    """What a browser loads; licences and the README of what is vendored are served beside it, and never asked for."""
    return [path for path in STATIC.rglob("*") if path.suffix in {".html", ".css", ".js", ".svg"}]


def test_it_is_small() -> None:
    """By what a browser is sent: small files as they are, and the hash of the files in the addresses of the first."""
    sent = [path.read_bytes().replace(b"@files/", b"@0123456789abcdef/") for path in files()]
    packed = [each if len(each) < _LEAST_GZIP else gzip.compress(each, 9) for each in sent]
    assert sum(map(len, packed)) <= 60_000


def test_it_names_no_other_host_and_needs_no_build() -> None:
    for path in files():
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/", "")
        if path.parent.name != "vendor":
            assert not re.search(r"https?://", text), path
            assert "innerHTML" not in text, path
        assert not re.search(r"\beval\(|\bnew Function\b|sourceMappingURL", text), path
        for name in re.findall(r"\bfrom '([^']+)'|\bfrom\"([^\"]+)\"", text):
            assert (path.parent / "".join(name)).is_file(), f"{path} imports {name}"


def test_it_is_one_site_which_changes_something_if_that_is_set() -> None:
    assert plugin.broker_core_settings() is ExplorerSettings
    for writes in (False, True):
        site = plugin.broker_core_http_routes(ExplorerSettings(writes=writes))
        assert (site.prefix, site.files, site.changes) == ("/", STATIC, writes)
        assert [(each.name, each.needs) for each in site.screens] == [
            ("kafka", "monitor"),
            ("watchers", "monitor"),
            ("held", "credentials"),
        ]
        assert {STATIC / each.module for each in site.screens} == {STATIC / "screens" / "server.js"}
