"""docs/reference/api has a page for each public module: all that it exports, with the parameters that there are."""

from __future__ import annotations

import inspect
from importlib import import_module

import pytest

from broker_core.errors import Cause
from broker_core.wire.kafka import ErrorCode
from tests.docs.pages import code_in, headings, read, tables
from tests.support.one_test import in_one_test
from tests.support.public_api import EMBEDDING, PUBLIC, page_of

INDEX = "reference/python-api.md"
EMBEDDING_PAGE = "reference/api/embedding.md"
PAGES = {**{module: page_of(module) for module in PUBLIC}, "embedding": EMBEDDING_PAGE}
#: Not for those who call from outside.
HIDDEN = ("self", "cls", "check")
#: What is documented where it is had from, and exported by no public module.
PLACES = (*PUBLIC, *EMBEDDING, "broker_core.listing.listing")


def exports(module: str) -> list[str]:
    return list(import_module(module).__all__)


def named(page: str) -> list[str]:
    """The names of the tables that say what each is."""
    return [
        code_in(row[0])[0]
        for table in tables(page)
        if table.columns == ("name", "what it is")
        for row in table.rows
    ]


@pytest.mark.parametrize("module", PUBLIC)
def test_a_module_exports_what_is_documented(module: str) -> None:
    found = named(page_of(module))
    assert sorted(found) == sorted(exports(module))


@pytest.mark.parametrize("module", PUBLIC)
def test_the_page_is_called_as_the_module(module: str) -> None:
    assert headings(page_of(module))[0] == f"`{module}`"


def test_a_server_of_ones_own_is_made_of_what_is_exported() -> None:
    every = {name for module in EMBEDDING for name in exports(module)}
    assert set(named(EMBEDDING_PAGE)) <= every


def test_the_index_leads_to_every_page() -> None:
    (table,) = tables(INDEX)
    assert [name for row in table.rows for name in code_in(row[0])] == [*PUBLIC, *EMBEDDING]
    for page in PAGES.values():
        path = page.removeprefix("reference/")
        assert f"]({path})" in read(INDEX)
        assert f"\n{path.removesuffix('.md')}\n" in read(INDEX)


def members(page: str) -> list[str]:
    """What the tables without headings describe: ``Listing.all()``, ``serve(plugins, ...)``, ``Listing.names``."""
    return [
        code_in(row[0])[0]
        for table in tables(page)
        if table.columns == ("", "")
        for row in table.rows
        if not code_in(row[0])[0].startswith("len(")
    ]


def owned(module: str, owner: str) -> object:
    """What a page calls by this name: its module's, else some public module's."""
    places = [place for place in (module, *PLACES) if place in PLACES and owner in exports(place)]
    assert places, f"{owner} is exported by no public module"
    return getattr(import_module(places[0]), owner)


@in_one_test(
    "module, member", [(module, member) for module, page in PAGES.items() for member in members(page)]
)
def test_a_member_has_the_documented_parameters(module: str, member: str) -> None:
    path, called, given = member.partition("(")
    owner, *rest = path.split(".")
    value = owned(module, owner)
    for name in rest:
        if not hasattr(value, name) and name in getattr(value, "__slots__", ()) + _made(value):
            return  # an attribute that instances get when they are made
        value = getattr(value, name)
    if called:
        parameters = [name for name in inspect.signature(value).parameters if name not in HIDDEN]  # type: ignore[arg-type]
        shown = [part for part in given.rstrip(")").split(", ") if part]
        assert shown == parameters


def _made(value: object) -> tuple[str, ...]:
    """The attributes that the constructor of a class assigns."""
    source = inspect.getsource(value.__init__) if inspect.isclass(value) else ""
    return tuple(
        part.partition(" ")[0].partition(":")[0] for part in source.split("self.")[1:] if "=" in part
    )


def test_each_cause_is_described_with_its_code() -> None:
    (table,) = [each for each in tables(page_of("broker_core.errors")) if each.columns[0] == "cause"]
    assert {code_in(row[0])[0]: tuple(code_in(cell)[0] for cell in row[2:]) for row in table.rows} == {
        cause.name: (cause.pulsar.name, str(cause.http), ErrorCode(cause.kafka).name) for cause in Cause
    }
