"""A PostgreSQL server of the tests' own: in a temporary folder, ended and removed with the tests.

``initdb`` takes ten times as long as a copy of what it makes, so it runs once, and each server begins with a copy.
PostgreSQL refuses to run as root: there it runs as ``postgres`` (or ``nobody``). It listens on a free port of loopback
and on a Unix socket, trusts everybody who connects there, and leaves writing to the disk to the kernel
(``fsync=off``: what was committed outlives :meth:`PostgresServer.kill`, not a crash of the machine).

Nothing is left behind when the tests are killed: a watchdog, a shell that waits for the end of a pipe whose other end
only this process holds, then kills the server and removes its folder.
"""

from __future__ import annotations

import asyncio
import atexit
import fcntl
import os
import pwd
import shutil
import signal
import stat
import subprocess
import tempfile
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import asyncpg

from tests.support.eventually import eventually_sync
from tests.support.left_behind import Running
from tests.support.machine import postgres_programs
from tests.support.ports import free_port

if TYPE_CHECKING:
    from broker_core_postgres.schema.run_migrations import MigrationResult

__all__ = ["Database", "PostgresServer", "make_new_cluster", "migrate_dsn", "share_new_cluster"]

T = TypeVar("T")

_PATIENCE = 120  # seconds that a server may take to start or to stop on a loaded machine
_TEMPLATE = "broker_core_template"

_SETTINGS: Mapping[str, str] = {
    "fsync": "off",
    "full_page_writes": "off",
    "listen_addresses": "127.0.0.1",
    "max_connections": "60",
    "shared_buffers": "128MB",
    # In the server's own folder, which is removed: a server that is killed leaves its segments in /dev/shm.
    "dynamic_shared_memory_type": "mmap",
    "max_wal_size": "512MB",
    "checkpoint_timeout": "30min",
    "log_min_messages": "warning",
    "timezone": "UTC",
}

# The end of the pipe is the end of the tests. `-9` for what a stopped postmaster (SIGSTOP) would never hear.
_WATCHDOG = """
read -r said
[ "$said" = gone ] && exit 0
pid=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null) && [ -n "$pid" ] && {
  children=$(cat /proc/"$pid"/task/"$pid"/children 2>/dev/null)
  kill -9 "$pid" $children 2>/dev/null
}
rm -rf "$1"
"""


@dataclass(frozen=True, slots=True)
class Database:
    """One database of a test server."""

    server: PostgresServer
    name: str

    @property
    def dsn(self) -> str:
        """By TCP, as the superuser."""
        return self.server.dsn(self.name)

    @property
    def socket_dsn(self) -> str:
        """By the Unix socket, as the superuser."""
        return self.server.socket_dsn(self.name)

    def dsn_of(self, user: str) -> str:
        """Address by TCP of another user (which must be allowed to log in)."""
        return self.server.dsn(self.name, user=user)

    async def connect(self, user: str = "postgres", **options: Any) -> Any:
        """An asyncpg connection, to be closed by the caller."""
        return await asyncpg.connect(self.dsn_of(user), **options)

    @asynccontextmanager
    async def connected(self, user: str = "postgres", **options: Any) -> AsyncIterator[Any]:
        """An asyncpg connection while the block runs."""
        connection = await self.connect(user, **options)
        try:
            yield connection
        finally:
            await connection.close()

    def sql(self, statements: str) -> None:
        """Run statements without parameters, one after the other, outside of any event loop."""
        self.server.sql(statements, database=self.name)


