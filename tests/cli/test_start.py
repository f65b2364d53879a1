"""Quick commands import little, and a server imports everything before it is ready."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from broker_core.client import LookupSession, ServerRefused
from broker_core.names import Mode
from broker_core.settings import Settings
from tests.cli.server import serving
from tests.support.catalogue_topics import create_topics
from tests.support.files import file_with

#: Whole subtrees of modules that take long to import, and Spark's.
HEAVY = frozenset(
    [
        "aiohttp",
        "asyncio",
        "asyncpg",
        "google.protobuf",
        "numpy",
        "obstore",
        "pandas",
        "pluggy",
        "prometheus_client",
        "py4j",
        "pyarrow",
        "pydantic",
        "pyspark",
        "re2",
        "rich",
        "sqlite3",
        "structlog",
        "typer",
    ]
)
NEVER = frozenset({"aiohttp", "asyncpg", "obstore", "pandas", "py4j", "pyspark"})

_COMMAND = """
import json, sys
sys.argv = ["broker-core", *sys.argv[1:]]
from broker_core.cli import main
try:
    main()
finally:
    print("\\nIMPORTED" + json.dumps(sorted(sys.modules)))
"""
# A server that writes the names of its modules whenever it is sent a line.
_SERVER = """
import json, sys, threading
def tell():
    for _ in sys.stdin:
        print("IMPORTED" + json.dumps(sorted(sys.modules)), file=sys.__stdout__, flush=True)
threading.Thread(target=tell, daemon=True).start()
sys.argv = ["broker-core", *sys.argv[1:]]
from broker_core.cli import main
main()
"""


def imported(*arguments: str, folder: Path) -> set[str]:
    """The heavy packages that a command has imported when it ends."""
    ended = subprocess.run(
        [sys.executable, "-c", _COMMAND, *arguments], capture_output=True, text=True, check=False, cwd=folder
    )
    assert ended.returncode == 0, ended.stderr
    return set(json.loads(ended.stdout.rpartition("IMPORTED")[2])) & HEAVY


def test_the_version_takes_nothing(tmp_path: Path) -> None:
    assert imported("--version", folder=tmp_path) == set()


def test_help_takes_what_prints_it(tmp_path: Path) -> None:
    assert imported("--help", folder=tmp_path) == {"typer"}
    # Typer has pydantic check the values of options.
    for command in ("serve", "list", "explain", "config", "check", "demo", "topics"):
        assert imported(command, "--help", folder=tmp_path) <= {"typer", "pydantic"}, command


def test_settings_take_their_models(tmp_path: Path) -> None:
    assert imported("config", folder=tmp_path) == {"typer", "pydantic"}


def test_a_small_listing_takes_neither_arrow_nor_numpy(tmp_path: Path) -> None:

    path = tmp_path / "c.sqlite"
    create_topics(path, "persistent://public/default/orders")
    settings = Settings(pulsar={"listen": "127.0.0.1:0"}, catalog={"path": path})  # type: ignore[arg-type]
    needed = {"asyncio", "google.protobuf", "typer", "pydantic"}
    with serving(settings) as url:
        assert imported("list", "public/default", "--url", url, folder=tmp_path) == needed
        json_form = imported("list", "public/default", "--url", url, "--format", "json", folder=tmp_path)
        assert json_form == needed


@pytest.mark.parametrize(
    "arguments", [["plugins"], ["topics", "create", "a/b", "x"], ["explain", "public/default"], ["check"]]
)
def test_no_command_of_the_core_takes_a_database_driver_or_spark(
    arguments: list[str], tmp_path: Path
) -> None:
    settings = file_with(
        tmp_path / "s.toml", '[pulsar]\nlisten = "127.0.0.1:0"\n[http]\nlisten = "127.0.0.1:0"\n'
    )
    from broker_core.catalog import SqliteCatalog

    SqliteCatalog(tmp_path / "broker-core.sqlite").close()
    taken = imported(*arguments, "--config", str(settings), folder=tmp_path) & NEVER
    assert taken == ({"aiohttp"} if arguments[0] == "explain" else set())


class Server:
    """`broker-core serve` in a process that tells its modules."""

    def __init__(self, folder: Path, settings: str) -> None:
        file = file_with(folder / "s.toml", settings)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVER, "serve", "--config", str(file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=folder,
        )
        watchdog = threading.Timer(60, self._process.kill)
        watchdog.start()
        try:
            ready = self._line("ready ")
        finally:
            watchdog.cancel()
        self.addresses = dict(pair.split("=", 1) for pair in ready.split())

    def _line(self, start: str) -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(start):
                return line.removeprefix(start)
        raise AssertionError("the server has ended")

    def modules(self) -> set[str]:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return set(json.loads(self._line("IMPORTED")))

    def get(self, path: str) -> None:
        try:
            with urllib.request.urlopen(f"http://{self.addresses['http']}{path}", timeout=60) as answer:
                answer.read()
        except urllib.error.HTTPError as error:
            error.close()

    def end(self) -> None:
        self._process.terminate()
        self._process.communicate(timeout=60)


@contextmanager
def server(folder: Path, settings: str) -> Iterator[Server]:
    served = Server(folder, settings)
    try:
        yield served
    finally:
        served.end()


async def test_a_server_imports_nothing_once_it_is_ready(tmp_path: Path) -> None:

    create_topics(
        tmp_path / "c.sqlite",
        *(f"persistent://public/default/{name}" for name in ("orders-eu", "orders-us", "größe")),
        partitions=2,
        properties={"region": "eu"},
    )
    settings = """
        [pulsar]
        listen = "127.0.0.1:0"
        [http]
        listen = "127.0.0.1:0"
        [catalog]
        path = "c.sqlite"
        property_keys = ["region"]
    """
    with server(tmp_path, settings) as served:
        before = served.modules()
        async with LookupSession(f"pulsar://{served.addresses['pulsar']}") as client:
            for pattern in (None, "public/default/orders-.*", "public/default/(?=o).*"):
                for mode in Mode:
                    await client.get_topics("public/default", mode, pattern)
            await client.get_topics("public/default", properties={"region": "eu", "team": "a"})
            await client.get_topics("no/where", topics_hash="00000000")
            assert await client.partitioned_metadata("persistent://public/default/orders-eu") == 2
            for refused in (
                client.get_topics("public/default", pattern="("),
                client.get_topics("no namespace"),
                client.lookup("persistent://public/default/orders-eu"),
            ):
                with pytest.raises(ServerRefused):
                    await refused
        for path in ("/metrics", "/-/live", "/-/ready", "/plugins", "/nope"):
            served.get(path)
        after = served.modules()
    assert not NEVER - {"aiohttp"} & after
    assert sorted(after - before) == []
