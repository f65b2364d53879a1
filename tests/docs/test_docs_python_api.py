"""docs/reference/python-api.md has what the public modules export, with the parameters that the functions have."""

from __future__ import annotations

import inspect
from importlib import import_module

import pytest

from tests.docs.pages import code_in, headings, tables

PAGE = "reference/python-api.md"
MODULES = ("broker_core", "broker_core.testing", "broker_core.client", "broker_core.errors")
#: Not for those who call from outside.
HIDDEN = ("self", "cls", "check")
PLACES = (
    *MODULES,
    *(
        f"broker_core.{name}"
        for name in ("selection", "topics_hash", "patterns", "cli.call", "broker", "change_log")
    ),
    *("broker_core.settings", "broker_core.quantities", "broker_core.mass_deletion"),
)


def exports(module: str) -> list[str]:
    return list(import_module(module).__all__)


def exported() -> dict[str, set[str]]:
    """Heading of a module to the names in the table under it."""
    return {
        code_in(table.heading)[0]: {code_in(row[0])[0] for row in table.rows}
        for table in tables(PAGE)
        if table.columns == ("name", "what it is")
    }


def test_the_modules_are_all_there() -> None:
    assert [code_in(text)[0] for text in headings(PAGE) if text.startswith("`")] == list(MODULES)


@pytest.mark.parametrize("module", MODULES)
def test_a_module_exports_what_is_documented(module: str) -> None:
    assert exported()[module] == set(exports(module))


def members() -> list[str]:
    """What the tables without headings describe: ``Listing.all()``, ``serve(plugins, ...)``, ``Listing.names``."""
    return [
        code_in(row[0])[0]
        for table in tables(PAGE)
        if table.columns == ("", "")
        for row in table.rows
        if not code_in(row[0])[0].startswith("len(")
    ]


@pytest.mark.parametrize("member", members())
def test_a_member_has_the_documented_parameters(member: str) -> None:
    path, called, given = member.partition("(")
    owner, *rest = path.split(".")
    value = next(getattr(import_module(place), owner) for place in PLACES if owner in exports(place))
    for name in rest:
        value = getattr(value, name)
    if called:
        parameters = [name for name in inspect.signature(value).parameters if name not in HIDDEN]
        shown = [part for part in given.rstrip(")").split(", ") if part]
        assert shown == parameters
