"""`broker-core topics delete`: topics by their names, of a file, or by a pattern."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from broker_core.cli.bulk_change_notes import say_ahead, say_no_match
from broker_core.cli.common_options import Invocation
from broker_core.cli.help_examples import examples
from broker_core.cli.open_catalog import opened_catalog, written_catalog
from broker_core.cli.options.deletion_limits import Deletions
from broker_core.cli.options.option_values import UnusableQuestion, parse_namespace, usable
from broker_core.cli.options.topics import (
    CatalogOption,
    DryRunOption,
    IdsOption,
    MatchingOption,
    file_to_read,
    is_namespace,
    names_and_ids,
)
from broker_core.counted import counted

__all__ = ["EXAMPLES", "delete_topics"]

EXAMPLES: Final = examples(
    "broker-core topics delete persistent://public/default/orders",
    "broker-core topics delete public/default --pattern 'public/default/tmp-.*' --dry-run",
    "broker-core topics delete public/default --file names.txt",
    "broker-core topics delete --id pLW3lPqvQYyE8maO_j3eRw",
)


def delete_topics(
    invocation: Invocation,
    topics: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAMESPACE] [TOPIC...]",
            help="Full names, or a namespace and names in it; with --file or --pattern the namespace alone.",
            show_default=False,
        ),
    ] = None,
    *,
    ids: IdsOption = None,
    file: Annotated[
        str | None,
        typer.Option(
            "--file",
            metavar="FILE|-",
            help="The topics of a file, in the formats of an import; - is standard input.",
            show_default=False,
        ),
    ] = None,
    pattern: MatchingOption = None,
    dry_run: DryRunOption = False,
    deletions: Deletions,
    catalog: CatalogOption = None,
) -> None:
    """Remove topics with all their partitions, or partitions by their own names; all of them or none."""
    from broker_core.catalog import TopicMissing, delete_matching, delete_of_file
    from broker_core.cli.printed_output import print_lines

    said = "would delete" if dry_run else "deleted"
    if file is None and pattern is None:
        if deletions != Deletions():
            raise UnusableQuestion(
                "topics that are named may all be deleted: the limits are for --file and --pattern"
            )
        names, wanted = names_and_ids(topics, ids)
        if dry_run:
            with opened_catalog(invocation, catalog) as opened:
                for name in names:
                    if opened.topic(name) is None:
                        raise TopicMissing.of(name)
                names += [opened.topic_of_id(topic_id).name for topic_id in wanted]
            print_lines(f"{said} {name}" for name in names)
        else:
            with written_catalog(invocation, catalog) as opened:
                removed = opened.delete_all([*names, *wanted])
                names += [record.name for record in removed[len(names) :]]
                print_lines(f"{said} {name}" for name in names)
        return
    if ids:
        raise UnusableQuestion("--id names topics: it goes neither with --file nor with --pattern")
    if file is not None and pattern is not None:
        raise UnusableQuestion("--file and --pattern are both given: which one counts?")
    if not topics or len(topics) != 1 or not is_namespace(topics[0]):
        raise UnusableQuestion("--file and --pattern are about the topics of one namespace: tenant/namespace")
    of = parse_namespace(topics[0])
    with opened_catalog(invocation, catalog) if dry_run else written_catalog(invocation, catalog) as opened:
        if pattern is not None:
            from broker_core.patterns import compile_pattern

            with usable():
                compile_pattern(pattern)
            report = delete_matching(opened, of, pattern, deletions, dry_run=dry_run)
        else:
            assert file is not None
            with file_to_read(file) as source:
                report = delete_of_file(opened, of, source, deletions, dry_run=dry_run)
        if dry_run:
            print_lines(f"{said} {name}" for name in report.topics)
        print(f"{said} {counted(report.names, 'name')} of {of}")
        say_ahead(report.refusal)
        if pattern is not None and not report.names:
            say_no_match(of, pattern)
