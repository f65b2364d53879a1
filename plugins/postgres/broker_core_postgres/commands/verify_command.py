"""`broker-core postgres verify`: whether the database is what a cluster or the embedded catalogue says."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from broker_core.errors import BrokerCoreError
from broker_core.plugin_cli import Deletions, MassDeletion, examples, print_json, print_lines, say
from broker_core_postgres.commands.progress_bars import mirror_progress
from broker_core_postgres.commands.source_options import (
    AdminUrlOption,
    CaFileOption,
    CatalogFileOption,
    CertificateOption,
    JsonOption,
    KeyOption,
    NamespaceOption,
    NoPropertiesOption,
    ParallelOption,
    SourceOptions,
    TenantOption,
    TimeoutOption,
    TokenEnvOption,
    TokenFileOption,
    TriesOption,
    open_source,
)
from broker_core_postgres.commands.sync_command import say_what_was_left
from broker_core_postgres.commands.write_connection import DsnOption, run_command, writing_connection
from broker_core_postgres.fill.sync.differences import Difference, as_json, as_line
from broker_core_postgres.fill.sync.mirror import Mirror
from broker_core_postgres.fill.sync.verify import VerifyReport, verify
from broker_core_postgres.fill.table_maintenance import maintain_topics

__all__ = ["EXAMPLES", "run"]

_DIFFERENT: Final = 1
_FAILED: Final = 2

EXAMPLES: Final = examples(
    "broker-core postgres verify --admin-url http://localhost:8080 --config broker-core.toml",
    "broker-core postgres verify --catalog broker-core.sqlite --namespace public/default --json",
)


def run(
    *,
    admin_url: AdminUrlOption = None,
    catalog: CatalogFileOption = None,
    tenant: TenantOption = None,
    namespace: NamespaceOption = None,
    token_file: TokenFileOption = None,
    token_env: TokenEnvOption = None,
    ca_file: CaFileOption = None,
    cert_file: CertificateOption = None,
    key_file: KeyOption = None,
    no_properties: NoPropertiesOption = False,
    fix: Annotated[
        bool,
        typer.Option(
            "--fix", help="Write what differs: the database becomes what is right.", show_default=False
        ),
    ] = False,
    deletions: Deletions,
    parallel: ParallelOption = 16,
    timeout: TimeoutOption = "60s",
    tries: TriesOption = 5,
    json: JsonOption = False,
    dsn: DsnOption = None,
) -> None:
    """Compare the database with a cluster, or with the embedded catalogue, and name each topic that differs.

    Exit codes: 0 nothing differs (any more, with --fix), 1 something does, 2 it is not known.
    """
    given = SourceOptions(
        admin_url,
        catalog,
        token_file,
        token_env,
        ca_file,
        cert_file,
        key_file,
        parallel,
        timeout,
        tries,
        not no_properties,
        tuple(tenant or ()),
        tuple(namespace or ()),
        deletions,
    )

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
                    verdict = await verify(mirror, found, fix=given.deletions if fix else None)
            if verdict.fixed is not None:
                written = verdict.fixed
                await maintain_topics(connection, written.added + written.changed + written.removed)
            return verdict

    try:
        verdict = run_command(compare)
    except MassDeletion as error:  # all was read, and what differs is printed
        say(str(error))
        raise typer.Exit(_DIFFERENT) from error
    except (BrokerCoreError, OSError) as error:
        say(str(error))
        raise typer.Exit(_FAILED) from error
    if not json:
        report = verdict.report
        print(
            f"compared {report.names} names of {report.namespaces} namespaces: {verdict.missing} topics missing, "
            f"{verdict.extra} extra, {verdict.different} different" + (", fixed" if verdict.fixed else "")
        )
    say_what_was_left(verdict.report)
    if not verdict.report.complete:
        raise typer.Exit(_FAILED)
    if not verdict.equal:
        raise typer.Exit(_DIFFERENT)
