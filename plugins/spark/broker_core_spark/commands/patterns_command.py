"""``broker-core spark patterns export``: the questions of a running broker as the pattern file of a batch."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Final

import typer

from broker_core.errors import BrokerCoreError
from broker_core.plugin_cli import RunningBroker, broker_settings, examples, print_lines, say
from broker_core.quantities import counted
from broker_core_spark.commands.store_option import StoreOptions, chosen_options

__all__ = ["EXAMPLES", "app", "export", "worth_precomputing"]

EXAMPLES: Final = examples(
    "broker-core spark patterns export --config broker-core.toml --output patterns.jsonl",
    "broker-core spark patterns export --broker http://127.0.0.1:8080 --limit 1000 --min-count 10",
)

#: More than any broker counts, and exact in a float.
_ENDLESS: Final = 2**53

app = typer.Typer(help="The patterns that are worth precomputing.", no_args_is_help=True)


@app.callback()
def _patterns() -> None:
    """Register one command as a group."""


@app.command("export", epilog=EXAMPLES)
def export(
    *,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="URI",
            help="The file to write: a path, s3:// ... Without it, standard output.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", min=1, metavar="N", help="How many at most: the most expensive ones.")
    ] = 10_000,
    min_count: Annotated[
        int, typer.Option("--min-count", min=1, metavar="N", help="Only what was asked at least so often.")
    ] = 2,
    store_options: StoreOptions = None,
    broker: RunningBroker,
) -> None:
    """Write the questions that a running broker was asked as JSON lines, the most expensive ones first.

    What a question costs is the time that its answers took, all together. Patterns that RE2 refuses
    are left out, and those that are longer than patterns.max_length.
    """
    from broker_core_spark.format import canonical_json

    longest, url = broker_settings().max_pattern_length, broker.url
    questions, refused = worth_precomputing(
        broker.get("/questions"), url, limit=limit, min_count=min_count, max_length=longest
    )
    lines = [canonical_json(question).decode() for question in questions]
    if output is None:
        print_lines(lines)
    else:
        from broker_core_spark.store import addressed_file

        file = addressed_file(output, chosen_options(output, store_options))
        file.write("".join(line + "\n" for line in lines).encode())
    if not questions:
        say(
            f"no question to learn from {url}: the broker was asked none, or none "
            f"{counted(min_count, 'time')} (--min-count)"
        )
    if refused:
        say(
            f"left out {counted(refused, 'pattern')} that RE2 refuses, or too long: brokers leave them to the client"
        )


def worth_precomputing(
    body: str, url: str, *, limit: int, min_count: int, max_length: int
) -> tuple[list[dict[str, Any]], int]:
    """The questions of ``GET /questions`` to precompute, and the number of those with a refused pattern.

    Each has how often it was asked at least, and when it was asked last. Each is checked as a batch checks it. Raises
    :exc:`BrokerCoreError` for an invalid line.
    """
    from broker_core_spark.batch import (
        ROW_KEYS,
        InvalidPatterns,
        parse_json_line,
        parse_last_time,
        parse_question_row,
        refusal_reason,
    )
    from broker_core_spark.format import canonical_json

    found: list[tuple[float, dict[str, Any]]] = []
    refused = 0
    for number, line in enumerate(
        body.split("\n"), 1
    ):  # splitlines() would cut JSON at its Unicode separators
        if not line:
            continue
        place = f"{url}/questions: line {number} is no question"
        try:
            row = parse_json_line(place, line.encode())
            record = row if isinstance(row, dict) else {}
            missing = [key for key in ROW_KEYS if key not in record]
            if missing:
                raise InvalidPatterns(f"{place}: it has no {missing[0]}")
            question = {key: record[key] for key in ROW_KEYS}
            _, _, pattern, _ = parse_question_row(place, question)
            # The sketch counts too much by its error at most.
            count = _number(place, record, "count") - _number(place, record, "error")
            cost = _number(place, record, "seconds")
            last = parse_last_time(place, record) or datetime.now(UTC)
        except InvalidPatterns as error:
            raise BrokerCoreError(str(error)[:1000]) from None
        if count < min_count:
            continue
        if refusal_reason(pattern, max_length) is not None:
            refused += 1
        else:
            found.append(
                (cost, {**question, "count": int(count), "last_asked": last.isoformat(timespec="seconds")})
            )
    found.sort(key=lambda item: (-item[0], canonical_json(item[1])))
    return [question for _, question in found[:limit]], refused


def _number(place: str, record: dict[str, Any], key: str) -> float:
    """A count or a measurement: finite and not negative."""
    from broker_core_spark.batch import InvalidPatterns

    value: Any = record.get(key)
    if type(value) not in (int, float) or not 0 <= value < _ENDLESS:  # NaN fails the comparison too
        raise InvalidPatterns(f"{place}: {key} must be a number from 0 to {_ENDLESS:g}")
    return float(value)
