"""What can happen to a folder of stored snapshots: each by a name, as a function that does it to a folder."""

from __future__ import annotations

import json
import os
import random
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from broker_core.listing.listing_hash import crc_text, extend_crc
from broker_core.snapshots.stored.manifest import FORMAT

__all__ = ["DAMAGES"]

Damage = Callable[[Path], None]
#: All of these must be noticed and lead to the catalogue.
DAMAGES: dict[str, Damage] = {}


def _damage(name: str) -> Callable[[Damage], Damage]:
    def add(function: Damage) -> Damage:
        assert name not in DAMAGES
        DAMAGES[name] = function
        return function

    return add


def chunks(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.columns"))


def manifest(folder: Path) -> Path:
    (found,) = folder.glob("*.manifest")
    return found


def _signed(text: bytes, number: int = FORMAT) -> bytes:
    return (
        f"broker-core snapshot {number} {crc_text(extend_crc(0, memoryview(text)))} {len(text)}\n".encode()
        + text
    )


def _changed_manifest(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """The manifest with a right checksum, and something else in it."""
    path = manifest(folder)
    values = json.loads(path.read_bytes().partition(b"\n")[2])
    change(values)
    path.write_bytes(_signed(json.dumps(values).encode()))


def _changed_header(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """A chunk's header, with its right checksum there and in the manifest, and something else in it."""
    path = chunks(folder)[1]
    content = path.read_bytes()
    (length,) = struct.unpack_from("<I", content, 8)
    header = json.loads(content[16 : 16 + length])
    change(header)
    text = json.dumps(header, separators=(",", ":")).encode().ljust(length)
    crc = extend_crc(0, memoryview(text))
    front = struct.pack("<8sII", content[:8], len(text), crc) + text
    new = front + bytes(-len(front) % 64) + content[16 + length + -(16 + length) % 64 :]
    path.write_bytes(new)

    def tell(values: dict[str, Any]) -> None:
        (file,) = (file for file in values["files"] if path.name.startswith(file["digest"]))
        file |= {"crc": crc, "size": len(new)}

    _changed_manifest(folder, tell)


# -- bytes

for _number, _at in enumerate((0, 3, 9, 13, 20, 200, 0.1, 0.3, 0.5, 0.7, 0.9)):

    @_damage(f"a byte of a chunk is another ({_at})")
    def _(folder: Path, at: float = _at, number: int = _number) -> None:
        path = chunks(folder)[number % len(chunks(folder))]
        content = bytearray(path.read_bytes())
        content[int(at * len(content)) if isinstance(at, float) else at] ^= 1 << (number % 8)
        path.write_bytes(content)


for _left in (0, 1, 15, 16, 100, 4096, -4096, -64, -1):

    @_damage(f"a chunk is cut ({_left})")
    def _(folder: Path, left: int = _left) -> None:
        path = chunks(folder)[0]
        os.truncate(path, left if left >= 0 else path.stat().st_size + left)


for _at in (0, 5, 21, 30, 0.2, 0.5, 0.99):

    @_damage(f"a byte of the manifest is another ({_at})")
    def _(folder: Path, at: float = _at) -> None:
        content = bytearray(manifest(folder).read_bytes())
        content[int(at * len(content)) if isinstance(at, float) else at] ^= 4
        manifest(folder).write_bytes(content)


for _left in (0, 1, 30, 100, -1):

    @_damage(f"the manifest is cut ({_left})")
    def _(folder: Path, left: int = _left) -> None:
        path = manifest(folder)
        os.truncate(path, left if left >= 0 else path.stat().st_size + left)


@_damage("a page of a chunk is zeros, as after a crash")
def _(folder: Path) -> None:
    with chunks(folder)[1].open("r+b") as file:
        file.seek(8192)
        file.write(bytes(4096))


@_damage("a chunk is longer")
def _(folder: Path) -> None:
    with chunks(folder)[0].open("ab") as file:
        file.write(b"\0")


@_damage("a chunk is noise")
def _(folder: Path) -> None:
    path = chunks(folder)[0]
    path.write_bytes(random.Random(1).randbytes(path.stat().st_size))


# -- names


@_damage("a chunk is gone")
def _(folder: Path) -> None:
    chunks(folder)[0].unlink()


@_damage("two chunks have each other's names")
def _(folder: Path) -> None:
    one, two = chunks(folder)[:2]
    one.rename(folder / "x")
    two.rename(one)
    (folder / "x").rename(two)


@_damage("a chunk is another one of the same")
def _(folder: Path) -> None:
    one, two = chunks(folder)[:2]
    shutil.copy(one, two)


def _replaced(path: Path, make: Callable[[Path], object]) -> None:
    path.unlink()
    make(path)


@_damage("a chunk is a folder")
def _(folder: Path) -> None:
    _replaced(chunks(folder)[0], Path.mkdir)


@_damage("a chunk is a FIFO")
def _(folder: Path) -> None:
    _replaced(chunks(folder)[0], os.mkfifo)


@_damage("a chunk is a link to itself elsewhere")
def _(folder: Path) -> None:
    path = chunks(folder)[0]
    path.rename(folder.parent / "elsewhere")
    path.symlink_to(folder.parent / "elsewhere")


@_damage("a chunk is a link to nothing")
def _(folder: Path) -> None:
    _replaced(chunks(folder)[0], lambda path: path.symlink_to("nothing"))


@_damage("the manifest is a folder")
def _(folder: Path) -> None:
    _replaced(manifest(folder), Path.mkdir)


@_damage("the manifest is a FIFO")
def _(folder: Path) -> None:
    _replaced(manifest(folder), os.mkfifo)


@_damage("the manifest is a link")
def _(folder: Path) -> None:
    path = manifest(folder)
    path.rename(folder.parent / "elsewhere")
    path.symlink_to(folder.parent / "elsewhere")


@_damage("the manifest is a device")
def _(folder: Path) -> None:
    _replaced(manifest(folder), lambda path: path.symlink_to("/dev/zero"))


# -- what a manifest says

_CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "names a file elsewhere": lambda values: values["files"][0].update(digest="../../../etc/passwd"),
    "names a file of another name": lambda values: values["files"][0].update(digest="0" * 32),
    "names a huge file": lambda values: values["files"][0].update(size=2**62),
    "names a file of no bytes": lambda values: values["files"][0].update(size=0),
    "names a file of more rows": lambda values: values["files"][0].update(
        rows=values["files"][0]["rows"] + 1
    ),
    "names a file of huge rows": lambda values: values["files"][0].update(rows=10**30),
    "names a file with another checksum": lambda values: values["files"][0].update(crc=1),
    "names no file": lambda values: values.update(files=[]),
    "names the files in another order": lambda values: values["files"].reverse(),
    "names a file twice": lambda values: values["files"].insert(0, values["files"][0]),
    "is of another namespace": lambda values: values.update(namespace="other/namespace"),
    "is of no namespace": lambda values: values.update(namespace="../x"),
    "is of another mode": lambda values: values.update(mode="NON_PERSISTENT"),
    "is of no mode": lambda values: values.update(mode="SOME"),
    "is of another catalogue": lambda values: values.update(catalog_id="another"),
    "is of a version to come": lambda values: values.update(version=values["version"] + 1),
    "is of a huge version": lambda values: values.update(version=10**40),
    "is of another stamp": lambda values: values.update(stamp="0" * 24),
    "has no stamp": lambda values: values.update(stamp=""),
    "selects by other properties": lambda values: values.update(property_keys=["other"]),
    "is of other rules": lambda values: values.update(rules="other"),
    "takes a huge memory": lambda values: values.update(nbytes=2**47),
    "says more": lambda values: values.update(more=1),
    "lacks something": lambda values: values.pop("asked"),
}
for _what, _change in _CHANGES.items():

    @_damage(f"the manifest {_what}")
    def _(folder: Path, change: Callable[[dict[str, Any]], object] = _change) -> None:
        _changed_manifest(folder, change)


@_damage("the manifest is of another format")
def _(folder: Path) -> None:
    path = manifest(folder)
    path.write_bytes(_signed(path.read_bytes().partition(b"\n")[2], FORMAT + 1))


@_damage("the manifest is deep")
def _(folder: Path) -> None:
    manifest(folder).write_bytes(_signed(b"[" * 1_000_000))


# -- what a chunk's header says, with all checksums right

_HEADERS: dict[str, Callable[[dict[str, Any]], object]] = {
    "has more rows": lambda header: header.update(rows=header["rows"] + 1),
    "has a column beyond the file": lambda header: header["columns"][0].update(size=2**40),
    "has a column at a huge place": lambda header: header["columns"][1].update(at=2**47),
    "has a column before the file": lambda header: header["columns"][1].update(at=-64),
    "has its columns exchanged": lambda header: [
        header["columns"][number].update(name=name) for number, name in ((0, "offsets"), (1, "fields"))
    ],
    "lacks a column": lambda header: header["columns"].pop(),
    "has a column twice": lambda header: header["columns"].append(header["columns"][0]),
    "is of another domain": lambda header: header["facts"].update(domain="non-persistent"),
    "has no facts": lambda header: header.update(facts={}),
}
for _what, _change in _HEADERS.items():

    @_damage(f"a chunk's header {_what}")
    def _(folder: Path, change: Callable[[dict[str, Any]], object] = _change) -> None:
        _changed_header(folder, change)


@_damage("the folder is open to all")
def _(folder: Path) -> None:
    folder.chmod(0o777)


@_damage("the folder is a link")
def _(folder: Path) -> None:
    folder.rename(folder.parent / "elsewhere")
    folder.symlink_to(folder.parent / "elsewhere")


@_damage("the folder is a file")
def _(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("a file")


@_damage("the folder is empty")
def _(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir(0o700)
