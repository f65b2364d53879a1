"""Printing of results per item: a line for each that succeeded, an error for each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import typer

from broker_core.cli.error_line import say
from broker_core.cli.exit_codes import EXIT_FAILED
from broker_core.cli.printed_output import print_lines
from broker_core.errors import BrokerCoreError

__all__ = ["print_results", "succeeded"]

K = TypeVar("K")
V = TypeVar("V")


def succeeded(
    results: Mapping[K, V],
    shown: Callable[[K], str] = str,
    passed: tuple[type[BrokerCoreError], ...] = (),
) -> tuple[dict[K, V], bool]:
    """The items with a value, and whether these are all; each error is printed on standard error.

    Items whose error is of a type in ``passed`` are ignored.
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
    return values, is_whole


def print_results(
    results: Mapping[K, V],
    done: Callable[[K], str],
    shown: Callable[[K], str] = str,
    passed: tuple[type[BrokerCoreError], ...] = (),
) -> None:
    """Print the line of ``done`` for each item that succeeded. The command fails if one did not."""
    values, is_whole = succeeded(results, shown, passed)
    print_lines(done(item) for item in values)
    if not is_whole:
        raise typer.Exit(EXIT_FAILED)
