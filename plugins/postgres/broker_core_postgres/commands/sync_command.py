"""`broker-core postgres sync`: make the database equal to a cluster or to the embedded catalogue."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import typer

from broker_core.plugin_cli import Deletions, examples, print_json, print_lines, say
from broker_core.quantities import counted
from broker_core_postgres.commands.progress_bars import mirror_progress
from broker_core_postgres.commands.shared_options import DryRunOption, JsonOption, WriteDsnOption
from broker_core_postgres.commands.source_options import SourceOptions, open_source
from broker_core_postgres.commands.write_connection import writing_connection
from broker_core_postgres.fill import MergeCounts, maintain_topics
from broker_core_postgres.fill.sync import Mirror, MirrorReport, as_json, as_line

__all__ = ["EXAMPLES", "EXIT_INCOMPLETE", "print_left_out", "run"]

#: The exit code if something could not be read and was left as it is; all else was mirrored.
EXIT_INCOMPLETE: Final = 3

EXAMPLES: Final = examples(
    "broker-core postgres sync --admin-url http://localhost:8080 --config broker-core.toml",
    "# what would change, of one tenant",
    "broker-core postgres sync --admin-url https://pulsar:8443 --token-file token --tenant acme --dry-run",
    "broker-core postgres sync --catalog broker-core.sqlite",
)


def run(
    *,
    given: SourceOptions,
    deletions: Deletions,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
    dsn: WriteDsnOption = None,
) -> None:
    """Mirror the tenants, namespaces, topics, partitions and properties of a cluster, or of the embedded catalogue.

    Only what differs is written, each namespace at once. What cannot be read is left as it is. Exit codes: 0 all is
    mirrored, 1 failed and nothing was written, 3 something was left as it is (alert on it).
    """

    async def sync() -> MirrorReport:
        scope = given.scope
        async with open_source(given) as source, writing_connection(dsn, writes=not dry_run) as connection:
            with mirror_progress() as progress:
                reading = Mirror.read(connection, source, scope, writing=not dry_run, progress=progress.read)
                async with reading as mirror:
                    if not dry_run:
                        report = await mirror.write(deletions, progress=progress.write)
                    else:
                        report = await _dry(mirror, source.name, json=json)
            if not dry_run:
                await maintain_topics(connection, report.counts.rows)
            return report

    report = asyncio.run(sync())
    if json:
        if not dry_run:
            print_json(_as_json(report))
    else:
        counts = report.counts
        print(
            f"{'would mirror' if dry_run else 'mirrored'} {counted(report.names, 'name')} of "
            f"{counted(report.namespaces, 'namespace')}: "
            f"{counts.added} added, {counts.changed} changed, {counts.removed} removed"
            + (f", {counts.created_anew} created anew" if counts.created_anew else "")
            + (f"; {counted(len(report.written), 'namespace')} written" if not dry_run else "")
        )
    print_left_out(report)
    if not report.complete:
        raise typer.Exit(EXIT_INCOMPLETE)


async def _dry(mirror: Mirror, source: str, *, json: bool) -> MirrorReport:
    """Print the differences. The report counts what would be written."""
    async for difference in mirror.differences():
        if json:
            print_json(as_json(difference))
        else:
            print_lines([as_line(difference, source)])
    mirror.report.counts = sum((await mirror.counts()).values(), MergeCounts())
    return mirror.report


def print_left_out(report: MirrorReport) -> None:
    """Print a line on standard error for each namespace and topic that was left as it is."""
    for name, reason in sorted(report.failed.items()):
        say(f"{name} was left as it is: {reason}")
    for topic, reason in sorted(report.unread.items()):
        say(f"the properties of {topic} were left as they are: {reason}")


def _as_json(report: MirrorReport) -> dict[str, Any]:
    return {
        "namespaces": report.namespaces,
        "names": report.names,
        "added": report.counts.added,
        "changed": report.counts.changed,
        "removed": report.counts.removed,
        "created_anew": report.counts.created_anew,
        "written": {name: merged.version for name, merged in report.written.items()},
        "failed": report.failed,
        "unread": report.unread,
    }
