"""Printed results per item: a line for each success, an error for each failure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

import typer

from broker_core.cli.error_line import say
from broker_core.cli.exit_codes import EXIT_FAILED
from broker_core.cli.printed_output import print_lines
from broker_core.errors import BrokerCoreError

__all__ = ["print_results", "succeeded"]

K = TypeVar("K")
V = TypeVar("V")


@contextmanager
def succeeded(
    results: Mapping[K, V],
    shown: Callable[[K], str] = str,
    passed: tuple[type[BrokerCoreError], ...] = (),
) -> Iterator[dict[K, V]]:
    """The items with a value, for a block that prints them; the error of each other item is printed before it.

    The command fails after the block if there was one. Items whose error is of a type in ``passed`` are ignored.
    """
    values: dict[K, V] = {}
    is_whole = True
    for item in results:
        try:
            values[item] = results[item]
        except passed:
            pass
        except BrokerCoreError as failed:
            name = shown(item)
            say(f"{name or repr(name)}: {failed}")
            is_whole = False
    yield values
    if not is_whole:
        raise typer.Exit(EXIT_FAILED)


def print_results(
    results: Mapping[K, V],
    done: Callable[[K], str],
    shown: Callable[[K], str] = str,
    passed: tuple[type[BrokerCoreError], ...] = (),
) -> None:
    """Print the line of ``done`` for each item that succeeded. The command fails if one did not."""
    with succeeded(results, shown, passed) as values:
        print_lines(done(item) for item in values)
