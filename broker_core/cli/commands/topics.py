"""`broker-core topics ...`: the topics of the catalogue. A server that runs on the same file sees every change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Literal

import typer

from broker_core.cli.commands import topics_delete, topics_import, topics_set_properties
from broker_core.cli.help_examples import examples
from broker_core.cli.invocation import Call, command
from broker_core.cli.options.question import parse_namespace, parse_properties
from broker_core.cli.topics_options import (
    CatalogOption,
    NamespaceArgument,
    is_namespace,
    opened_catalog,
    topic_names,
    written_catalog,
)

if TYPE_CHECKING:
    from broker_core.catalog import SqliteCatalog, TopicRecord
    from broker_core.names import NamespaceName, TopicName

__all__ = ["app"]

TopicsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="[NAMESPACE] TOPIC...",
        help="Full names, or a namespace and names in it: 'public/default orders' is "
        "'persistent://public/default/orders'.",
        show_default=False,
    ),
]
JsonOrTable = Annotated[Literal["table", "json"], typer.Option("--format", help="How to print it.")]

app = typer.Typer(
    name="topics",
    help="Import, export, create, change, delete and show topics of the catalogue.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.callback()
@command
def _topics() -> None:
    """Import, export, create, change, delete and show topics of the catalogue."""


for name, module in {
    "import": topics_import,
    "delete": topics_delete,
    "set-properties": topics_set_properties,
}.items():
    app.command(name, epilog=module.EXAMPLES)(command(module.run))


@app.command(
    epilog=examples(
        "broker-core topics export public/default topics.jsonl --format json",
        "broker-core topics export public/default | broker-core topics import public/copy - --catalog copy.sqlite",
    )
)
@command
def export(
    call: Call,
    namespace: NamespaceArgument,
    file: Annotated[
        str,
        typer.Argument(
            metavar="[FILE|-]", help="The file to write; standard output without it.", show_default=False
        ),
    ] = "-",
    *,
    form: Annotated[
        Literal["auto", "names", "json"],
        typer.Option(
            "--format",
            help="Names, or JSON lines with partitions and properties; auto is JSON lines if a topic has properties.",
        ),
    ] = "auto",
    catalog: CatalogOption = None,
) -> None:
    """Write the topics of a namespace as a file that `topics import` takes."""
    from broker_core.catalog import CatalogError, export_topics, summarize
    from broker_core.cli.exit_codes import say

    of = parse_namespace(namespace)
    with opened_catalog(call, catalog) as opened:
        if not opened.version(of).number:
            raise CatalogError(f"{of}: the catalogue {opened.path} never had a topic of this namespace")
    with opened_catalog(call, catalog) as opened, _target(file) as target:
        if form == "auto":
            form = "json" if summarize(opened, of).with_properties else "names"
        lines = export_topics(opened, of, target, form)
    if file != "-":
        say(f"wrote {lines} lines to {Path(file).absolute()}")


@app.command(
    epilog=examples("broker-core topics create public/default orders --partitions 3 --property region=eu")
)
@command
def create(
    call: Call,
    topics: TopicsArgument,
    *,
    partitions: Annotated[
        int, typer.Option(metavar="N", help="How many partitions; 0 is a topic without.", min=0)
    ] = 0,
    properties: Annotated[
        list[str] | None,
        typer.Option(
            "--property", metavar="KEY=VALUE", help="A property; may be repeated.", show_default=False
        ),
    ] = None,
    catalog: CatalogOption = None,
) -> None:
    """Add topics to the catalogue, each with a new id."""
    given = parse_properties(properties)
    names = topic_names(topics)
    with written_catalog(call, catalog, create=True) as opened:
        for name in names:
            record = opened.create(name, partitions=partitions, properties=given or None)
            print(f"created {name}" + (f" with {record.partitions} partitions" if record.partitions else ""))


@app.command(
    epilog=examples(
        "# how many topics each namespace has",
        "broker-core topics show",
        "broker-core topics show public/default orders --format json",
    )
)
@command
def show(
    call: Call,
    topics: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAMESPACE] [TOPIC...]", help="Without a topic: the namespaces.", show_default=False
        ),
    ] = None,
    *,
    form: JsonOrTable = "table",
    catalog: CatalogOption = None,
) -> None:
    """Show topics with their ids, partitions and properties; or namespaces with their versions."""
    from broker_core.cli.printed_output import print_json, print_table

    words = topics or []
    with opened_catalog(call, catalog) as opened:
        if not words or (len(words) == 1 and is_namespace(words[0])):
            columns = ["namespace", "topics", "names", "version"]
            rows = _namespaces(opened, parse_namespace(words[0]) if words else None)
        else:
            columns = ["name", "id", "partitions", "properties", "created"]
            rows = [_described(opened, name) for name in topic_names(words)]
    if form == "json":
        print_json(rows[0] if len(rows) == 1 and words else rows)
    else:
        print_table(columns, ([_cell(row[column]) for column in columns] for row in rows))


@contextmanager
def _target(file: str) -> Iterator[BinaryIO]:
    """Standard output; or a file that is there only once it is whole."""
    import sys

    if file == "-":
        sys.stdout.flush()
        # Not sys.stdout.buffer, which with PYTHONUNBUFFERED is no buffer and may write a part only.
        with open(sys.stdout.fileno(), "wb", closefd=False) as stream:
            yield stream
        return
    part = Path(f"{file}.part")
    try:
        with part.open("wb") as stream:
            yield stream
        part.replace(file)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _namespaces(catalog: SqliteCatalog, only: NamespaceName | None) -> list[dict[str, Any]]:
    from broker_core.catalog import summarize

    summaries = (summarize(catalog, name) for name in ([only] if only is not None else catalog.namespaces()))
    return [
        {
            "namespace": str(summary.namespace),
            "topics": summary.topics,
            "names": summary.names,
            "version": str(summary.version),
        }
        for summary in summaries
    ]


def _described(catalog: SqliteCatalog, name: TopicName) -> dict[str, Any]:
    from broker_core.catalog import TopicMissing, topic_id_text

    record: TopicRecord | None = catalog.topic(name)
    if record is None:
        raise TopicMissing(f"There is no topic {name} in the catalogue")
    return {
        "name": str(record.name),
        "id": topic_id_text(record.topic_id),
        "partitions": record.partitions,
        "properties": dict(record.properties),
        "created": record.created.isoformat(timespec="milliseconds"),
        "names": list(record.names),
    }


def _cell(value: object) -> object:
    if isinstance(value, dict):
        return " ".join(f"{key}={inner}" for key, inner in value.items())
    return value
