"""A PostgreSQL server with the settings of a production machine, and a database in it for each size.

Unlike the server of the tests this one is durable: ``fsync``, ``full_page_writes`` and ``synchronous_commit`` are on,
as they are by default. A quarter of the memory is its own cache.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.benchmarks.postgres.devices import PROPERTY_KEYS, Devices
from tests.support.postgres_server import Database, PostgresServer, run_apart
from tests.support.served import Served, broker_core_command

__all__ = ["BESIDE", "SETTINGS", "Filled", "fill", "fill_quickly", "load_names", "running_server"]

_MIB = 1024 * 1024
#: The same load into a database that has as many topics already.
BESIDE = "load beside as many"
_SMALL = 10_000
_COLUMNS = "namespace, domain, local_name, properties, topic_id, created_version, changed_version"


def _settings() -> dict[str, str]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // _MIB
    return {
        "fsync": "on",
        "full_page_writes": "on",
        "synchronous_commit": "on",
        "shared_buffers": f"{memory // 4}MB",
        "effective_cache_size": f"{memory // 2}MB",
        "maintenance_work_mem": "256MB",
        "max_wal_size": "8GB",
        "random_page_cost": "1.1",  # of SSDs
        "max_connections": "100",
        "dynamic_shared_memory_type": "posix",
    }


#: What differs from PostgreSQL's own defaults, or is worth saying.
SETTINGS: Mapping[str, str] = _settings()


@dataclass(frozen=True, slots=True)
class Filled:
    """A database with the topics of one size, how long their load took, and what ``COPY`` of the same rows takes."""

    devices: Devices
    database: Database
    seconds: Mapping[str, float]

    def served(self, folder: Path, **options: Any) -> Served:
        """broker-core with the plugin for it, not started yet; ``options`` are of the plugin's table."""
        plugin: dict[str, Any] = {
            "dsn": self.database.dsn,
            "property_keys": list(PROPERTY_KEYS),
            "deadline": "60s",
            "statement_timeout": "60s",
            **options,
        }
        return _served(folder, plugin)


def _served(folder: Path, plugin: dict[str, Any]) -> Served:
    settings: dict[str, dict[str, Any]] = {
        "plugins": {"enabled": ["postgres"], "postgres": plugin},
        # No answer is kept: each is read from the database.
        "limits": {"snapshots": "1KB"},
    }
    return Served(folder, settings, start_seconds=120)


@contextmanager
def running_server() -> Iterator[PostgresServer]:
    """The server, with an empty data directory; gone afterwards."""
    with PostgresServer(SETTINGS) as server:
        yield server


def fill(server: PostgresServer, devices: Devices, folder: Path) -> Filled:
    """A new database, loaded by `broker-core postgres load`, twice; ``COPY``, and loads into a copy of it, to compare.

    The copy has the topics already, so that a load must keep their indexes for those who list them.
    """
    database = server.create_database(f"bench_{devices.size}")
    file = folder / f"{devices.size}.jsonl"
    with file.open("w", encoding="utf-8") as out:
        out.writelines(devices.json_lines())
    command = [broker_core_command(), "postgres", "load", devices.namespace, str(file), "--dsn", database.dsn]
    seconds = {"load": _seconds(command), "load again, no changes": _seconds(command)}
    seconds |= _loads_beside(database, devices, file)
    seconds |= run_apart(lambda: _copied(database))
    # As it is a while after a load; what autovacuum does then must not be in the measurements.
    database.sql("VACUUM ANALYZE broker_core.topics")
    server.sql("CHECKPOINT")
    file.unlink()
    return Filled(devices, database, seconds)


