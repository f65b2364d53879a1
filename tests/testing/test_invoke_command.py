"""``broker_core.testing.invoke``: a plugin's commands in the process of a test."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import pytest
import structlog
import typer
from pydantic import BaseModel

from broker_core import hookimpl
from broker_core.cli.common_options import plugin_settings
from broker_core.cli.running_broker import broker_url, get
from broker_core.cli.server_process.server_log import silence_logs
from broker_core.client import LookupSession
from broker_core.errors import BrokerCoreError
from broker_core.testing import BlockingServer, invoke, serve

NAME = "no-such-plugin-is-installed"


class Settings(BaseModel):
    greeting: str = "hello"


class Greets:
    """Greets its caller."""

    @hookimpl
    def broker_core_settings(self) -> type[Settings]:
        return Settings

    @hookimpl
    def broker_core_commands(self, app: typer.Typer) -> None:
        @app.command()
        def greet(who: str, loud: Annotated[bool, typer.Option("--loud")] = False) -> None:
            """Greet somebody."""
            text = f"{plugin_settings(NAME).greeting}, {who}"
            print(text.upper() if loud else text)

        @app.command()
        def fail() -> None:
            raise BrokerCoreError("nothing\ngoes")

        @app.command()
        async def echo() -> None:
            silence_logs()
            print(await asyncio.to_thread(sys.stdin.read))

        @app.command()
        def ready() -> None:
            print(get(broker_url(None), "/-/ready"))


SETTINGS = {"plugins": {NAME: {"greeting": "ahoy"}}}


def test_a_command_prints_and_ends() -> None:
    said = invoke(Greets(), ["greet", "you", "--loud"], name=NAME, settings=SETTINGS)
    assert (said.exit_code, said.stdout, said.stderr) == (0, "AHOY, YOU\n", "")
    assert invoke(Greets(), ["greet", "you"], name=NAME).stdout == "hello, you\n"


def test_what_is_wrong_is_said_as_to_a_user(tmp_path: Path) -> None:
    failed = invoke(Greets(), ["fail"], name=NAME)
    assert (failed.exit_code, failed.stdout, failed.stderr) == (1, "", "broker-core: nothing goes\n")
    unknown = invoke(Greets(), ["gret"], name=NAME)
    assert unknown.exit_code == 2
    assert "No such command 'gret'" in unknown.stderr
    wrong = invoke(Greets(), ["greet", "you"], name=NAME, settings={"plugins": {NAME: {"greting": "ahoy"}}})
    assert wrong.exit_code == 1
    assert "did you mean 'greeting'?" in wrong.stderr
    assert "adds no commands" in invoke(object(), name=NAME).stderr


def test_the_environment_has_no_say_but_a_named_file_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "broker-core.toml"
    file.write_text(f'[plugins.{NAME}]\ngreeting = "moin"\n')
    monkeypatch.setenv("BROKER_CORE_CONFIG", str(file))
    assert invoke(Greets(), ["greet", "you"], name=NAME).stdout == "hello, you\n"
    named = invoke(Greets(), ["greet", "you", "--config", file], name=NAME, settings=SETTINGS)
    assert named.stdout == "moin, you\n"


def test_help_and_input() -> None:
    assert "Greet somebody." in invoke(Greets(), ["--help"], name=NAME).stdout
    assert invoke(Greets(), ["echo"], name=NAME, stdin="ä\n").stdout == "ä\n\n"


def test_the_logs_of_the_process_stay_as_they_are() -> None:
    before = logging.getLogger().handlers[:], logging.getLogger().level, structlog.is_configured()
    invoke(Greets(), ["echo"], name=NAME)
    assert before == (logging.getLogger().handlers, logging.getLogger().level, structlog.is_configured())


async def test_a_command_with_a_loop_of_its_own_runs_where_there_is_one() -> None:
    assert invoke(Greets(), ["echo"], name=NAME, stdin="x").stdout == "x\n"


async def test_a_command_of_a_server_finds_it() -> None:
    async with serve({NAME: Greets()}, settings=SETTINGS) as server:
        assert (await server.invoke(NAME, ["greet", "you"])).stdout == "ahoy, you\n"
        said = await server.invoke(NAME, ["ready"])
        assert (said.exit_code, said.stderr) == (0, "")
        assert "ready" in said.stdout
        async with LookupSession(server.url) as client:
            assert len(await client.get_topics("public/default")) == 0


def test_the_same_without_async(broker_core_serve: Callable[..., BlockingServer]) -> None:
    server = broker_core_serve({NAME: Greets()}, settings=SETTINGS)
    assert server.invoke(NAME, ["greet", "you"]).stdout == "ahoy, you\n"
    assert "ready" in server.invoke(NAME, ["ready"]).stdout
