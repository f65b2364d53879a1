"""Runs a page: writes its files, runs its scripts and types its commands, in order, in one folder.

The commands are those of a fresh environment with the wheels of broker-core and its plugins: nothing is from the clone.

What is run, by the language of a block:

- ``python`` with a first line ``# NAME.py`` is a file, which is imported at the end; without one it is a script.
  ``# FOLDER/NAME.py`` is a file in a folder that is there.
- ``toml`` with a first line ``# NAME.toml`` is a file, and so is ``js`` with ``// FOLDER/NAME.js``.
- ``console``: each line ``$ COMMAND`` is typed, and what follows is what it prints, ``...`` standing for anything.
  ``broker-core serve`` runs on until the next one; the page's ports are replaced by free ones.
- ``sql`` is run by the superuser of the page's PostgreSQL server, in its database.

A page that names the database ``postgresql:///topics`` has one: empty, on a real server, owned by the page's user, who
may make roles. libpq's environment says where it is, so that ``psql`` finds it too. All that the page made there goes
with it.

``sh`` (which needs a cluster, a clone or rights), ``ini`` and the like are not run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.docs.pages import Block, all_pages, blocks
from tests.support.fresh_environment import fresh_environment, write_pip
from tests.support.narrowed import present
from tests.support.ports import free_ports
from tests.support.postgres_server import PostgresServer
from tests.support.program_lines import ProgramLines

__all__ = [
    "FORKED",
    "GROUPS",
    "LANGUAGES",
    "PageRunner",
    "environment_of_its_own",
    "matches",
    "page_environment",
    "pages_to_run",
    "run_page",
    "typed",
]

#: What is run of a page.
LANGUAGES = {"python", "toml", "console", "sql"}
#: Pages by where they stand, for files of tests that take about as long as each other. What no other has is "others".
GROUPS: dict[str, tuple[str, ...]] = {
    "recipes": ("how-to/recipes/",),
    "spark": ("tutorial/spark.md", "how-to/spark-", "how-to/recipes/change-log.md", "reference/spark"),
    "postgres": ("tutorial/postgres.md", "how-to/postgres-"),
    "others": ("",),
}
#: What runs a script from standard input.
_SCRIPT = ("python", "-W", "error", "-")
#: The folder beside the programs with those that are found in place of them.
FORKED = "forked"
#: The addresses that the pages use.
_ADDRESSES = (
    *(
        "127.0.0.1:6650",
        "127.0.0.1:6651",
        "127.0.0.1:8080",
        "127.0.0.1:8443",
        "127.0.0.1:9000",
        "127.0.0.1:9092",
    ),
)
#: The database that the pages use, and who makes it in them.
DATABASE = "topics"
USER = "you"
#: A job of Spark takes ten seconds, and some minutes on a machine that does much else.
_SECONDS = 600.0
_ADDRESS = re.compile(rf"postgresql://\w*@?/{DATABASE}\b")
#: Roles belong to all databases of a server.
_FORGET_ROLES = """DO $$ DECLARE made name; BEGIN
    FOR made IN SELECT rolname FROM pg_roles WHERE oid >= 16384 LOOP EXECUTE format('DROP ROLE %I', made); END LOOP;
END $$"""


def pages_to_run(group: str) -> list[str]:
    """The pages of a group that show anything to run; each page is of the group that names most of its path."""

    def named(page: str, by: str) -> int:
        return max((len(start) for start in GROUPS[by] if page.startswith(start)), default=-1)

    return [
        page
        for page in all_pages()
        if max(GROUPS, key=lambda each: named(page, each)) == group
        and any(block.language in LANGUAGES for block in blocks(page))
    ]


def run_page(page: str, folder: Path, programs: Path, postgres: Callable[[], PostgresServer]) -> None:
    """Do all that a page says; :exc:`AssertionError` if something differs."""
    with PageRunner(folder, programs, postgres) as runner:
        for block in blocks(page):
            runner.run(block)
        runner.import_all()


def environment_of_its_own(folder: Path, wheels: Sequence[Path]) -> Path:
    """A virtual environment with these wheels, into which a page may install; its ``bin`` folder."""
    programs = fresh_environment(folder, wheels)
    # What a page needs to install itself is there.
    write_pip(programs, "--no-build-isolation")
    return programs


def typed(text: str) -> Iterator[tuple[str, str]]:
    """The commands of a ``console`` block, each with what it prints; one goes on behind a backslash."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        lines = iter(part.splitlines(keepends=True))
        command = next(lines)
        while command.endswith("\\\n"):
            command = command.removesuffix("\\\n").rstrip() + " " + next(lines).lstrip()
        yield command.removesuffix("\n"), "".join(lines)


def matches(printed: str, expected: str) -> bool:
    """Whether the output is the documented one: ``...`` is anything, spaces at the ends of lines do not count."""

    def plain(text: str) -> str:
        return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())

    pattern = ".*".join(map(re.escape, plain(expected).split("...")))
    return re.fullmatch(pattern, plain(printed), re.DOTALL) is not None