def _loads_beside(database: Database, devices: Devices, file: Path) -> dict[str, float]:
    """Load the file into another namespace of a database that has its topics, then a small one into a third."""
    server = database.server
    copy = Database(server, f"{database.name}_beside")
    server.sql(f'CREATE DATABASE "{copy.name}" TEMPLATE "{database.name}"')
    small = file.with_name("small.txt")
    small.write_text("".join(f"small-{number}\n" for number in range(_SMALL)))
    load = [broker_core_command(), "postgres", "load"]
    try:
        return {
            BESIDE: _seconds([*load, f"{devices.namespace}-beside", str(file), "--dsn", copy.dsn]),
            f"load of {_SMALL:,} beside": _seconds(
                [*load, f"{devices.namespace}-small", str(small), "--dsn", copy.dsn]
            ),
        }
    finally:
        server.drop_database(copy.name)
        small.unlink()


def fill_quickly(server: PostgresServer, devices: Devices) -> Filled:
    """Fill a database without its times: indexes are made after the rows, as a restored dump does it."""
    database = server.create_database(f"bench_{devices.size}")
    run_apart(lambda: _copy_then_index(database, devices))
    server.sql("CHECKPOINT")
    return Filled(devices, database, {})


async def _copy_then_index(database: Database, devices: Devices) -> None:
    async def blocks() -> AsyncIterator[bytes]:
        for first in range(0, devices.size, 10_000):
            yield "".join(
                f"{devices.namespace}\tpersistent\t{devices.local_name(number)}\t"
                f"{json.dumps(devices.properties(number))}\t00000000-0000-4000-8000-{number:012x}\t1\t1\n"
                for number in range(first, min(first + 10_000, devices.size))
            ).encode()

    async with database.connected() as connection:
        indexes = await connection.fetch(
            "SELECT indexrelid::regclass::text AS name, pg_get_indexdef(indexrelid) AS made FROM pg_index "
            "WHERE indrelid = 'broker_core.topics'::regclass AND NOT indisprimary"
        )
        for index in indexes:
            await connection.execute(f"DROP INDEX {index['name']}")
        await connection.copy_to_table(
            "topics",
            schema_name="broker_core",
            columns=_COLUMNS.split(", "),
            source=blocks(),
            format="text",
        )
        for index in indexes:
            await connection.execute(index["made"])
        await connection.execute("VACUUM ANALYZE broker_core.topics")


@contextmanager
def load_names(
    server: PostgresServer, namespace: str, names: Iterable[str], folder: Path
) -> Iterator[Served]:
    """A broker-core in front of a database with these names."""
    database = server.create_database()
    file = folder / "names.txt"
    with file.open("w", encoding="utf-8") as out:
        out.writelines(f"{name}\n" for name in names)
    _seconds([broker_core_command(), "postgres", "load", namespace, str(file), "--dsn", database.dsn])
    database.sql("VACUUM ANALYZE broker_core.topics")
    with _served(folder / "names", {"dsn": database.dsn, "deadline": "60s"}) as served:
        yield served


def _seconds(command: list[str]) -> float:
    begun = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr[-2000:]}")
    return time.perf_counter() - begun


async def _copied(database: Database) -> dict[str, float]:
    """``COPY`` of the same rows: into a bare table, and into one with the constraints and indexes of the topics."""
    columns = _COLUMNS
    path = Path(database.server.folder) / "rows.copy"
    connection = await database.connect()
    try:
        await connection.execute(f"COPY (SELECT {columns} FROM broker_core.topics) TO '{path}'")
        seconds = {}
        for name, made in (
            ("bare", f"AS SELECT {columns} FROM broker_core.topics WITH NO DATA"),
            ("indexed", "(LIKE broker_core.topics INCLUDING ALL)"),
        ):
            await connection.execute(f"CREATE TABLE {name} {made}")
            begun = time.perf_counter()
            await connection.execute(f"COPY {name} ({columns}) FROM '{path}'")
            what = "COPY into a bare table" if name == "bare" else "COPY into a table with the same indexes"
            seconds[what] = time.perf_counter() - begun
            await connection.execute(f"DROP TABLE {name}")
        return seconds
    finally:
        await connection.close()
        path.unlink(missing_ok=True)
