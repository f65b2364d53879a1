"""Manifests: they come back as they were, and nothing that was changed, cut or made by others does."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.change_log import CatalogVersion
from broker_core.listing.listing_hash import crc_text, extend_crc
from broker_core.names import Mode, NamespaceName
from broker_core.snapshots.stored.column_file import FileReference
from broker_core.snapshots.stored.file_errors import RefusedFile
from broker_core.snapshots.stored.manifest import FORMAT, SnapshotManifest, manifest_name

MANIFEST = SnapshotManifest(
    rules="1",
    catalog_id="id",
    namespace="tenant/ns",
    mode="ALL",
    version=7,
    stamp="ab",
    property_keys=("region",),
    nbytes=1000,
    asked=3,
    files=(
        FileReference(digest="0" * 32, size=10, rows=2, crc=1),
        FileReference(digest="a" * 32, size=5, rows=1, crc=2),
    ),
)


def test_it_comes_back() -> None:
    assert SnapshotManifest.from_bytes(MANIFEST.to_bytes()) == MANIFEST
    assert (MANIFEST.rows, MANIFEST.size) == (3, 15)
    assert MANIFEST.catalog_version == CatalogVersion("id", 7, "ab")
    assert MANIFEST.catalog_version.stamp == "ab"


def test_each_namespace_and_mode_has_a_name_of_its_own() -> None:
    names = {
        manifest_name(NamespaceName(tenant, "n"), mode, keys)
        for tenant in ("a", "b")
        for mode in Mode
        for keys in ((), ("k",))
    }
    assert len(names) == 12
    assert all(len(name) == 41 and name.endswith(".manifest") for name in names)


@given(st.data())
def test_whatever_is_changed_in_it_is_found(data: st.DataObject) -> None:
    content = MANIFEST.to_bytes()
    at = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        other = content[:at] + bytes([content[at] ^ data.draw(st.integers(1, 255))]) + content[at + 1 :]
    else:
        other = content[:at]
    with pytest.raises(RefusedFile):
        SnapshotManifest.from_bytes(other)


def signed(text: bytes) -> bytes:
    return (
        f"broker-core snapshot {FORMAT} {crc_text(extend_crc(0, memoryview(text)))} {len(text)}\n".encode()
        + text
    )


@pytest.mark.parametrize(
    "change",
    [
        {"version": -1},
        {"version": 10**400},
        {"version": 7.0},
        {"stamp": ""},
        {"rows": 1},
        {"files": [{"digest": "../" + "0" * 29, "size": 1, "rows": 1, "crc": 1}]},
        {"files": [{"digest": "0" * 32, "size": 2**40, "rows": 1, "crc": 1}]},
        {"files": [{"digest": "0" * 32, "size": 0, "rows": 1, "crc": 1}]},
        {"files": [{"digest": "0" * 33, "size": 1, "rows": 1, "crc": 1}]},
        {"files": {}},
        {"files": []},
        {"namespace": "no namespace"},
        {"mode": "SOME"},
        {"property_keys": [1]},
    ],
)
def test_one_that_lies_with_a_right_checksum_is_refused(change: dict[str, Any]) -> None:
    values = json.loads(MANIFEST.model_dump_json())
    assert SnapshotManifest.from_bytes(signed(json.dumps(values).encode())) == MANIFEST
    with pytest.raises(RefusedFile, match="it is wrong"):
        SnapshotManifest.from_bytes(signed(json.dumps(values | change).encode()))


@pytest.mark.parametrize("text", [b"", b"[" * 100_000, b"null", b"\xff", b"{}"])
def test_one_that_is_no_manifest_at_all_is_refused(text: bytes) -> None:
    with pytest.raises(RefusedFile):
        SnapshotManifest.from_bytes(signed(text))
    with pytest.raises(RefusedFile):
        SnapshotManifest.from_bytes(text)


def test_one_of_another_format_is_refused() -> None:
    other = MANIFEST.to_bytes().replace(b"snapshot 1 ", b"snapshot 2 ")
    with pytest.raises(RefusedFile, match="another format"):
        SnapshotManifest.from_bytes(other)
