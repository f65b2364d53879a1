"""The catalogue that a command reads or writes: opening it, and printing which file it was and whether it changed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from broker_core.cli.common_options import Invocation, catalog_option

if TYPE_CHECKING:
    from broker_core.catalog import SqliteCatalog

__all__ = ["opened_catalog", "written_catalog"]


@contextmanager
def opened_catalog(
    invocation: Invocation, catalog: Path | None, *, create: bool = False
) -> Iterator[SqliteCatalog]:
    """The catalogue of the settings or of ``--catalog``, as commands read it; with ``create`` a missing one is made."""
    from broker_core.catalog import SqliteCatalog
    from broker_core.cli.server_process.server_log import silence_logs

    if not invocation.debug:
        silence_logs()
    settings = invocation.load(catalog_option(catalog)).settings
    table = settings.catalog
    with SqliteCatalog(table.path, create=create, mode=table.file_mode) as opened:
        if settings.kafka is not None:
            opened.deletion_delay = settings.kafka.delete_topic_delay_ms
        yield opened


@contextmanager
def written_catalog(
    invocation: Invocation, catalog: Path | None, *, create: bool = False
) -> Iterator[SqliteCatalog]:
    """The catalogue for writing; standard error names the file, if it was made here, and says whether it changed."""
    from broker_core.cli.error_line import say
    from broker_core.cli.new_catalog import NewCatalog

    new = NewCatalog.of(invocation.load(catalog_option(catalog))) if create else None
    with opened_catalog(invocation, catalog, create=create) as opened:
        if new is not None:
            say(new.text)
        yield opened
        if new is None:
            if opened.migrated is not None:
                say(opened.migrated.text)
            said = "wrote" if opened.committed else "nothing changed in"
            say(f"{said} the catalogue {os.path.abspath(opened.path)}")  # noqa: PTH100 - without its ".."
