"""A plugin's table: the operator's value, then the plugin's default, then the core's default."""

from __future__ import annotations

import re

import pytest
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, SecretStr, field_validator

from broker_core.names import NamespaceName
from broker_core.plugins.load.plugin_options import PluginOptions, UnusableTable, read_table
from tests.support.narrowed import present


class Own(BaseModel):
    deadline: float = 2.5
    on_failure: str = "next"
    verify_filtered: str | None = None
    url: str = "https://example.org"
    limit: int = 3


def test_defaults_of_the_core() -> None:
    options = read_table({}, None)
    assert options == PluginOptions()
    assert (options.deadline, options.namespaces, options.on_failure) == (5.0, ("*",), "error")
    assert (options.max_stale, options.verify_filtered, options.settings) == (60.0, "always", None)


def test_what_the_operator_says() -> None:
    table = {"deadline": "250ms", "namespaces": ["acme/*"], "on_failure": "next", "verify_filtered": "sample"}
    assert read_table(table, None) == PluginOptions(
        deadline=0.25, namespaces=("acme/*",), on_failure="next", verify_filtered="sample"
    )
    stale = read_table({"on_failure": "stale", "max_stale": "5m"}, None)
    assert (stale.on_failure, stale.max_stale) == ("stale", 300.0)


def test_a_plugin_proposes_its_own_defaults() -> None:
    options = read_table({}, Own)
    assert (options.deadline, options.on_failure, options.verify_filtered) == (2.5, "next", "always")
    assert options.settings == Own()


def test_the_operator_wins_over_the_plugin() -> None:
    options = read_table({"deadline": "3s", "on_failure": "error", "limit": 7}, Own)
    assert (options.deadline, options.on_failure) == (3.0, "error")
    assert options.settings == Own(deadline=3.0, on_failure="error", limit=7)


def test_a_plugin_may_propose_in_words() -> None:
    class Worded(BaseModel):
        deadline: str = "750ms"
        on_failure: str = "stale"
        max_stale: str = "90s"
        namespaces: list[str] = ["acme/*"]

    options = read_table({}, Worded)
    assert (options.on_failure, options.max_stale) == ("stale", 90.0)
    assert (options.deadline, options.namespaces) == (0.75, ("acme/*",))


@pytest.mark.parametrize(
    ("table", "model", "message"),
    [
        ({"deadlin": 1}, None, "deadlin: unknown key, did you mean 'deadline'?"),
        ({"ulr": "x"}, Own, "ulr: unknown key, did you mean 'url'?"),
        ({"url": "x"}, None, "url: unknown key, did you mean 'on_failure'?"),
        ({"deadline": 0}, None, "deadline: 0: input should be greater than 0"),
        ({"deadline": "soon"}, None, "deadline: 'soon' is not a duration"),
        ({"on_failure": "hope"}, None, "on_failure: 'hope': input should be 'error', 'next' or 'stale'"),
        ({"max_stale": 0}, None, "max_stale: 0: input should be greater than 0"),
        ({"verify_filtered": True}, None, "verify_filtered: True: input should be"),
        ({"namespaces": []}, None, "namespaces: names no namespace, so that the plugin would never be asked"),
        ({"namespaces": 3}, None, "namespaces: 3: input should be a list"),
        ({"namespaces": ["acme"]}, None, "namespaces: 'acme' matches no namespace: write 'acme/*'"),
        ({"namespaces": ["acme/[a-z]"]}, None, "namespaces: 'acme/[a-z]' is no namespace"),
        ({"namespaces": [3]}, None, "namespaces: 3 is no namespace"),
        ({"limit": "many"}, Own, "limit: input should be a valid integer"),
    ],
)
def test_what_is_wrong_is_named(
    table: dict[str, object], model: type[BaseModel] | None, message: str
) -> None:
    with pytest.raises(UnusableTable, match=f"^{re.escape(message)}") as caught:
        read_table(table, model)
    assert "\n" not in str(caught.value)


def test_no_secret_is_in_an_error() -> None:
    class Secretive(BaseModel):
        password: SecretStr

        @field_validator("password", mode="before")
        @classmethod
        def check(cls, value: object) -> object:
            if not isinstance(value, str) or not value.startswith("hunter"):
                raise ValueError("no hunter")
            return 3

    with pytest.raises(UnusableTable) as caught:
        read_table({"password": "hunter2"}, Secretive)
    assert "hunter2" not in str(caught.value)
    with pytest.raises(UnusableTable, match=r"^password: field required$"):
        read_table({}, Secretive)
    with pytest.raises(UnusableTable, match=r"^password: no hunter$"):
        read_table({"password": "s3cret"}, Secretive)


def test_keys_are_what_the_operator_writes() -> None:
    class Aliased(BaseModel):
        model_config = ConfigDict(populate_by_name=True)
        dsn: str = Field(alias="database")
        name: str = Field(default="x", validation_alias=AliasChoices("label", "title"))

    for table in ({"database": "a"}, {"dsn": "a"}, {"dsn": "a", "title": "y"}, {"dsn": "a", "label": "y"}):
        read_table(table, Aliased)


def test_a_model_may_take_everything() -> None:
    class Open(BaseModel):
        model_config = ConfigDict(extra="allow")

    options = read_table({"anything": 1, "deadline": 2}, Open)
    assert present(options.settings).model_extra == {"anything": 1}


def test_a_wrong_proposal_is_an_error() -> None:
    class Wrong(BaseModel):
        on_failure: str = "shrug"

    with pytest.raises(UnusableTable, match="on_failure: 'shrug'"):
        read_table({}, Wrong)
    assert read_table({"on_failure": "next"}, Wrong).on_failure == "next"


@pytest.mark.parametrize(
    ("patterns", "namespace", "covered"),
    [
        (["*"], "a/b", True),
        (["a/*"], "a/b", True),
        (["a/*"], "ab/c", False),
        (["a/b"], "a/bc", False),
        (["x/*", "a/b?"], "a/bc", True),
        (["*/prod"], "acme/prod", True),
        ("x/y, a/*", "a/b", True),
        (["a.c/*"], "abc/d", False),
    ],
)
def test_the_namespaces_that_are_asked_about(patterns: object, namespace: str, covered: bool) -> None:
    options = read_table({"namespaces": patterns}, None)
    assert options.covers(NamespaceName.parse(namespace)) is covered
