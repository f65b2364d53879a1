"""`broker-core topics ...`: the topics of the catalogue. A server that runs on the same file sees every change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Literal

import typer

from broker_core.cli.call import Call, command
from broker_core.cli.examples import examples
from broker_core.cli.question import UnusableQuestion, parse_namespace, parse_properties, usable
from broker_core.errors import BrokerCoreError

if TYPE_CHECKING:
    from broker_core.catalog import SqliteCatalog, TopicRecord
    from broker_core.names import NamespaceName, TopicName

__all__ = ["app", "topic_names"]

CatalogOption = Annotated[
    Path | None,
    typer.Option(
        "--catalog", metavar="FILE", help="The catalogue, instead of catalog.path.", show_default=False
    ),
]
NamespaceArgument = Annotated[
    str, typer.Argument(metavar="NAMESPACE", help="tenant/namespace", show_default=False)
]
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
    help="Import, export, create, delete and show topics of the catalogue.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.callback()
@command
def _topics() -> None:
    """Import, export, create, delete and show topics of the catalogue."""


@app.command(
    "import",
    epilog=examples(
        "broker-core topics import public/default names.txt --config broker-core.toml",
        """echo '{"name": "orders", "partitions": 3, "properties": {"region": "eu"}}' | """
        "broker-core topics import public/default -",
    ),
)
@command
def import_(
    call: Call,
    namespace: NamespaceArgument,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE|-", help="The file of names, or - for standard input.", show_default=False
        ),
    ],
    *,
    catalog: CatalogOption = None,
) -> None:
    """Add the topics of a file to a namespace: all of them, or none if a line is wrong.

    One name a line, local or full, exactly as it stands; or, if the file begins with `{`, one JSON object a line:
    `{"name": ..., "partitions": 3, "properties": {...}}`. A topic that is there keeps its id and gets the properties.
    """
    from broker_core.catalog import ImportRefused, import_topics
    from broker_core.cli.progress import import_progress

    into = parse_namespace(namespace)
    with _opened(call, catalog, create=True) as topics, _source(file) as source:
        try:
            with import_progress(source) as progress:
                report = import_topics(topics, into, source, progress=progress)
        except ImportRefused as error:
            raise BrokerCoreError(f"{file if file != '-' else 'standard input'}: {error}") from error
    print(
        f"imported {report.topics} topics into {into}: {report.created} created, {report.updated} updated, "
        f"{report.unchanged} unchanged"
    )


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
    from broker_core.catalog import CatalogError, export_topics
    from broker_core.catalog.summary import summarize

    of = parse_namespace(namespace)
    with _opened(call, catalog) as opened:
        if not opened.version(of).number:
            raise CatalogError(f"{of}: the catalogue {opened.path} never had a topic of this namespace")
    with _opened(call, catalog) as opened, _target(file) as target:
        if form == "auto":
            form = "json" if summarize(opened, of).with_properties else "names"
        export_topics(opened, of, target, form)


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
    with _opened(call, catalog, create=True) as opened:
        for name in names:
            record = opened.create(name, partitions=partitions, properties=given or None)
            print(f"created {name}" + (f" with {record.partitions} partitions" if record.partitions else ""))


@app.command(epilog=examples("broker-core topics delete persistent://public/default/orders"))
@command
def delete(call: Call, topics: TopicsArgument, *, catalog: CatalogOption = None) -> None:
    """Remove topics with all their partitions or, by the name of a partition, that one; all of them or none."""
    names = topic_names(topics)
    with _opened(call, catalog) as opened:
        opened.delete_all(names)
    for name in names:
        print(f"deleted {name}")


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
    from broker_core.cli.output import print_json, print_table

    words = topics or []
    with _opened(call, catalog) as opened:
        if not words or (len(words) == 1 and _is_namespace(words[0])):
            columns = ["namespace", "topics", "names", "version"]
            rows = _namespaces(opened, parse_namespace(words[0]) if words else None)
        else:
            columns = ["name", "id", "partitions", "properties", "created"]
            rows = [_described(opened, name) for name in topic_names(words)]
    if form == "json":
        print_json(rows[0] if len(rows) == 1 and words else rows)
    else:
        print_table(columns, ([_cell(row[column]) for column in columns] for row in rows))


def topic_names(words: Sequence[str]) -> list[TopicName]:
    """The topics that arguments mean: full names, or a namespace and names in it.

    A local name has no ``/``, so the first word tells. Raises :exc:`UnusableQuestion`.
    """
    from broker_core.catalog import topic_in_namespace
    from broker_core.names import TopicName

    if _is_namespace(words[0]):
        namespace = parse_namespace(words[0])
        if len(words) == 1:
            raise UnusableQuestion(f"{words[0]!r} is a namespace: name the topic as well")
        with usable():
            return [topic_in_namespace(namespace, word) for word in words[1:]]
    with usable():
        # Pulsar's own tools take tenant/namespace/topic for a persistent topic, so do we.
        return [TopicName.parse(word if "://" in word else f"persistent://{word}") for word in words]


def _is_namespace(word: str) -> bool:
    return word.count("/") == 1 and "://" not in word


@contextmanager
def _opened(call: Call, catalog: Path | None, *, create: bool = False) -> Iterator[SqliteCatalog]:
    from broker_core.catalog import SqliteCatalog
    from broker_core.cli.logs import silence_logs

    if not call.debug:
        silence_logs()
    settings = call.load({"--catalog": (("catalog", "path"), catalog)}).settings
    with SqliteCatalog(settings.catalog.path, create=create) as opened:
        yield opened


@contextmanager
def _source(file: str) -> Iterator[BinaryIO]:
    import sys

    if file == "-":
        yield sys.stdin.buffer
    else:
        with Path(file).open("rb") as stream:
            yield stream


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
    from broker_core.catalog.summary import summarize

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
