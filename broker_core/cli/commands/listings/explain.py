"""`broker-core explain`: one listing through the pipeline of the settings, in this process, and what each step did."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from broker_core.cli.common_options import Invocation, catalog_option
from broker_core.cli.help_examples import examples
from broker_core.cli.options.given_question import GivenQuestion, HashOption
from broker_core.cli.options.option_values import UnusableQuestion, parse_address, usable

if TYPE_CHECKING:
    from broker_core.access import Asker
    from broker_core.listing import Page
    from broker_core.settings import Settings

__all__ = ["EXAMPLES", "explain_listing"]

EXAMPLES: Final = examples(
    "broker-core explain public/default --config broker-core.toml --pattern 'public/default/orders-.*'",
    "broker-core explain public/default --config broker-core.toml --property region=eu --format json",
)


def explain_listing(
    invocation: Invocation,
    question: GivenQuestion,
    *,
    topics_hash: HashOption = None,
    role: Annotated[
        str | None,
        typer.Option("--role", metavar="ROLE", help="The authenticated role that asks.", show_default=False),
    ] = None,
    original_principal: Annotated[
        str | None,
        typer.Option(
            "--original-principal",
            metavar="ROLE",
            help="The role that a proxy with the role of --role asks for; both must be allowed.",
            show_default=False,
        ),
    ] = None,
    address: Annotated[
        str,
        typer.Option(
            "--address", metavar="HOST:PORT", help="The address of the client; the port may be left out."
        ),
    ] = "127.0.0.1:0",
    client_version: Annotated[
        str | None,
        typer.Option(
            "--client-version",
            metavar="TEXT",
            help="The name of the client's software, such as Pulsar-Java-v4.2.4; by default this command's.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", metavar="N", min=1, help="Ask for a page of this many names.", show_default=False
        ),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--start", metavar="TOPIC", help="The full name at which the page begins.", show_default=False
        ),
    ] = None,
    wants: Annotated[
        list[str] | None,
        typer.Option(
            "--want",
            metavar="DETAIL",
            help="Ask for a detail of the topics too: partitions, topic_id, properties, configs or created; "
            "may be repeated.",
            show_default=False,
        ),
    ] = None,
    form: Annotated[
        Literal["table", "json"], typer.Option("--format", help="How to print the explanation.")
    ] = "table",
    catalog: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The catalogue, instead of catalog.path.", show_default=False),
    ] = None,
) -> None:
    """Run one listing without a server: what each plugin answered, the plan, sizes, permits, hash.

    Uses the plugins, the catalogue or the brokers of the settings, and the client that the options describe. A listing
    that fails is explained too; the exit code is then not 0.
    """
    import asyncio

    from broker_core.access import Asker
    from broker_core.cli.error_line import say
    from broker_core.cli.exit_codes import EXIT_FAILED
    from broker_core.cli.printed_output import print_json
    from broker_core.cli.server_process.server_log import silence_logs
    from broker_core.client import default_client_version

    if not invocation.debug:
        silence_logs()
    asker = Asker(
        role=role,
        original_principal=original_principal,
        remote_address=parse_address(address),
        client_version=client_version or default_client_version(),
        transport="explain",
    )
    page, wanted = _page(start, limit), _wants(wants)
    if role == "":
        raise UnusableQuestion("--role: the role is empty")
    settings = invocation.load(catalog_option(catalog)).settings
    with _as_before_the_first_start(settings, named=catalog is not None) as found:
        report = asyncio.run(_explained(found, question, asker, topics_hash, page, wanted))
    if form == "json":
        print_json(report)
    elif question.pattern is None or report["pattern"] is not None:  # else there is nothing but the error
        _print_tables(report)
    if "error" in report:
        say(f"{report['code']}: {report['error']}")
        raise typer.Exit(EXIT_FAILED)


@contextmanager
def _as_before_the_first_start(settings: Settings, *, named: bool) -> Iterator[Settings]:
    """Settings with a temporary empty catalogue, if plugins list and no server has made a catalogue yet.

    A catalogue that the caller ``named``, or that is the only lister, must exist.
    """
    from tempfile import TemporaryDirectory

    from broker_core.catalog import SqliteCatalog

    path = settings.catalog.path
    if named or settings.upstream is not None or not settings.plugins.enabled or path.exists():
        yield settings
        return
    with TemporaryDirectory(prefix="broker-core-") as folder:
        empty = settings.catalog.model_copy(update={"path": Path(folder) / path.name})
        SqliteCatalog(empty.path).close()
        yield settings.model_copy(update={"catalog": empty})


def _page(start: str | None, limit: int | None) -> Page | None:
    from broker_core.listing import Page, Position

    if start is None:
        return None if limit is None else Page(None, limit)
    with usable():
        position = Position.of(start)
    return Page(position) if limit is None else Page(position, limit)


def _wants(columns: list[str] | None) -> frozenset[str]:
    from broker_core.listing import checked_wants

    try:
        return checked_wants(frozenset(columns or ()))
    except ValueError as error:
        raise UnusableQuestion(f"--want: {error}") from None


async def _explained(
    settings: Settings,
    question: GivenQuestion,
    asker: Asker,
    topics_hash: str | None,
    page: Page | None,
    wants: frozenset[str],
) -> dict[str, Any]:
    import asyncio
    from dataclasses import replace

    from broker_core.broker import opened_pipeline
    from broker_core.errors import ListingFailed
    from broker_core.pipeline import explain

    async with opened_pipeline(settings) as pipeline:
        try:
            request, uncompiled = pipeline.question(
                settings.limits,
                asker,
                question.namespace,
                question.mode,
                question.pattern,
                list(question.properties.items()),
                deadline=asyncio.get_running_loop().time() + pipeline.options.time_budget,
                topics_hash=topics_hash,
            )
            if uncompiled is not None:
                request = await pipeline.with_pattern(request, uncompiled)
        except ListingFailed as failure:  # no plugin was asked
            return {
                **question.shown,
                "topics_pattern": question.pattern,
                "properties": question.properties,
                **dict.fromkeys(("pattern", "topics")),
                **{step: list[Any]() for step in ("rules", "gates", "chain", "masks")},
                **dict.fromkeys(("lister", "plan", "plugin")),
                "warnings": [],
                "error": failure.message,
                "code": failure.code.name,
                "cause": failure.cause.value,
                "detail": failure.message,
            }
        request = replace(request, page=page, wants=wants)
        report = await explain(pipeline, request)
        if settings.kafka is not None and "error" not in report:
            from broker_core.servers.kafka import explain_kafka

            report["kafka"] = await explain_kafka(pipeline, settings, request)
        return report


def _print_tables(report: dict[str, Any]) -> None:
    from broker_core.cli.printed_output import print_lines, print_table

    if report["rules"]:
        print_table(
            ["role", "action", "allowed", "by"],
            [
                [each["role"], each["action"], _text(each["allowed"]), each["rule"]]
                for each in report["rules"]
            ],
            title="The rules of [authorization]",
        )
    steps = [
        (step, what)
        for kind, what in (("gates", "authorizes"), ("chain", "lists"), ("masks", "hides"))
        for step in report[kind]
    ]
    if steps:
        print_table(
            ["plugin", "", "answer", "ms", "why"],
            [
                [step["plugin"], what, _answer(step), step["ms"], step.get("error", step.get("why"))]
                for step, what in steps
            ],
            title="Plugins, in the order in which they were asked",
        )
    shown = {
        key: value
        for key, value in report.items()
        if key not in {"rules", "gates", "chain", "masks", "warnings"} and value not in (None, {}, [])
    }
    print_table(["", ""], [[key.replace("_", " "), _text(value)] for key, value in shown.items()])
    if report["warnings"]:
        print_lines([f"warning: {warning}" for warning in report["warnings"]])


def _answer(step: dict[str, Any]) -> str:
    age, version = step.get("stale_s"), step.get("version")
    answer = str(step["answer"]) if age is None else f"{step['answer']}, {age:g} s old"
    if version is not None:
        answer += f", {'kept' if step.get('kept') else 'new'} at version {version}"
    return answer


def _text(value: Any) -> str:
    if isinstance(value, dict):
        pairs = ((key, inner) for key, inner in value.items() if inner not in (None, [], {}))
        return "\n".join(f"{key}: {_text(inner)}" for key, inner in pairs)
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "\n".join("; ".join(_text(each).splitlines()) for each in value)
    if isinstance(value, list):
        return ", ".join(" to ".join(item) if isinstance(item, list) else str(item) for item in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
