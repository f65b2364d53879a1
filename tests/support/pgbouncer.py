"""A pgbouncer in transaction mode before a test's PostgreSQL server, with fewer sessions than clients."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.eventually import eventually_sync
from tests.support.ports import free_port
from tests.support.postgres_server import PostgresServer

__all__ = ["pgbouncer_program", "pooled"]


def pgbouncer_program() -> str | None:
    """The program, if it is installed (Debian: apt install pgbouncer)."""
    return shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


@contextmanager
def pooled(server: PostgresServer, database: str, *, sessions: int = 2) -> Iterator[str]:
    """The connection string of a database through a pgbouncer with so many sessions of the server."""
    program = pgbouncer_program()
    assert program is not None
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="pgb-") as name:
        folder = Path(name)
        users = folder / "users"
        users.write_text('"postgres" ""\n')
        settings = folder / "pgbouncer.ini"
        settings.write_text(
            f"[databases]\n* = host=127.0.0.1 port={server.port}\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
            f"auth_type = trust\nauth_file = {users}\npool_mode = transaction\n"
            f"default_pool_size = {sessions}\nmax_client_conn = 100\nlogfile = {folder}/log\n"
        )
        command = [program, str(settings)]
        if os.geteuid() == 0:  # it refuses to run as root
            for path in (folder, users, settings):
                shutil.chown(path, "nobody")
            command[1:1] = ["-u", "nobody"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            log = folder / "log"
            eventually_sync(
                lambda: log.exists() and "process up" in log.read_text(), 60, what="pgbouncer is up"
            )
            yield f"postgresql://postgres@127.0.0.1:{port}/{database}"
        finally:
            process.terminate()
            process.wait(60)
