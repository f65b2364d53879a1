"""`broker-core topics import`: adds the topics of a file to a namespace, or replaces its topics."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from broker_core.cli.bulk_change_notes import say_ahead
from broker_core.cli.common_options import Invocation
from broker_core.cli.help_examples import examples
from broker_core.cli.open_catalog import opened_catalog, written_catalog
from broker_core.cli.options.deletion_limits import Deletions
from broker_core.cli.options.given_question import NamespaceText
from broker_core.cli.options.option_values import UnusableQuestion, parse_namespace
from broker_core.cli.options.topics import CatalogOption, DryRunOption, file_to_read
from broker_core.counted import counted

__all__ = ["EXAMPLES", "import_file"]

EXAMPLES: Final = examples(
    "broker-core topics import public/default names.txt --config broker-core.toml",
    """echo '{"name": "orders", "partitions": 3, "properties": {"region": "eu"}}' | """
    "broker-core topics import public/default -",
    "# the namespace becomes what the file says: look at what would go first",
    "broker-core topics import public/default names.txt --exact --dry-run",
)


def import_file(
    invocation: Invocation,
    namespace: NamespaceText,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE|-", help="The file of names, or - for standard input.", show_default=False
        ),
    ],
    *,
    exact: Annotated[
        bool,
        typer.Option(
            "--exact",
            help="Remove topics that are not in the file: the namespace then has those of the file alone.",
            show_default=False,
        ),
    ] = False,
    as_names: Annotated[
        bool,
        typer.Option(
            "--as-names",
            help="Take each line as a name, also in a file that looks like CSV or JSON, and names with white space "
            "at an end or a tab.",
            show_default=False,
        ),
    ] = False,
    dry_run: DryRunOption = False,
    deletions: Deletions,
    catalog: CatalogOption = None,
) -> None:
    """Add the topics of a file to a namespace: all of them, or none if a line is wrong.

    One name a line, local or full, exactly as it stands; or, if the file begins with `{`, one JSON object a line:
    `{"name": ..., "partitions": 3, "properties": {...}}`. An existing topic keeps its id and gets the properties;
    a line of properties without partitions changes nothing else.
    """
    from broker_core.catalog import NotNames, import_topics
    from broker_core.cli.error_line import say
    from broker_core.cli.progress_bar import import_progress

    into = parse_namespace(namespace)
    if not exact and deletions != Deletions():
        raise UnusableQuestion("nothing is deleted without --exact, so that nothing has to be allowed")
    # A dry run makes no catalogue either.
    opened = (
        opened_catalog(invocation, catalog) if dry_run else written_catalog(invocation, catalog, create=True)
    )
    with (
        file_to_read(file) as source,
        opened as topics,
        import_progress(source) as progress,
    ):
        try:
            report = import_topics(
                topics,
                into,
                source,
                exact=deletions if exact else None,
                dry_run=dry_run,
                progress=progress,
                as_names=as_names,
            )
        except NotNames as error:
            raise NotNames(error.line, f"{error.reason}. --as-names takes the lines as they are") from None
        deleted = f", {report.deleted} deleted ({counted(report.names_lost, 'name')} in all)" if exact else ""
        print(
            f"{'would import' if dry_run else 'imported'} {counted(report.topics, 'topic')} into {into}: "
            f"{report.created} created, {report.updated} updated, {report.unchanged} unchanged{deleted}"
        )
        if report.renewed_ids:
            say(
                f"{counted(report.renewed_ids, 'topic')} {'would get' if dry_run else 'got'} new ids: those "
                "of the file belong to "
                "other topics, or to some that were deleted a short while ago"
            )
        say_ahead(report.refusal)
