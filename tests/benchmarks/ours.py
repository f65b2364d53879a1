"""broker-core under measurement: a catalogue made by `topics import`, served by `broker-core serve`."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.names import local_names, namespace_of
from tests.support.served import Served, broker_core_command, to_toml

__all__ = ["Catalogue", "import_topics", "make_catalogue"]


@dataclass(frozen=True, slots=True)
class Catalogue:
    """A catalogue file with ``size`` topics in one namespace; importing them took ``import_seconds``."""

    folder: Path
    size: int
    import_seconds: float

    @property
    def path(self) -> Path:
        """The file."""
        return self.folder / "catalog.sqlite"

    def server(self, *, http: bool = False) -> Served:
        """A server for it, not started yet; with ``http`` it serves HTTP too."""
        tables = _settings(self.folder) | ({"http": {"listen": "127.0.0.1:0"}} if http else {})
        return Served(self.folder, tables, start_seconds=120)

    def create_topic(self, local: str) -> None:
        """Change the catalogue from another process, as an operator does while the server runs."""
        self._topics("create", f"persistent://{namespace_of(self.size)}/{local}")

    def delete_topic(self, local: str) -> None:
        """Delete the topic of :meth:`create_topic`."""
        self._topics("delete", f"persistent://{namespace_of(self.size)}/{local}")

    def _topics(self, action: str, topic: str) -> None:
        _run("topics", action, "--config", str(self.folder / "import.toml"), topic)


def make_catalogue(folder: Path, size: int) -> Catalogue:
    """Import the topics of a benchmark into a new catalogue."""
    return Catalogue(folder, size, import_topics(folder, namespace_of(size), local_names(size)))


def import_topics(folder: Path, namespace: str, lines: Iterable[str]) -> float:
    """Import lines, names or JSON, into a new catalogue in a new folder; the seconds of the import."""
    folder.mkdir(parents=True)
    names = folder / "names.txt"
    with names.open("w", encoding="utf-8") as out:
        out.writelines(f"{line}\n" for line in lines)
    config = folder / "import.toml"
    config.write_text(to_toml(_settings(folder)), encoding="utf-8")
    begun = time.perf_counter()
    _run("topics", "import", "--config", str(config), namespace, str(names))
    return time.perf_counter() - begun


def _settings(folder: Path) -> dict[str, dict[str, object]]:
    return {"catalog": {"path": str(folder / "catalog.sqlite")}}


def _run(*arguments: str) -> None:
    done = subprocess.run([broker_core_command(), *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"broker-core {' '.join(arguments)}: {done.stderr[-2000:]}")
