"""A plugin's commands as they are typed, in the process of a test."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import structlog

from broker_core.cli.common_options import Given, given_settings
from broker_core.cli.exit_codes import exit_code_of
from broker_core.cli.plugin_commands import commands_of
from broker_core.settings import Settings
from broker_core.testing.command_streams import OwnStreams, own_streams

__all__ = ["Invoked", "invoke", "invoke_given"]


@dataclass(frozen=True, slots=True)
class Invoked:
    """The result of a command: ``exit_code`` as in a shell (0: well), and its output."""

    exit_code: int
    stdout: str
    stderr: str


def invoke(
    plugin: object,
    arguments: Sequence[str | os.PathLike[str]] = (),
    *,
    name: str,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    stdin: str = "",
) -> Invoked:
    """Run ``broker-core NAME ARGUMENTS`` in this process, for a plugin that is a module or an instance.

    ``settings`` are the tables of a settings file, as of :func:`~broker_core.testing.serve`; files, the environment and
    installed plugins have no effect, but for a file that the arguments name by ``--config``. A command that fails says
    why on ``stderr``, in the words that its user reads. It may be called on an event loop, which stands still
    meanwhile: a command that asks a server of the same test is run by :meth:`Server.invoke`.
    """
    tables: dict[str, Any] = dict(settings or {})
    return invoke_given(Given(Settings(**tables), {name: plugin}), name, arguments, stdin)


def invoke_given(
    given: Given, name: str, arguments: Sequence[str | os.PathLike[str]], stdin: str = ""
) -> Invoked:
    """Run ``broker-core NAME ARGUMENTS`` in this process with the settings and the plugins of a server."""
    context = contextvars.copy_context()
    if not _loop_runs():
        return context.run(_invoked, given, name, arguments, stdin)
    with ThreadPoolExecutor(1, "broker-core-testing") as thread:  # a command may run an event loop of its own
        return thread.submit(context.run, _invoked, given, name, arguments, stdin).result()


def _invoked(given: Given, name: str, arguments: Sequence[str | os.PathLike[str]], stdin: str) -> Invoked:
    words = [os.fspath(argument) for argument in arguments]

    def run() -> object:
        group = commands_of(name, given.plugins[name])
        return group.main(args=words, prog_name=f"broker-core {name}", standalone_mode=False)

    streams = OwnStreams(stdin)
    with _logs_as_they_were(), given_settings(given), own_streams(streams):
        code = exit_code_of(run, debug="--debug" in words)
    return Invoked(code, *streams.printed)


def _loop_runs() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@contextmanager
def _logs_as_they_were() -> Iterator[None]:
    """Restore the logs: a command configures the logs of its process, which here is that of all tests."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    configured, configuration = structlog.is_configured(), structlog.get_config()
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        if configured:
            structlog.configure(**configuration)
        else:
            structlog.reset_defaults()
