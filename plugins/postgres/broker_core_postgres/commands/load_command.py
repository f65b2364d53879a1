"""`broker-core postgres load`: make a namespace equal to a file."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO, Final

import typer

from broker_core.catalog import CatalogError
from broker_core.plugin_cli import Deletions, NamespaceArgument, examples, import_progress, say
from broker_core.quantities import counted
from broker_core_postgres.commands.shared_options import DryRunOption, WriteDsnOption
from broker_core_postgres.commands.write_connection import writing_connection
from broker_core_postgres.fill import FillingFailed, LoadReport, load_topics, maintain_topics

__all__ = ["EXAMPLES", "run"]

EXAMPLES: Final = examples(
    "broker-core postgres load public/default names.txt --config broker-core.toml",
    "# what would change",
    "broker-core postgres load public/default topics.jsonl --dry-run",
    "broker-core topics export public/default | broker-core postgres load public/default -",
)


def run(
    namespace: NamespaceArgument,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE|-", help="The file of names, or - for standard input.", show_default=False
        ),
    ],
    *,
    add: Annotated[
        bool, typer.Option("--add", help="Remove nothing: add and update only.", show_default=False)
    ] = False,
    allow_empty: Annotated[
        bool,
        typer.Option(
            "--allow-empty", help="A file without topics empties the namespace.", show_default=False
        ),
    ] = False,
    deletions: Deletions,
    dry_run: DryRunOption = False,
    dsn: WriteDsnOption = None,
) -> None:
    """Make a namespace hold exactly the topics of a file: all of it, or nothing if a line is wrong.

    One name a line, local or full, exactly as it stands; or, if the file begins with `{`, one JSON object a line:
    `{"name": ..., "partitions": 3, "properties": {...}}`. An existing topic keeps its id, and its properties unless
    the file gives some. If more topics would be deleted than is usual, nothing is written (exit code 1).
    """

    async def load() -> LoadReport:
        with _source(file) as source, import_progress(source) as progress:
            async with writing_connection(dsn, writes=not dry_run) as connection:
                report = await load_topics(
                    connection,
                    namespace,
                    source,
                    add=add,
                    allow_empty=allow_empty,
                    deletions=deletions,
                    dry_run=dry_run,
                    progress=progress,
                )
                if not dry_run:
                    await maintain_topics(connection, report.added + report.changed + report.removed)
                return report

    # The rows of a file have no reference cycles; looking for some takes a quarter of the time of reading them.
    gc.disable()
    try:
        report = asyncio.run(load())
    except CatalogError as error:
        raise FillingFailed(f"{file if file != '-' else 'standard input'}: {error}") from error
    finally:
        gc.enable()
    print(
        f"{'would load' if dry_run else 'loaded'} {counted(report.names, 'name')} into {namespace}: "
        f"{report.added} added, {report.changed} changed, {report.unchanged} unchanged, {report.removed} removed"
        + (f"; version {report.version}" if report.version is not None and not dry_run else "")
    )
    if report.renewed_ids:
        say(
            f"{counted(report.renewed_ids, 'new topic')} got another id than in the file: it is or was another topic's"
        )
    if report.ahead is not None:
        say(report.ahead)


@contextmanager
def _source(file: str) -> Iterator[BinaryIO]:
    if file == "-":
        yield sys.stdin.buffer
    else:
        with Path(file).open("rb") as stream:
            yield stream
