"""`broker-core config`: every setting in force, and its origin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from broker_core.cli.common_options import Invocation
from broker_core.cli.help_examples import examples
from broker_core.compact_json import ascii_json, compact_json

if TYPE_CHECKING:
    from pathlib import Path

    from broker_core.settings import LoadedSettings, SettingInForce

__all__ = ["EXAMPLES", "as_json", "as_toml", "show_settings"]

EXAMPLES: Final = examples(
    "broker-core config --config broker-core.toml",
    "BROKER_CORE_PULSAR__LISTEN=0.0.0.0:6650 broker-core config --format json",
)

#: The tables that are absent by default, and what their absence means.
_ABSENT: Final = {
    "http": "HTTP is off",
    "kafka": "no Kafka clients are served",
    "upstream": "topics are listed from the catalogue",
}


def show_settings(
    invocation: Invocation,
    *,
    form: Annotated[
        Literal["toml", "json"], typer.Option("--format", help="How to print the settings.")
    ] = "toml",
) -> None:
    """Print the settings in force and where each is from: default, file, environment. Secrets are masked."""
    from broker_core.cli.printed_output import print_json, print_lines

    loaded = invocation.load()
    if form == "json":
        print_json(as_json(loaded))
    else:
        print_lines(as_toml(loaded.in_force(), loaded.file))


def as_toml(settings: Iterable[SettingInForce], file: Path | None) -> Iterator[str]:
    """Lines of TOML, each setting followed by its origin."""
    from broker_core.settings import masked

    yield f"# settings file: {file.absolute()}" if file is not None else "# no settings file"
    tables: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    for setting in settings:
        origin = "default" if setting.origin == "default" else f"{setting.origin} {setting.source}"
        line = f"{_key(setting.path[-1])} = {_value(masked(setting.path, setting.value))}"
        tables.setdefault(setting.path[:-1], []).append((line, origin))
    for table, lines in sorted(tables.items(), key=lambda each: bool(each[0])):  # a key of no table is first
        yield ""
        if table:
            yield f"[{'.'.join(map(_key, table))}]"
        yield from _aligned(lines)
    seen = {table[0] for table in tables if table}
    for name, without in _ABSENT.items():
        if name not in seen:
            yield ""
            yield f"# no table [{name}]: {without}"


def as_json(loaded: LoadedSettings) -> dict[str, Any]:
    """``{"file": ..., "settings": {table: {key: value}}, "from": {"table.key": {"origin": ..., "source": ...}}}``."""
    from broker_core.settings import masked

    settings: dict[str, Any] = {}
    origins: dict[str, dict[str, str]] = {}
    for setting in loaded.in_force():
        inner = settings
        for part in setting.path[:-1]:
            inner = inner.setdefault(part, {})
        inner[setting.path[-1]] = masked(setting.path, setting.value)
        origins[".".join(setting.path)] = {"origin": setting.origin, "source": setting.source}
    file = str(loaded.file.absolute()) if loaded.file is not None else None
    return {"file": file, "settings": settings, "from": origins}


def _aligned(lines: list[tuple[str, str]]) -> Iterator[str]:
    width = min(48, max((len(line) for line, _ in lines), default=0))
    for line, origin in lines:
        yield f"{line:{width}}  # from {origin}"


def _key(part: str) -> str:
    bare = part.replace("-", "").replace("_", "")
    return part if bare.isascii() and bare.isalnum() else ascii_json(part)


def _value(value: Any) -> str:
    """A value in TOML."""
    if isinstance(value, dict):
        # Omitted keys of a row have no value in TOML.
        there = {key: inner for key, inner in value.items() if inner is not None}
        return "{" + ", ".join(f"{_key(key)} = {_value(inner)}" for key, inner in there.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, str | bool) or value is None:
        return compact_json(value)
    return str(value)
