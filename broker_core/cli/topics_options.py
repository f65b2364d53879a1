"""What the commands of `broker-core topics` have in common: arguments, names of topics, and the catalogue itself."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from broker_core.cli.invocation import Call
from broker_core.cli.options.question import UnusableQuestion, parse_namespace, usable

if TYPE_CHECKING:
    from broker_core.catalog import SqliteCatalog
    from broker_core.mass_deletion import Refusal
    from broker_core.names import NamespaceName, TopicName

__all__ = [
    "CatalogOption",
    "DryRunOption",
    "NamespaceArgument",
    "file_to_read",
    "is_namespace",
    "opened_catalog",
    "say_ahead",
    "say_no_match",
    "topic_names",
    "written_catalog",
]

CatalogOption = Annotated[
    Path | None,
    typer.Option(
        "--catalog", metavar="FILE", help="The catalogue, instead of catalog.path.", show_default=False
    ),
]
NamespaceArgument = Annotated[
    str, typer.Argument(metavar="NAMESPACE", help="tenant/namespace", show_default=False)
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Change nothing, say what would change.", show_default=False)
]


def topic_names(words: Sequence[str]) -> list[TopicName]:
    """The topics that arguments mean: full names, or a namespace and names in it.

    A local name has no ``/``, so the first word tells. Raises :exc:`UnusableQuestion`.
    """
    from broker_core.catalog import topic_in_namespace
    from broker_core.names import TopicName

    if is_namespace(words[0]):
        namespace = parse_namespace(words[0])
        if len(words) == 1:
            raise UnusableQuestion(f"{words[0]!r} is a namespace: name the topic as well")
        with usable():
            return [topic_in_namespace(namespace, word) for word in words[1:]]
    with usable():
        # Pulsar's own tools take tenant/namespace/topic for a persistent topic, so do we.
        return [TopicName.parse(word if "://" in word else f"persistent://{word}") for word in words]


def say_ahead(refusal: Refusal | None) -> None:
    """What a dry run has to say on standard error of the run that it stands for."""
    from broker_core.cli.exit_codes import say

    if refusal is not None:
        sys.stdout.flush()
        say(refusal.ahead)


def say_no_match(namespace: NamespaceName, pattern: str) -> None:
    """That a pattern selects no topic: on standard error, since a misspelt one is no failure of a script."""
    from broker_core.cli.exit_codes import say

    sys.stdout.flush()
    say(f"no topic of {namespace} matches {pattern!r}; a pattern matches the whole of tenant/namespace/topic")


def is_namespace(word: str) -> bool:
    """Whether an argument has the form of ``tenant/namespace``."""
    return word.count("/") == 1 and "://" not in word


@contextmanager
def opened_catalog(call: Call, catalog: Path | None) -> Iterator[SqliteCatalog]:
    """The catalogue of the settings or of ``--catalog``, to be read."""
    with _opened(call, catalog, create=False) as opened:
        yield opened


@contextmanager
def written_catalog(call: Call, catalog: Path | None, *, create: bool = False) -> Iterator[SqliteCatalog]:
    """The same, to be written; standard error says which file that was, where it was made, and whether it changed."""
    from broker_core.cli.exit_codes import say
    from broker_core.cli.new_catalog import NewCatalog

    loaded = call.load(_options(catalog))
    new = NewCatalog.of(loaded) if create else None
    with _opened(call, catalog, create=create) as opened:
        if new is not None:
            say(new.text)
        yield opened
        if new is None:
            sys.stdout.flush()  # what was printed comes first, wherever both go
            if opened.migrated is not None:
                say(opened.migrated.text)
            said = "wrote" if opened.committed else "nothing changed in"
            say(f"{said} the catalogue {os.path.abspath(opened.path)}")  # noqa: PTH100 - without its ".."


@contextmanager
def _opened(call: Call, catalog: Path | None, *, create: bool) -> Iterator[SqliteCatalog]:
    from broker_core.catalog import SqliteCatalog
    from broker_core.cli.server_process.server_log import silence_logs

    if not call.debug:
        silence_logs()
    settings = call.load(_options(catalog)).settings
    with SqliteCatalog(settings.catalog.path, create=create) as opened:
        yield opened


def _options(catalog: Path | None) -> dict[str, tuple[tuple[str, ...], object]]:
    return {"--catalog": (("catalog", "path"), catalog)}


@contextmanager
def file_to_read(file: str) -> Iterator[BinaryIO]:
    """A file by its path, or standard input by ``-``; what is wrong with a line names it."""
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
