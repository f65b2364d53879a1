"""`broker-core topics set-properties`: properties of a topic, or of all topics whose name matches a pattern."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from broker_core.cli.bulk_change_notes import say_no_match
from broker_core.cli.common_options import Invocation
from broker_core.cli.help_examples import examples
from broker_core.cli.open_catalog import opened_catalog, written_catalog
from broker_core.cli.options.option_values import UnusableQuestion, parse_namespace, parse_properties, usable
from broker_core.cli.options.topics import (
    CatalogOption,
    DryRunOption,
    MatchingOption,
    is_namespace,
    topic_names,
)
from broker_core.counted import counted

__all__ = ["EXAMPLES", "set_topic_properties"]

EXAMPLES: Final = examples(
    "broker-core topics set-properties public/default orders region=eu team=a",
    "broker-core topics set-properties persistent://public/default/orders --unset team",
    "# all topics that a pattern matches",
    "broker-core topics set-properties public/default --pattern 'public/default/orders-.*' region=eu --dry-run",
)


def set_topic_properties(
    invocation: Invocation,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[NAMESPACE] TOPIC [KEY=VALUE...]",
            help="A topic, by its full name or after its namespace (with --pattern the namespace alone), and what to "
            "set.",
            show_default=False,
        ),
    ],
    *,
    unset: Annotated[
        list[str] | None,
        typer.Option("--unset", metavar="KEY", help="A key to remove; may be repeated.", show_default=False),
    ] = None,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace",
            help="Remove all other keys: alone, it clears a topic's properties.",
            show_default=False,
        ),
    ] = False,
    pattern: MatchingOption = None,
    dry_run: DryRunOption = False,
    catalog: CatalogOption = None,
) -> None:
    """Set or remove properties of a topic with all its partitions, or of all topics that match a pattern.

    Other keys stay as they are, unless --replace is given. Names and partitions stay as they are, too.
    """
    from broker_core.catalog import PropertiesChange, set_properties, set_properties_of_matching

    of_namespace = is_namespace(words[0])
    named = words[:1] if not of_namespace or pattern is not None else words[:2]
    change = PropertiesChange(
        parse_properties(words[len(named) :], option="argument"), tuple(unset or ()), replace=replace
    )
    with usable():
        change.check()
    if pattern is not None and not of_namespace:
        raise UnusableQuestion(f"--pattern is about the topics of a namespace, which {words[0]!r} is not")
    with opened_catalog(invocation, catalog) if dry_run else written_catalog(invocation, catalog) as opened:
        if pattern is not None:
            report = set_properties_of_matching(
                opened, parse_namespace(words[0]), pattern, change, dry_run=dry_run
            )
        else:
            report = set_properties(opened, topic_names(named)[0], change, dry_run=dry_run)
        print(
            f"{'would change' if dry_run else 'changed'} the properties of {report.changed} of "
            f"{counted(report.topics, 'topic')} "
            f"({counted(report.names, 'name')})"
        )
        if pattern is not None and not report.topics:
            say_no_match(parse_namespace(words[0]), pattern)