class PostgresServer:
    """A server with a life: ``start``, ``stop`` and ``start`` again, ``restart``, ``kill``, and at last ``close``.

    ``settings`` are lines of ``postgresql.conf`` besides the defaults of this module. The port stays the same over
    restarts. Synchronous: it may be used by fixtures of a session. ``with PostgresServer() as server:`` starts it and
    removes it.
    """

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        programs = postgres_programs()
        if programs is None:
            raise RuntimeError(
                "No PostgreSQL server (14 or later) is installed: `make setup` and `make test` bring it"
            )
        self.programs = programs
        self.settings = {**_SETTINGS, **(settings or {})}
        self.port = free_port()
        self._user = _unprivileged_user()
        self.folder = _folder(self._user)
        self.data = self.folder / "data"
        self._databases = 0
        self._template_ready = False
        self._watchdog = self._start_watchdog()

    # -- life

    def start(self) -> Self:
        """Make the cluster if there is none yet, and start it; returns when it takes connections."""
        if not self.data.exists():
            subprocess.run(["cp", "-a", _server_with_new_cluster()._new_cluster(), self.data], check=True)
        self._configure()
        self._pg_ctl("start", "-l", self.folder / "log", "-w")
        return self

    def stop(self, mode: str = "fast") -> None:
        """Stop it (``fast`` ends sessions, ``immediate`` crashes, ``smart`` waits); the data stay."""
        if self.running:
            self._pg_ctl("stop", "-w", "-m", mode)

    def restart(self, mode: str = "fast") -> None:
        """Stop it and start it again on the same port."""
        self.stop(mode)
        self.start()

    def kill(self) -> None:
        """End all of its processes at once, as a crash of the machine would; :meth:`start` recovers."""
        pid = self.pid
        if pid is None:
            return
        children = _children(pid)
        for each in (pid, *children):
            _signal(each, signal.SIGKILL)
        eventually_sync(
            lambda: not any(_alive(each) for each in (pid, *children)), _PATIENCE, what="the server is dead"
        )
        # Where nobody reaps the dead (process 1 of some containers), its locks would look as if they were held.
        for lock in (self.data / "postmaster.pid", *self.folder.glob(".s.PGSQL.*.lock")):
            lock.unlink(missing_ok=True)

    def pause(self) -> None:
        """Let it hang: connections stay open, nothing answers, until :meth:`resume`."""
        self._signal_all(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on after :meth:`pause`."""
        self._signal_all(signal.SIGCONT)

    def close(self) -> None:
        """End it and remove its folder."""
        if self._watchdog.poll() is None:
            try:
                self.kill()
                shutil.rmtree(self.folder, ignore_errors=True)
            finally:
                assert self._watchdog.stdin is not None
                self._watchdog.stdin.write(b"gone\n")
                self._watchdog.stdin.close()
                self._watchdog.wait(_PATIENCE)

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The process id of the postmaster; ``None`` if none runs."""
        try:
            pid = int((self.data / "postmaster.pid").read_text().splitlines()[0])
        except (OSError, IndexError, ValueError):
            return None
        return pid if _alive(pid) else None

    @property
    def running(self) -> bool:
        """Whether there is a postmaster."""
        return self.pid is not None

    @property
    def log(self) -> str:
        """What it has logged so far."""
        path = self.folder / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    # -- addresses and databases

    def dsn(self, database: str = "postgres", *, user: str = "postgres") -> str:
        """The address by TCP."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def socket_dsn(self, database: str = "postgres", *, user: str = "postgres") -> str:
        """The address by the Unix socket."""
        return f"postgresql:///{database}?host={self.folder}&port={self.port}&user={user}"

    def create_database(self, name: str | None = None, *, migrated: bool = True) -> Database:
        """A database of its own: with the newest schema (copied from a template), or an empty one."""
        if name is None:
            self._databases += 1
            name = f"test_{self._databases}"
        template = "template0"
        if migrated:
            template = _TEMPLATE
            self._make_template()
        # Files are copied in half the time that writing each page to the log takes, where a checkpoint takes none.
        strategy = " STRATEGY file_copy" if self.version >= 15 else ""
        self.sql(f'CREATE DATABASE "{name}" TEMPLATE {template}{strategy}')
        return Database(self, name)

    def drop_database(self, name: str) -> None:
        """Remove a database, also one with connections."""
        self.sql(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def sql(self, statements: str, *, database: str = "postgres") -> None:
        """Run statements without parameters as the superuser, outside of any event loop."""

        async def run() -> None:
            connection = await asyncpg.connect(self.dsn(database))
            try:
                await connection.execute(statements)
            finally:
                await connection.close()

        run_apart(run)

    def start_replica(self, settings: Mapping[str, str] | None = None) -> PostgresServer:
        """A hot standby of this server, made by ``pg_basebackup``; to be closed by the caller, before this one.

        ``SELECT pg_promote()`` makes it a server of its own.
        """
        replica = PostgresServer({**self.settings, "hot_standby": "on", **(settings or {})})
        try:
            self.sql("CHECKPOINT")
            command = ("-D", replica.data, "-R", "-X", "stream", "-c", "fast", "--no-sync", "-d", self.dsn())
            replica._run("pg_basebackup", *command)
            (replica.data / "broker_core.conf").unlink(missing_ok=True)
            return replica.start()
        except BaseException:
            replica.close()
            raise

    # -- inside

    def _new_cluster(self) -> Path:
        """A cluster that no server has run on, made by whichever process asks first; :meth:`close` removes it."""
        made, begun = self.folder / "new", self.folder / "begun"
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not made.exists():
                shutil.rmtree(begun, ignore_errors=True)  # of a process that was killed meanwhile
                options = ("-U", "postgres", "-A", "trust", "-E", "UTF8", *self._locale())
                self._run("initdb", "-D", begun, *options)
                begun.rename(made)
        return made

    def _make_template(self) -> None:
        if self._template_ready:
            return
        self.sql(f"CREATE DATABASE {_TEMPLATE} TEMPLATE template0")
        run_apart(lambda: migrate_dsn(self.dsn(_TEMPLATE)))
        self._template_ready = True

    def _locale(self) -> list[str]:
        """A language's own order by default, if the server can: what forgets ``COLLATE "C"`` shall be found out."""
        if self.version >= 15:
            return ["--locale=C.UTF-8", "--locale-provider=icu", "--icu-locale=en"]
        return ["--locale=C.UTF-8"]

    @cached_property
    def version(self) -> int:
        """The major version of the programs."""
        said = subprocess.run(
            [self.programs / "postgres", "--version"], capture_output=True, text=True, check=True
        ).stdout
        return int(said.split(") ")[1].split(".")[0].split()[0].rstrip("abcdefghijklmnopqrstuvwxyz"))

    def _configure(self) -> None:
        own = {**self.settings, "port": str(self.port), "unix_socket_directories": str(self.folder)}
        text = "".join(f"{name} = '{value}'\n" for name, value in own.items())
        path = self.data / "broker_core.conf"
        path.write_text(text)
        path.chmod(0o644)
        main = self.data / "postgresql.conf"
        if "broker_core.conf" not in main.read_text():
            with main.open("a") as file:
                file.write("\ninclude 'broker_core.conf'\n")

    def _pg_ctl(self, *arguments: str | Path) -> None:
        self._run("pg_ctl", "-D", self.data, "-t", str(_PATIENCE), *arguments)

    def _run(self, program: str, *arguments: str | Path) -> None:
        command = [*_as(self._user), str(self.programs / program), *map(str, arguments)]
        # Into a file: a pipe would stay open for as long as the server that pg_ctl leaves behind.
        with tempfile.TemporaryFile() as said:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                cwd=self.folder,
                env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8"},
                start_new_session=True,  # Ctrl-C is for the tests; they end the server then
                check=False,
            )
            if done.returncode:
                said.seek(0)
                text = said.read().decode(errors="replace")
                raise RuntimeError(f"{program} ended with {done.returncode}: {text}\n{self.log[-2000:]}")

    def _start_watchdog(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ["sh", "-c", _WATCHDOG, "watchdog", str(self.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _signal_all(self, number: signal.Signals) -> None:
        pid = self.pid
        assert pid is not None, "the server does not run"
        for each in (pid, *_children(pid)):
            _signal(each, number)


@cache
def _server_with_new_cluster() -> PostgresServer:
    """A server that is never started, whose folder has the cluster that others copy; it ends with this process."""
    before = Running()
    server = PostgresServer()
    atexit.register(server.close)
    before.lasts()
    return server


def share_new_cluster() -> None:
    """Let processes that are forked from now on begin their servers with copies of one cluster."""
    if postgres_programs() is not None:
        _server_with_new_cluster()


def make_new_cluster() -> None:
    """Make the cluster of :func:`share_new_cluster`, which else the first server does."""
    if postgres_programs() is not None:
        _server_with_new_cluster()._new_cluster()


async def migrate_dsn(dsn: str) -> MigrationResult:
    """Bring a database to the newest schema of the plugin."""
    from broker_core_postgres.schema import migrate

    connection = await asyncpg.connect(dsn)
    try:
        return await migrate(connection)
    finally:
        await connection.close()


def run_apart(function: Callable[[], Awaitable[T]]) -> T:
    """Run a coroutine to its end in a thread and a loop of its own, whether or not a loop runs here."""
    results: list[T] = []
    failures: list[BaseException] = []

    async def call() -> T:
        return await function()

    def run() -> None:
        try:
            results.append(asyncio.run(call()))
        except BaseException as error:  # noqa: BLE001 - handed to the caller
            failures.append(error)

    thread = threading.Thread(target=run, name="postgres-helper")
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
    return results[0]


def _unprivileged_user() -> pwd.struct_passwd | None:
    """The user that the server runs as: ourselves, unless we are root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise RuntimeError("PostgreSQL does not run as root, and there is no user postgres or nobody")


def _as(user: pwd.struct_passwd | None) -> list[str]:
    if user is None:
        return []
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", "--"]


def _folder(user: pwd.struct_passwd | None) -> Path:
    """A new folder that the user owns and can reach; short, since it holds a Unix socket."""
    places = [Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")]
    for place in places:
        if user is not None and not all(
            parent.stat().st_mode & stat.S_IXOTH for parent in (place, *place.resolve().parents)
        ):
            continue
        if len(str(place)) > 60 or not os.access(place, os.W_OK):
            continue
        folder = Path(tempfile.mkdtemp(prefix="pg-", dir=place))
        if user is not None:
            os.chown(folder, user.pw_uid, user.pw_gid)
        return folder
    raise RuntimeError(f"No temporary folder that {user.pw_name if user else 'we'} can use: {places}")


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _alive(pid: int) -> bool:
    """Whether a process runs; one that is dead and not yet reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except (OSError, IndexError):
        return False


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
