"""A catalogue that is made because there was none: a message about it, with existing catalogues nearby."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import structlog

from broker_core.errors import BrokerCoreError
from broker_core.settings import CONFIG_VARIABLE, LoadedSettings, Settings, SettingsError, load_settings

__all__ = ["NewCatalog", "StartWouldFail", "catalogs_nearby"]

_log = structlog.get_logger(__name__)

#: Whether a catalogue has, or had, topics or anything of Kafka's administration.
_IS_WRITTEN = (
    "SELECT EXISTS (SELECT 1 FROM namespaces) OR EXISTS (SELECT 1 FROM kafka_users) "
    "OR EXISTS (SELECT 1 FROM kafka_acl_versions)"
)
#: The name of settings files in the documentation.
_USUAL_FILE = "broker-core.toml"


class StartWouldFail(BrokerCoreError):
    """A setting keeps a server from starting after it would have made a catalogue; the message names it."""


@dataclass(frozen=True, slots=True)
class NewCatalog:
    """A catalogue that does not exist yet: ``text`` says where it is made and why there.

    ``others``: existing ones that may have been meant; none if the catalogue was named explicitly.
    """

    text: str
    others: tuple[Path, ...]
    path: Path

    @classmethod
    def of(cls, loaded: LoadedSettings) -> NewCatalog | None:
        """The catalogue that the settings will make; ``None`` if it exists."""
        path = loaded.settings.catalog.path
        if path.exists():
            return None
        origin = loaded.origin(("catalog", "path"))
        if origin is not None:
            why = f"of {origin.label(('catalog', 'path'))}"
        elif loaded.file is not None:
            why = f"beside {loaded.file}, which names none"
        else:
            why = "by default: there is no settings file"
        text = f"made a new catalogue {os.path.abspath(path)} ({why})"  # noqa: PTH100 - without its ".."
        others = tuple(catalogs_nearby(loaded)) if origin is None else ()
        if others:
            named = ", ".join(map(str, others))
            text += f"; another one is there already: {named} (--catalog or --config names it)"
        return cls(text, others, path)

    def check(self, settings: Settings) -> None:
        """Check everything else that a server needs, before a catalogue is made in vain.

        Raises :exc:`StartWouldFail`.
        """
        from broker_core.cli.startup_checks.authentication_keys import authentication_checks
        from broker_core.cli.startup_checks.authorization_rules import authorization_checks
        from broker_core.cli.startup_checks.bounded_check import bounded
        from broker_core.cli.startup_checks.certificates import certificate_checks
        from broker_core.cli.startup_checks.kafka_settings import kafka_configs_checks, kafka_sasl_checks
        from broker_core.cli.startup_checks.listen_addresses import taken_addresses

        taken = [f"{name}: {problem}" for name, problem in taken_addresses(settings)]
        if taken:
            raise StartWouldFail("; ".join(taken))
        for name, check in (
            ("tls", certificate_checks),
            ("authentication", authentication_checks),
            ("authorization", authorization_checks),
            ("kafka.configs", kafka_configs_checks),
            ("kafka.sasl", kafka_sasl_checks),
        ):
            for found in bounded(name, partial(check, settings)):
                if found.level == "error":
                    raise StartWouldFail(f"{found.name}: {found.text}")

    @contextmanager
    def for_server(self) -> Iterator[Callable[[object], Awaitable[None]]]:
        """For the run of a server: a function to call once it is ready, which logs that the file is new.

        It is a warning if another one may have been meant. If the server never gets ready, the file is removed: the
        next start would find it, and not log that it was made.
        """
        ready = False

        async def log(_server: object) -> None:
            nonlocal ready
            ready = True
            (_log.warning if self.others else _log.info)(self.text)

        try:
            yield log
        finally:
            if not ready:
                self._remove_unwritten()

    def _remove_unwritten(self) -> None:
        """Remove the file, unless it has any content, or another process has it open for writing."""
        try:
            with closing(
                sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=rw", uri=True, timeout=0)
            ) as file:
                file.isolation_level = None
                file.execute("BEGIN EXCLUSIVE")
                if file.execute(_IS_WRITTEN).fetchone() != (0,):
                    return
                self.path.unlink()
        except (sqlite3.Error, OSError):
            return
        for end in ("-wal", "-shm"):
            self.path.with_name(f"{self.path.name}{end}").unlink(missing_ok=True)


def catalogs_nearby(loaded: LoadedSettings) -> list[Path]:
    """Existing catalogues nearby, one of which may have been meant."""
    path = loaded.settings.catalog.path.absolute()
    found: dict[Path, None] = {}
    for candidate in _candidates(loaded):
        if candidate.is_file() and candidate.resolve() != path.resolve():
            found[candidate.resolve()] = None
    return list(found)


def _candidates(loaded: LoadedSettings) -> Iterator[Path]:
    default = type(loaded.settings.catalog)().path
    folders = [Path.cwd()]
    if loaded.file is not None:
        folders.append(loaded.file.absolute().parent)
    for folder in folders:
        yield folder / loaded.settings.catalog.path.name
        yield folder / default
    variable = os.environ.get(CONFIG_VARIABLE)
    for file in [*([Path(variable)] if variable else []), Path.cwd() / _USUAL_FILE]:
        if file != loaded.file and file.is_file():
            try:
                yield load_settings(file, environment={}).settings.catalog.path
            except SettingsError:
                continue
