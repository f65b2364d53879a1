"""``broker-core spark patterns export``: what the running broker was asked, as the pattern file of a batch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from broker_core.cli.examples import examples
from broker_core_spark.commands.broker_http import BrokerOption, BrokerUnreachable, broker_url, get

__all__ = ["EXAMPLES", "app", "export", "learned"]

EXAMPLES: Final = examples(
    "broker-core spark patterns export --config broker-core.toml --output patterns.jsonl",
    "broker-core spark patterns export --broker http://127.0.0.1:8080 --limit 1000 --min-count 10",
)

app = typer.Typer(help="The patterns that are worth precomputing.", no_args_is_help=True)


@app.callback()
def _patterns() -> None:
    """A group of one command is still a group."""


@app.command("export", epilog=EXAMPLES)
def export(
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The file to write. Without it, standard output.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", min=1, metavar="N", help="How many at most: the most expensive ones.")
    ] = 10_000,
    min_count: Annotated[
        int, typer.Option("--min-count", min=1, metavar="N", help="Only what was asked at least so often.")
    ] = 2,
    broker: BrokerOption = None,
) -> None:
    """Write the questions that a running broker was asked as JSON lines, the most expensive ones first.

    What a question costs is the time that its answers took, all together. Patterns that RE2 refuses are left out.
    """
    from broker_core.cli.failures import say
    from broker_core.cli.output import print_lines

    url = broker_url(broker)
    questions, refused = learned(get(url, "/questions"), url, limit=limit, min_count=min_count)
    lines = [json.dumps(question, ensure_ascii=False, sort_keys=True) for question in questions]
    if output is None:
        print_lines(lines)
    else:
        text = "".join(line + "\n" for line in lines)
        # Whole or not at all: a batch may read it at any time.
        beside = output.with_name(output.name + ".new")
        beside.write_text(text, encoding="utf-8")
        beside.replace(output)
    if refused:
        say(f"left out {refused} patterns that RE2 refuses: brokers pass them on to the client")


def learned(body: str, url: str, *, limit: int, min_count: int) -> tuple[list[dict[str, Any]], int]:
    """The questions of ``GET /questions`` that are worth a place, and how many were left out for their pattern.

    Raises :exc:`BrokerUnreachable` where the body is something else.
    """
    found: list[tuple[float, dict[str, Any]]] = []
    refused = 0
    for line in body.split("\n"):  # not splitlines(): JSON may have its other separators within a text
        if not line:
            continue
        try:
            record = json.loads(line)
            question = {key: record[key] for key in ("namespace", "mode", "pattern", "properties")}
            # An upper bound of the sketch less its error was certainly asked.
            count, cost = int(record["count"]) - int(record["error"]), float(record["seconds"])
            known = _is_known(question)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BrokerUnreachable(f"{url}/questions: a line is no question: {error}") from error
        if count < min_count:
            continue
        if not known:
            refused += 1
            continue
        found.append((cost, question))
    found.sort(key=lambda item: (-item[0], json.dumps(item[1], sort_keys=True)))
    return [question for _, question in found[:limit]], refused


def _is_known(question: dict[str, Any]) -> bool:
    """Whether RE2 runs the pattern."""
    from broker_core.errors import InvalidPattern
    from broker_core.patterns import MAX_LENGTH, compile_pattern

    pattern = question["pattern"]
    if pattern is None:
        return True
    try:
        return compile_pattern(pattern, max_length=max(MAX_LENGTH, 2 * len(pattern))).supported
    except InvalidPattern:
        return False
