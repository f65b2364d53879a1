"""`broker-core reload`: the running server reads its settings again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from broker_core.cli.common_options import Invocation
from broker_core.cli.help_examples import examples
from broker_core.cli.running_broker import BrokerUnreachable, admin_socket, get, reload_page
from broker_core.compact_json import compact_json

if TYPE_CHECKING:
    from broker_core.settings import Settings, SettingsError

__all__ = ["EXAMPLES", "reload_settings"]

EXAMPLES: Final = examples(
    "broker-core reload --config broker-core.toml",
    "# what it would change, and what needs a restart",
    "broker-core reload --config broker-core.toml --dry-run",
)

#: Seconds that a reload may take: plugins may connect to databases anew.
_PATIENCE: Final = 120.0


def reload_settings(
    invocation: Invocation,
    *,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Change nothing: show what would be changed.", show_default=False),
    ] = False,
    form: Annotated[
        Literal["lines", "json"], typer.Option("--format", help="How to print what was changed.")
    ] = "lines",
) -> None:
    """Let the running server read its settings again, as SIGHUP does, or show what that would change.

    Live settings change at once, and nothing under way is lost. Settings that need a restart are named and stay as they
    are. A wrong file changes nothing; the exit code is then 1.
    """
    from broker_core.cli.error_line import say
    from broker_core.cli.exit_codes import EXIT_FAILED
    from broker_core.cli.printed_output import print_json, print_lines

    settings, wrong = _settings(invocation)
    method = "GET" if dry_run else "POST"
    page = reload_page(invocation.config)
    report = _read(get(admin_socket(settings), page, timeout=_PATIENCE, method=method))
    if dry_run:
        report["names_lost"], report["names_not_counted"] = _names_lost(report)
    if form == "json":
        print_json(report)
    else:
        print_lines(_lines(report, dry_run=dry_run))
    for name, reason in report["failed"].items():
        say(f"{name}: {reason}")
    if report["failed"]:
        raise typer.Exit(EXIT_FAILED)
    if wrong:  # of another environment than that of the server
        raise wrong


def _settings(invocation: Invocation) -> tuple[Settings, SettingsError | None]:
    """The settings; if they are wrong, only the operator's socket, and their error: the server checks them itself."""
    from broker_core.settings import Settings, SettingsError, find_admin_socket

    try:
        return invocation.load().settings, None
    except SettingsError as error:
        socket = find_admin_socket(invocation.config)
        if socket is None:
            raise SettingsError(f"{error}; the server was not asked: admin.socket is not known") from error
        return Settings.model_validate({"admin": {"socket": socket}}), error


def _lines(report: Mapping[str, Any], *, dry_run: bool) -> Iterator[str]:
    for word, changes in (
        ("would change" if dry_run else "changed", "changed"),
        ("needs a restart", "restart"),
    ):
        for change in report[changes]:
            for difference in _differences(change["before"], change["after"]):
                yield f"{word}: {change['setting']}: {difference}"
    for role, lost in report.get("names_lost", {}).items():
        yield f"would not be seen any more by {role}: {lost}"
    if report.get("names_not_counted"):
        yield f"not all names that roles lose are counted: {report['names_not_counted']}"
    if report["reloaded"]:
        yield f"reloaded: {', '.join(report['reloaded'])}"
    if not (report["failed"] or report["changed"] or report["restart"]):
        yield "the settings are as the server has them"


def _differences(before: Any, after: Any) -> Iterator[str]:
    """Lines with both values; for lists of tables, such as rules, the removed and added tables with their numbers."""
    from difflib import SequenceMatcher

    values = before, after
    if not all(isinstance(value, list) and all(isinstance(each, dict) for each in value) for value in values):
        yield " -> ".join(map(compact_json, values))
        return
    texts = [
        [compact_json({key: inner for key, inner in each.items() if inner is not None}) for each in value]
        for value in values
    ]
    for _, *bounds in SequenceMatcher(None, texts[0], texts[1], autojunk=False).get_opcodes():
        gone, new = texts[0][slice(*bounds[:2])], texts[1][slice(*bounds[2:])]
        if gone != new:
            yield from (f"-{number} {text}" for number, text in enumerate(gone, bounds[0] + 1))
            yield from (f"+{number} {text}" for number, text in enumerate(new, bounds[2] + 1))


def _names_lost(report: dict[str, Any]) -> tuple[dict[str, str], str | None]:
    """Number of names of the server's catalogue that each role would lose by the new rules, since some clients then
    unsubscribe; and a note if some names were not counted.
    """
    from broker_core.errors import BrokerCoreError

    rules, catalog = report.pop("rules", []), report.pop("catalog", None)
    elsewhere, _ = report.pop("elsewhere", ""), report.pop("another_file", "")
    if not any(change["setting"].startswith("authorization.") for change in report["changed"]):
        return {}, None
    if catalog is None:
        return {}, elsewhere
    if not Path(catalog).exists():
        return {}, f"{catalog}: there is no catalogue"
    from broker_core.access import Authorization
    from broker_core.cli.startup_checks.authorization_rules import names_lost_by_role
    from broker_core.settings import AuthorizationSettings

    try:
        former, newer = (
            Authorization(
                AuthorizationSettings.model_validate(each["authorization"]),
                authentication=each["authentication"],
            )
            for each in rules
        )
        lost, note = names_lost_by_role(former, newer, Path(catalog))
        return lost, "; ".join(filter(None, (elsewhere, note))) or None
    except BrokerCoreError as error:
        return {}, str(error)


def _read(text: str) -> dict[str, Any]:
    report = json.loads(text)
    if not isinstance(report, dict) or not {"failed", "changed", "restart", "reloaded"} <= report.keys():
        raise BrokerUnreachable("there is something else than a broker-core of this release")
    return report
