"""A ListingRequest as one parameter of a plugin's command."""

from __future__ import annotations

import pytest

from broker_core.cli.options.given_question import given_question, listing_request
from broker_core.cli.options.option_values import UnusableQuestion
from broker_core.errors import InvalidPattern
from broker_core.names import Mode, NamespaceName
from tests.cli.conftest import Cli, InstallPlugin

ASKING = '''
"""Shows what it was asked."""

from broker_core import ListingRequest, hookimpl
from broker_core.plugin_cli import NamespaceArgument

@hookimpl
def broker_core_commands(app):
    @app.command()
    def show(request: ListingRequest, *, times: int = 1) -> None:
        print(request.namespace, request.mode.name, request.topics_pattern, dict(request.properties), times)

    @app.command()
    def count(namespace: NamespaceArgument) -> None:
        print(type(namespace).__name__, namespace)
'''


def test_a_command_gets_the_question(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("asking", ASKING)
    said = cli(
        "asking", "show", "a/b", "--mode", "all", "--pattern", "a/b/x.*", "--property", "k=v=w", "--times", 2
    )
    assert said.out == "a/b ALL a/b/x.* {'k': 'v=w'} 2\n"
    assert cli("asking", "show", "a/b").out == "a/b PERSISTENT None {} 1\n"
    assert cli("asking", "count", "a/b").out == "NamespaceName a/b\n"


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["show", "a"], "Invalid namespace name 'a': expected tenant/namespace"),
        (["count", "a"], "Invalid namespace name 'a': expected tenant/namespace"),
        (["show", "a/b", "--mode", "some"], "Invalid mode 'some'"),
        (["show", "a/b", "--property", "k"], "--property 'k': expected KEY=VALUE"),
    ],
)
def test_what_cannot_be_a_question_is_a_wrong_usage(
    cli: Cli, install_plugin: InstallPlugin, words: list[str], error: str
) -> None:
    install_plugin("asking", ASKING)
    assert error in cli("asking", *words).refused(2)


def test_the_help_has_the_options_of_the_group(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("asking", ASKING)
    said = cli("asking", "show", "--help").out
    for option in ("NAMESPACE", "--pattern", "--mode", "--property", "--times", "--config"):
        assert option in said


def test_a_question_is_checked() -> None:
    request = listing_request(given_question("a/b", mode="Non-Persistent"))
    assert (request.namespace, request.pattern) == (NamespaceName("a", "b"), None)
    assert request.mode is Mode.NON_PERSISTENT
    with pytest.raises(UnusableQuestion):
        given_question("a/b", mode="")
    with pytest.raises(InvalidPattern):
        listing_request(given_question("a/b", "(", "all"))
