"""Arguments and options of `broker-core topics ...`: names of topics, a file of topics, a pattern, the catalogue."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from broker_core.cli.options.option_values import UnusableQuestion, parse_namespace, usable

if TYPE_CHECKING:
    from broker_core.names import TopicName

__all__ = [
    "CatalogOption",
    "DryRunOption",
    "IdsOption",
    "MatchingOption",
    "file_to_read",
    "is_namespace",
    "names_and_ids",
    "topic_names",
]

CatalogOption = Annotated[
    Path | None,
    typer.Option(
        "--catalog", metavar="FILE", help="The catalogue, instead of catalog.path.", show_default=False
    ),
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Change nothing, say what would change.", show_default=False)
]
MatchingOption = Annotated[
    str | None,
    typer.Option(
        "--pattern",
        metavar="REGEX",
        help="All topics of the namespace whose name matches in full, as in a listing.",
        show_default=False,
    ),
]


IdsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--id",
        metavar="ID",
        help="A topic by its id, in base64 as Kafka prints it, or in hexadecimal; may be repeated.",
        show_default=False,
    ),
]


def names_and_ids(
    words: Sequence[str] | None, ids: Sequence[str] | None
) -> tuple[list[TopicName], list[uuid.UUID]]:
    """The topics that arguments name and those of ``--id``, at least one; raises :exc:`UnusableQuestion`."""
    from broker_core.catalog import parse_topic_id

    if not words and not ids:
        raise UnusableQuestion("name the topics, or give their ids by --id")
    with usable():
        return topic_names(words) if words else [], [parse_topic_id(text) for text in ids or ()]


def topic_names(words: Sequence[str]) -> list[TopicName]:
    """The topics that arguments name: full names, or a namespace and names in it.

    A local name has no ``/``, so the first word decides. Raises :exc:`UnusableQuestion`.
    """
    from broker_core.names import TopicName, topic_in_namespace

    if is_namespace(words[0]):
        namespace = parse_namespace(words[0])
        if len(words) == 1:
            raise UnusableQuestion(f"{words[0]!r} is a namespace: name the topic as well")
        with usable():
            return [topic_in_namespace(namespace, word) for word in words[1:]]
    for word in words:
        if "://" not in word and word.count("/") != 2:
            raise UnusableQuestion(
                f"{word!r} is no namespace (tenant/namespace) and no full name of a topic (tenant/namespace/topic)"
            )
    with usable():
        # Pulsar's own tools read tenant/namespace/topic as a persistent topic, and so do we.
        return [TopicName.parse(word if "://" in word else f"persistent://{word}") for word in words]


def is_namespace(word: str) -> bool:
    """Whether an argument has the form of ``tenant/namespace``."""
    return word.count("/") == 1 and "://" not in word


@contextmanager
def file_to_read(file: str) -> Iterator[BinaryIO]:
    """A file by its path, or standard input by ``-``; errors about a line name the file."""
    from broker_core.catalog import ImportRefused
    from broker_core.errors import BrokerCoreError

    try:
        if file == "-":
            yield sys.stdin.buffer
        else:
            with Path(file).open("rb") as stream:
                yield stream
    except ImportRefused as error:
        raise BrokerCoreError(f"{file if file != '-' else 'standard input'}: {error}") from error
