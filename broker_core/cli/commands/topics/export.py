"""`broker-core topics export`: the topics of a namespace as a file that an import takes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO, Final, Literal

import typer

from broker_core.cli.common_options import Invocation
from broker_core.cli.help_examples import examples
from broker_core.cli.open_catalog import opened_catalog
from broker_core.cli.options.given_question import NamespaceText
from broker_core.cli.options.option_values import parse_namespace
from broker_core.cli.options.topics import CatalogOption
from broker_core.counted import counted

__all__ = ["EXAMPLES", "export_namespace"]

EXAMPLES: Final = examples(
    "broker-core topics export public/default topics.jsonl --format json",
    "broker-core topics export public/default | broker-core topics import public/copy - --catalog copy.sqlite",
)


def export_namespace(
    invocation: Invocation,
    namespace: NamespaceText,
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
            help="Names, or JSON lines with all that is known; auto is JSON lines if a topic has properties, "
            "configs or replicas, or a name that no line can carry.",
        ),
    ] = "auto",
    catalog: CatalogOption = None,
) -> None:
    """Write the topics of a namespace as a file that `topics import` takes."""
    from broker_core.catalog import CatalogError, export_topics, has_odd_names, summarize
    from broker_core.cli.error_line import say

    of = parse_namespace(namespace)
    with opened_catalog(invocation, catalog) as opened:
        if not opened.version(of).number:
            raise CatalogError(f"{of}: the catalogue {opened.path} never had a topic of this namespace")
        if form == "auto":
            has_details = summarize(opened, of).with_details or has_odd_names(opened, of)
            form = "json" if has_details else "names"
        with _target(file) as target:
            lines = export_topics(opened, of, target, form)
    if file != "-":
        say(f"wrote {counted(lines, 'line')} to {Path(file).absolute()}")


@contextmanager
def _target(file: str) -> Iterator[BinaryIO]:
    """Standard output, or a file that appears only once it is complete."""
    if file == "-":
        sys.stdout.flush()
        # Not sys.stdout.buffer, which with PYTHONUNBUFFERED is not a buffer and may write only a part.
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
