"""`broker-core postgres verify`: compare the database with a cluster or with the embedded catalogue."""

from __future__ import annotations

import asyncio
from typing import Annotated, Final

import typer

from broker_core.errors import BrokerCoreError
from broker_core.plugin_cli import Deletions, MassDeletion, examples, print_json, print_lines, say
from broker_core.quantities import counted
from broker_core_postgres.commands.progress_bars import mirror_progress
from broker_core_postgres.commands.shared_options import JsonOption, WriteDsnOption
from broker_core_postgres.commands.source_options import SourceOptions, open_source
from broker_core_postgres.commands.sync_command import print_left_out
from broker_core_postgres.commands.write_connection import writing_connection
from broker_core_postgres.fill import maintain_topics
from broker_core_postgres.fill.sync import Difference, Mirror, VerifyReport, as_json, as_line, verify

__all__ = ["EXAMPLES", "run"]

_DIFFERENT: Final = 1
_FAILED: Final = 2

EXAMPLES: Final = examples(
    "broker-core postgres verify --admin-url http://localhost:8080 --config broker-core.toml",
    "broker-core postgres verify --catalog broker-core.sqlite --namespace public/default --json",
)


def run(
    *,
    given: SourceOptions,
    fix: Annotated[
        bool,
        typer.Option(
            "--fix", help="Write what differs: the database then equals the source.", show_default=False
        ),
    ] = False,
    deletions: Deletions,
    json: JsonOption = False,
    dsn: WriteDsnOption = None,
) -> None:
    """Compare the database with a cluster, or with the embedded catalogue, and name each topic that differs.

    Exit codes: 0 nothing differs, or with --fix nothing is left that does; 1 something differs; 2 the comparison failed
    or is not complete.
    """

    async def compare() -> VerifyReport:
        scope = given.scope
        async with open_source(given) as source, writing_connection(dsn, writes=fix) as connection:

            def found(difference: Difference) -> None:
                if json:
                    print_json(as_json(difference))
                else:
                    print_lines([as_line(difference, source.name)])

            with mirror_progress() as progress:
                reading = Mirror.read(connection, source, scope, writing=fix, progress=progress.read)
                async with reading as mirror:
                    verdict = await verify(mirror, found, fix=deletions if fix else None)
            if verdict.fixed is not None:
                await maintain_topics(connection, verdict.fixed.counts.rows)
            return verdict

    try:
        verdict = asyncio.run(compare())
    except MassDeletion as error:  # after everything was read and the differences were printed
        say(str(error))
        raise typer.Exit(_DIFFERENT) from error
    except (BrokerCoreError, OSError) as error:
        say(str(error))
        raise typer.Exit(_FAILED) from error
    if not json:
        report = verdict.report
        print(
            f"compared {counted(report.names, 'name')} of {counted(report.namespaces, 'namespace')}: "
            f"{counted(verdict.missing, 'topic')} missing, "
            f"{verdict.extra} extra, {verdict.different} different" + (", fixed" if verdict.fixed else "")
        )
    print_left_out(verdict.report)
    if not verdict.report.complete:
        raise typer.Exit(_FAILED)
    if not verdict.equal:
        raise typer.Exit(_DIFFERENT)
