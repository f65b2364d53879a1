"""`broker-core postgres explain`: the SQL of a question, PostgreSQL's plan for it, and its answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer

from broker_core import ListingRequest
from broker_core.plugin_cli import examples, plugin_settings, print_json, print_table
from broker_core_postgres.commands.shared_options import DsnOption
from broker_core_postgres.listing import PAGE_NAMES, PostgresLister, RowConditions, first_page_statement
from broker_core_postgres.service import PostgresService

__all__ = ["EXAMPLES", "run"]

EXAMPLES: Final = examples(
    "broker-core postgres explain public/default --pattern 'public/default/orders-.*' --config broker-core.toml",
    "broker-core postgres explain public/default --property region=eu --json",
)

#: The limit of bytes in the page of the explained statement.
_MOST_BYTES: Final = 64 * 1024 * 1024


def run(
    request: ListingRequest,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.", show_default=False)] = False,
    dsn: DsnOption = None,
) -> None:
    """Show the SQL of a question, its parameters, PostgreSQL's plan, and how many rows and names it comes to.

    The statement runs twice: once under EXPLAIN ANALYZE, once for the listing. Nothing is changed.
    """
    settings = plugin_settings("postgres")
    if dsn is not None:
        settings = settings.model_copy(update={"dsn": dsn})

    async def explain() -> dict[str, Any]:
        service = PostgresService(settings)
        try:
            failure = await service.server_pools.start()
            if failure is not None:
                raise failure
            return await _explained(service.lister, request)
        finally:
            await service.close()

    report = asyncio.run(explain())
    if as_json:
        print_json(report)
    else:
        _print(report)


async def _explained(lister: PostgresLister, request: ListingRequest) -> dict[str, Any]:
    row_conditions = lister.row_conditions(request)
    report: dict[str, Any] = {
        "namespace": row_conditions.namespace,
        "mode": request.mode.name,
        "pattern": request.topics_pattern,
        "properties": dict(row_conditions.properties),
        "ignored_properties": sorted(set(request.properties) - set(row_conditions.properties)),
        "plan": row_conditions.kind,
        "trigrams": lister.trigrams,
        "finished_by_re2": row_conditions.needs_re2,
    }
    if request.pattern is not None and not request.pattern.supported:
        report["unsupported"] = request.pattern.reason
    if lister.settings.only_with_properties and not row_conditions.properties:
        return report | {"answer": "pass_through"}
    if not row_conditions.matches_nothing:
        report |= await _statement(lister, row_conditions)
    started = time.perf_counter()
    result, rows = await lister.answer(request, row_conditions)
    report["total_ms"] = _milliseconds(started)
    if result.is_pass_through:
        return report | {"answer": "pass_through", "why": result.why}
    topics: Any = result.topics
    return report | {
        "answer": "success",
        "version": result.version,
        "rows": rows,
        "topics": len(topics),
        "topics_hash": topics.topics_hash,
        "filtered": result.filtered,
    }


async def _statement(lister: PostgresLister, row_conditions: RowConditions) -> dict[str, Any]:
    """The first statement, its parameters, and PostgreSQL's plan for it."""
    async with lister.server_pools.acquire(snapshot=True) as connection:
        statement = first_page_statement(
            row_conditions, await lister.source_for(row_conditions, connection), _MOST_BYTES
        )
        rows = await connection.fetch(f"EXPLAIN (ANALYZE, BUFFERS) {statement.text}", *statement.arguments)
        started = time.perf_counter()
        await connection.fetchrow(statement.text, *statement.arguments)
        return {
            "sql": statement.text,
            "parameters": [_shown(value) for value in statement.arguments],
            "page": PAGE_NAMES,
            "database_ms": _milliseconds(started),
            "explain": [row[0] for row in rows],
        }


def _shown(value: Any) -> Any:
    """A parameter, shortened if it is long."""
    if isinstance(value, list):
        return [_shown(each) for each in value]
    return f"{value[:200]}…" if isinstance(value, str) and len(value) > 200 else value


def _milliseconds(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 3)


def _text(value: Any) -> Any:
    """A value for people; an empty text for a missing one."""
    if isinstance(value, dict):
        return ", ".join(f"{key}={each}" for key, each in value.items())
    if isinstance(value, list):
        return ", ".join(value)
    return "" if value is None else value


def _print(report: Mapping[str, Any]) -> None:
    apart = {"sql", "parameters", "explain"}
    shown = [[key.replace("_", " "), _text(value)] for key, value in report.items() if key not in apart]
    print_table(["", ""], [row for row in shown if row[1] != ""])
    if "sql" in report:
        print(f"\n{report['sql']}\n")
        for number, value in enumerate(report["parameters"], 1):
            print(f"${number} = {value!r}")
        print("\n" + "\n".join(report["explain"]))