class PageRunner:
    """One page in one folder; a context manager, so that its server ends with it.

    ``postgres`` gives the PostgreSQL server for pages that need one; nobody else uses it meanwhile.
    """

    def __init__(self, folder: Path, programs: Path, postgres: Callable[[], PostgresServer]) -> None:
        self._folder = folder
        self._postgres = postgres
        self._database_server: PostgresServer | None = None
        self._ports = {
            address: f"127.0.0.1:{port}"
            for address, port in zip(_ADDRESSES, free_ports(len(_ADDRESSES)), strict=True)
        }
        self._environment = page_environment(programs, folder)
        self._server: subprocess.Popen[bytes] | None = None
        self._modules: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._end_server()
        finally:
            self._drop_database()

    def run(self, block: Block) -> None:
        """Do what a block says; :exc:`AssertionError` if something differs."""
        if _ADDRESS.search(block.text) or block.language == "sql":
            self._need_database()
        text = self._with_own_ports(block.text)
        if block.file is not None:
            (self._folder / block.file).write_text(text, encoding="utf-8")
            # What is in a folder is of a distribution.
            if block.file.endswith(".py") and "/" not in block.file:
                self._modules.add(block.file.removesuffix(".py"))
        elif block.language == "python":
            said, code = self._done([*_SCRIPT], text)
            assert code == 0, f"{block}: {said}"
        elif block.language == "console":
            for command, expected in typed(text):
                self._type(block, command, expected)
        elif block.language == "sql":
            present(self._database_server).sql(text, database=DATABASE)

    def script(self, block: Block) -> str:
        """Run a block of ``sh`` as a whole; what it prints.

        :meth:`run` leaves those out, since most need what a test has not.
        """
        said, code = self._done(["bash", "-euo", "pipefail"], self._with_own_ports(block.text))
        assert code == 0, f"{block}: {said}"
        return said

    def import_all(self) -> None:
        """Import the Python files that are there now."""
        if self._modules:
            said, code = self._done([*_SCRIPT], f"import {', '.join(sorted(self._modules))}")
            assert code == 0, said

    def _type(self, block: Block, command: str, expected: str) -> None:
        if command.startswith("curl ") and shutil.which("curl") is None:
            return
        refused = expected.rstrip("\n").rpartition("\n")[2].startswith(("broker-core: ", "error "))
        if command.startswith("broker-core serve") and not refused:
            said, code = self._serve(command), 0
        else:
            said, code = self._done(["bash", "-c", command])
        assert matches(said, expected), f"{block}: $ {command}\nprinted:\n{said}\ndocumented:\n{expected}"
        assert code == 0 or refused, f"{block}: $ {command} ended with {code}"

    def _done(self, command: list[str], given: str = "") -> tuple[str, int]:
        """What a command prints on both of its outputs, and its exit code."""
        done = subprocess.run(
            command,
            input=given.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self._folder,
            env=self._environment,
            timeout=_SECONDS,
            check=False,
        )
        return done.stdout.decode(), done.returncode

    def _serve(self, command: str) -> str:
        """Start a server in place of the one that runs; the line that it prints."""
        self._end_server()
        with (self._folder / "server.log").open("ab") as log:
            self._server = subprocess.Popen(
                ["bash", "-c", f"exec {command}"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=self._folder,
                env=self._environment,
            )
        try:
            return ProgramLines(self._server).wait_for(
                lambda line: line.startswith("ready "), _SECONDS, what="the line `ready`"
            )
        except AssertionError as error:
            error.add_note((self._folder / "server.log").read_text(errors="replace")[-4000:])
            self._server.kill()
            self._server.wait()
            self._server = None
            raise

    def _end_server(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.terminate()
            try:
                assert server.wait(_SECONDS) == 0
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
                raise

    def _need_database(self) -> None:
        if self._database_server is not None:
            return
        server = self._database_server = self._postgres()
        server.sql(f"CREATE ROLE {USER} LOGIN CREATEROLE")
        server.sql(f"CREATE DATABASE {DATABASE} OWNER {USER} TEMPLATE template0")
        self._environment |= {"PGHOST": str(server.folder), "PGPORT": str(server.port), "PGUSER": USER}

    def _drop_database(self) -> None:
        server, self._database_server = self._database_server, None
        if server is not None:
            server.drop_database(DATABASE)
            server.sql(_FORGET_ROLES)

    def _with_own_ports(self, text: str) -> str:
        for address, own in self._ports.items():
            text = text.replace(address, own)
        return text


def page_environment(programs: Path, home: Path) -> dict[str, str]:
    """The developer's environment without what would change what commands do."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("BROKER_CORE_", "PYTEST", "PYTHON", "PIP_", "COV_", "PG"))
    }
    return kept | {
        "PATH": os.pathsep.join([str(programs / FORKED), str(programs), os.environ["PATH"]]),
        "HOME": str(home),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "NO_COLOR": "1",
    }
