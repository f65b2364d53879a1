"""`broker-core kafka topics list`: the topics that the user may see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from broker_core.cli.common_options import Invocation
from broker_core.cli.help_examples import examples
from broker_core.cli.options.kafka_server import GivenKafka
from broker_core.counted import counted

if TYPE_CHECKING:
    from broker_core.client.kafka import TopicListing
    from broker_core.patterns import TopicsPattern

__all__ = ["EXAMPLES", "list_topics"]

EXAMPLES: Final = examples(
    "broker-core kafka topics list --bootstrap kafka-1:9092,kafka-2:9092",
    "broker-core kafka topics list --bootstrap kafka:9093 --user alice --password-file pw.txt --ca ca.pem",
    "broker-core kafka topics list 'orders-.*' --ids --format json",
    "broker-core kafka topics list --page-size 1000",
)


async def list_topics(
    invocation: Invocation,
    pattern: Annotated[
        str | None,
        typer.Argument(
            metavar="[REGEX]",
            help="Only topics whose name matches in full: 'orders-.*'.",
            show_default=False,
        ),
    ] = None,
    *,
    internal: Annotated[
        bool, typer.Option("--internal", help="List internal topics too.", show_default=False)
    ] = False,
    ids: Annotated[
        bool,
        typer.Option(
            "--ids", help="Show the ids of topics, with --format table or json.", show_default=False
        ),
    ] = False,
    page_size: Annotated[
        int | None,
        typer.Option(
            "--page-size",
            metavar="N",
            min=1,
            help="Ask for the topics of this many partitions at a time, and print names as they come.",
            show_default=False,
        ),
    ] = None,
    form: Annotated[
        Literal["names", "json", "table"], typer.Option("--format", help="How to print the answer.")
    ] = "names",
    server: GivenKafka,
) -> None:
    """List the topics that the user may see.

    All of them, or those whose name matches.
    """
    from broker_core.cli.error_line import say
    from broker_core.cli.options.option_values import UnusableQuestion
    from broker_core.cli.printed_output import print_lines, print_rows
    from broker_core.names import topic_id_text

    if ids and form == "names":
        raise UnusableQuestion("--ids goes with --format table or json")
    compiled = None if pattern is None else _compiled(pattern)
    topics: list[TopicListing] = []
    async with server.connected(invocation) as client:
        if page_size is None:
            topics += _matched(compiled, await client.list_topics(list_internal=internal, topic_ids=ids))
            is_none = not topics
        else:
            is_none = True
            async for page in client.list_topics_pages(list_internal=internal, limit=page_size):
                some = _matched(compiled, page)
                is_none = is_none and not some
                if form == "names":
                    print_lines(topic.name for topic in some)
                else:
                    topics += some
    if compiled is not None and is_none:
        say(f"no topic matches {pattern!r}, which is about names without tenant and namespace")
    if form == "names":
        print_lines(topic.name for topic in topics)
        return
    # If a topic was made anew between two pages, the new one counts.
    rows = [
        {
            "name": topic.name,
            **({"topic_id": topic_id_text(topic.topic_id)} if ids else {}),
            "internal": topic.is_internal,
        }
        for topic in {each.name: each for each in topics}.values()
    ]
    columns = ["name", *(["topic_id"] if ids else []), "internal"]
    print_rows(columns, rows, form, caption=counted(len(rows), "topic"))


def _matched(compiled: TopicsPattern | None, topics: Sequence[TopicListing]) -> Sequence[TopicListing]:
    if compiled is None:
        return topics
    import pyarrow as pa

    matched = compiled.match_column(pa.array([topic.name for topic in topics], pa.large_string()))
    return [topic for topic, fits in zip(topics, matched.to_pylist(), strict=True) if fits]


def _compiled(pattern: str) -> TopicsPattern:
    """A pattern of local names. Raises :exc:`UnusableQuestion`."""
    from broker_core.cli.options.option_values import usable
    from broker_core.errors import InvalidPattern
    from broker_core.patterns import compile_pattern

    with usable():
        compiled = compile_pattern(pattern, remember=False)
        if not compiled.supported:
            raise InvalidPattern(f"Unsupported topics pattern {pattern!r:.100}: {compiled.reason}")
        return compiled
