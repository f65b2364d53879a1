"""docs/reference/hooks.md has every hook with its exact arguments, and every field of their objects."""

from __future__ import annotations

import dataclasses
import inspect
import re

import pytest

from broker_core.access.asker import ACTIONS, Access, Asker
from broker_core.broker.broker_handle import BrokerHandle
from broker_core.patterns import TopicsPattern
from broker_core.plugin_api.depends_on import WORDS
from broker_core.plugin_api.hookspecs import HOOK_FACTS, HookSpecs, ListingOutcome
from broker_core.plugin_api.listing_request import ListingRequest
from tests.docs.pages import Table, all_pages, code_in, headings, read, tables

PAGE = "reference/hooks.md"
HOOKS = [name for name in vars(HookSpecs) if name.startswith("broker_core_")]


def arguments(hook: str) -> list[str]:
    return [name for name in inspect.signature(getattr(HookSpecs, hook)).parameters if name != "self"]


def fields(kind: type) -> set[str]:
    properties = {name for name, value in vars(kind).items() if isinstance(value, property)}
    if not dataclasses.is_dataclass(kind):
        return properties
    return {field.name for field in dataclasses.fields(kind)} | properties


def table(first_column: str, heading: str = "") -> Table:
    (found,) = [
        one
        for one in tables(PAGE)
        if one.columns[0] == first_column and (not heading or one.heading == heading)
    ]
    return found


def names_in(found: Table) -> set[str]:
    return {code_in(row[0])[0].partition("(")[0] for row in found.rows}


def test_each_hook_has_a_section_with_its_exact_arguments() -> None:
    shown = [code_in(text)[0] for text in headings(PAGE) if text.startswith("`broker_core_")]
    assert shown == [f"{hook}({', '.join(arguments(hook))})" for hook in HOOKS]


@pytest.mark.parametrize("hook", HOOKS)
def test_the_arguments_of_a_hook_are_described(hook: str) -> None:
    heading = f"`{hook}({', '.join(arguments(hook))})`"
    described = [one for one in tables(PAGE) if one.heading == heading and one.columns[0] == "argument"]
    for one in described:
        assert names_in(one) == set(arguments(hook))
    assert described or hook in (
        "broker_core_listing_served",
        "broker_core_commands",
        *(hook for hook in HOOKS if not arguments(hook)),
    )


def test_the_overview_has_every_hook_and_says_which_may_be_async() -> None:
    overview = {code_in(row[0])[0]: row[2] for row in table("hook").rows}
    assert list(overview) == HOOKS
    assert {hook for hook, may in overview.items() if may == "no"} == {
        hook for hook, facts in HOOK_FACTS.items() if facts.plain
    }


@pytest.mark.parametrize(
    ("kind", "column", "heading"),
    [
        (ListingRequest, "field", "The request"),
        (Asker, "field of `request.asker`", ""),
        (TopicsPattern, "field of `request.pattern`", ""),
        (ListingOutcome, "field of `outcome`", ""),
        (Access, "field of `access`", ""),
    ],
)
def test_what_a_hook_is_given_is_described_field_by_field(kind: type, column: str, heading: str) -> None:
    assert names_in(table(column, heading)) == fields(kind)


def test_the_broker_is_described_method_by_method() -> None:
    public = {name for name in vars(BrokerHandle) if not name.startswith("_")}
    shown = table("method")
    assert names_in(shown) == public
    for row in shown.rows:
        name, called, given = code_in(row[0])[0].rstrip(")").partition("(")
        if not called:
            assert isinstance(vars(BrokerHandle)[name], property)
            continue
        parameters = list(inspect.signature(getattr(BrokerHandle, name)).parameters)[1:]
        assert [part.partition("=")[0] for part in given.split(", ") if part] == parameters


def test_the_words_of_dependencies_have_their_fields() -> None:
    (table,) = [table for table in tables(PAGE) if table.columns[0] == "word"]
    shown = {code_in(row[0])[0].strip('"'): tuple(code_in(row[1])) for row in table.rows}
    assert shown.pop("property:NAME") == ("request.properties",)
    assert shown == {word: tuple(f"request.{field}" for field in fields) for word, fields in WORDS.items()}


def test_no_page_names_a_hook_that_is_gone() -> None:
    known = {*HOOKS, "broker_core_serve"}
    for page in all_pages():
        for name in re.findall(r"\bbroker_core_(?:[a-z]+_)*[a-z]+\b", read(page)):
            if name.startswith(tuple(f"{hook}_" for hook in HOOKS)) or re.search(
                rf"(?:def |hooks\.md#){name}", read(page)
            ):
                assert name in known, f"{page}: {name}"


def test_each_action_has_its_command() -> None:
    shown = {code_in(row[0])[0].strip('"'): row[1] for row in table("action").rows}
    assert shown == ACTIONS
