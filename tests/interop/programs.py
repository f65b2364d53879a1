"""The clients of the scenes: separate programs with the official, unmodified client libraries."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.interop.java_programs import java_program
from tests.support.narrowed import present
from tests.support.program_lines import ProgramLines

__all__ = [
    "AdminTool",
    "DrivenConsumers",
    "GoConsumers",
    "JavaConsumers",
    "LibraryListing",
    "PropertyConsumer",
    "PythonConsumer",
    "PythonConsumers",
    "ToolOutcome",
]

_HERE = Path(__file__).resolve().parent
_EXAMPLE = _HERE.parents[1] / "examples" / "regex_consumer" / "regex_consumer.py"
_PLAIN = _HERE / "python" / "plain_consumer.py"


class _Program:
    """A subprocess with its lines; ended when the scene ends. A context manager."""

    def __init__(self, command: list[str], log: Path) -> None:
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=dict(os.environ)
            )
        self._lines = ProgramLines(self._process)
        self._log = log

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            error.add_note(f"{self._log.name}: {self._log.read_text(errors='replace')[-3000:]}")
        self.end()

    def end(self) -> None:
        """End it; the subscriptions of its consumers stay."""
        present(self._process.stdin).close()
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class PythonConsumer(_Program):
    """A regex consumer of the official Python client alone.

    ``token`` and ``ca`` are files: its token, and the authority of the servers' certificates.
    """

    program = _PLAIN

    def __init__(
        self,
        log: Path,
        service_url: str,
        pattern: str,
        subscription: str,
        *,
        token: Path | None = None,
        ca: Path | None = None,
        options: Sequence[str] = (),
    ) -> None:
        command = [sys.executable, str(self.program), service_url, pattern, subscription, *options]
        command += [] if token is None else ["--token-file", str(token)]
        command += [] if ca is None else ["--ca", str(ca)]
        super().__init__(command, log)

    def wait_subscribed(self, timeout: float = 60.0) -> None:
        """Until `subscribe` has returned."""
        self._lines.wait_for(lambda line: line == "ready", timeout, what="the Python client's subscription")

    @property
    def received(self) -> Counter[tuple[str, str]]:
        """How often each (topic, text) came."""
        return _messages(self._lines.all())

    def wait_received(self, wanted: set[tuple[str, str]], timeout: float) -> None:
        """Until all of these (topic, text) have come."""
        self._lines.wait_until(
            lambda lines: "yes" if wanted <= _messages(lines).keys() else None,
            timeout,
            what=f"messages {wanted}",
        )


class PropertyConsumer(PythonConsumer):
    """The example `regex_consumer`, of `broker_core.consumer`: with properties, each second."""

    program = _EXAMPLE

    def __init__(
        self,
        log: Path,
        service_url: str,
        pattern: str,
        subscription: str,
        properties: Mapping[str, str],
        **files: Any,
    ) -> None:
        options = ["--period", "1", *(f"--property={key}={value}" for key, value in properties.items())]
        super().__init__(log, service_url, pattern, subscription, options=options, **files)

    def kill(self) -> None:
        """SIGKILL, as if the machine went off."""
        self._process.kill()
        self._process.wait()


def _messages(lines: list[str]) -> Counter[tuple[str, str]]:
    pairs = (line.partition("\t") for line in lines if "\t" in line)
    return Counter((topic, text) for topic, _, text in pairs)


class DrivenConsumers(_Program):
    """A program with any number of regex consumers, each with an id of its own, driven by JSON lines."""

    def __init__(self, command: list[str], log: Path) -> None:
        super().__init__(command, log)
        self._wait("ready", None, 120.0)

    def subscribe(
        self,
        name: str,
        pattern: str,
        *,
        properties: Mapping[str, str] | None = None,
        period: int = 1,
        mode: str = "PersistentOnly",
    ) -> None:
        """Subscribe a regex consumer (its id is its subscription); raises what the client raised. ``properties`` and
        ``mode`` are for Java."""
        self._order(
            {
                "do": "subscribe",
                "id": name,
                "pattern": pattern,
                "subscription": name,
                "period": period,
                "properties": dict(properties or {}),
                "mode": mode,
            }
        )
        self._wait("subscribed", name, 60.0)

    def publish(self, topic: str, text: str) -> tuple[str, str]:
        """Send ``text`` to a topic; the pair (topic, text) to expect. Raises what the client raised."""
        self._order({"do": "publish", "id": f"{topic} {text}", "topic": topic, "text": text})
        self._wait("published", f"{topic} {text}", 60.0)
        return topic, text

    def partitions(self, topic: str) -> list[str]:
        """The partitions of a topic (itself, if it has none), requested without creating it."""
        self._order({"do": "partitions", "id": topic, "topic": topic, "create": False})
        topics: list[str] = self._wait("partitions", topic, 60.0)["topics"]
        return topics

    def count(self, namespace: str) -> int:
        """How many persistent topics a listing has; raises what the client raised. For Java."""
        self._order({"do": "count", "id": namespace, "namespace": namespace})
        topics: int = self._wait("counted", namespace, 90.0)["topics"]
        return topics

    def received(self, name: str) -> Counter[tuple[str, str]]:
        """How often each (topic, text) came to a consumer."""
        return _driven_messages(self._lines.all(), name)

    def wait_received(self, name: str, wanted: set[tuple[str, str]], timeout: float) -> None:
        """Until all of these (topic, text) have come to a consumer."""
        self._lines.wait_until(
            lambda lines: "yes" if wanted <= _driven_messages(lines, name).keys() else None,
            timeout,
            what=f"messages {wanted} at {name}",
        )

    def _order(self, order: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        self._process.stdin.flush()

    def _wait(self, event: str, name: str | None, timeout: float) -> dict[str, Any]:
        def wanted(line: str) -> bool:
            said = json.loads(line)
            return said.get("id") == name and said["event"] in (event, "failed")

        said: dict[str, Any] = json.loads(self._lines.wait_for(wanted, timeout, what=f"{event} of {name}"))
        if said["event"] == "failed":
            raise RuntimeError(said["error"])
        return said


class JavaConsumers(DrivenConsumers):
    """One JVM with the official Java client. ``token`` and ``ca`` as for :class:`PythonConsumer`."""

    def __init__(
        self, log: Path, jars: Path, service_url: str, *, token: Path | None = None, ca: Path | None = None
    ) -> None:
        source = _HERE / "java" / "RegexConsumers.java"
        logging = _HERE / "java" / "log4j2.xml"
        command = java_program(source, jars, "-Xmx256m", f"-Dlog4j2.configurationFile={logging}")
        super().__init__([*command, service_url, *_files(token, ca)], log)


class GoConsumers(DrivenConsumers):
    """The official Go client. ``token`` and ``ca`` as for :class:`PythonConsumer`."""

    def __init__(
        self, log: Path, binary: Path, service_url: str, *, token: Path | None = None, ca: Path | None = None
    ) -> None:
        super().__init__([str(binary), service_url, *_files(token, ca)], log)


class PythonConsumers(DrivenConsumers):
    """The official Python client. ``token`` and ``ca`` as for :class:`PythonConsumer`."""

    def __init__(
        self, log: Path, service_url: str, *, token: Path | None = None, ca: Path | None = None
    ) -> None:
        program = str(_HERE / "python" / "driven_consumers.py")
        super().__init__([sys.executable, program, service_url, *_files(token, ca)], log)


@dataclass(frozen=True)
class ToolOutcome:
    """What one command did: its exit code, and what it printed."""

    exit: int
    out: str
    err: str


class AdminTool(_Program):
    """The real `pulsar-admin`, any number of commands in one JVM."""

    def __init__(self, log: Path, jars: Path) -> None:
        source = _HERE / "java" / "PulsarAdminCommands.java"
        super().__init__(java_program(source, jars, "-Xmx256m"), log)
        self._lines.wait_for(lambda line: json.loads(line)["event"] == "ready", 120.0, what="pulsar-admin")
        self._commands = 0

    def run(self, url: str, *arguments: str, token: str | None = None) -> ToolOutcome:
        """Run a command at the web service ``url``."""
        self._commands += 1
        name = str(self._commands)
        options = ["--admin-url", url]
        if token is not None:
            plugin = "org.apache.pulsar.client.impl.auth.AuthenticationToken"
            options += ["--auth-plugin", plugin, "--auth-params", f"token:{token}"]
        order = {"id": name, "arguments": [*options, *arguments]}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        self._process.stdin.flush()
        line = self._lines.wait_for(
            lambda line: json.loads(line).get("id") == name, 60.0, what=" ".join(arguments)
        )
        said = json.loads(line)
        return ToolOutcome(said["exit"], said["out"], said["err"])


class LibraryListing:
    """Listings by the admin library of Pulsar, which sends properties, as `pulsar-admin` of its version does."""

    def __init__(self, jars: Path) -> None:
        self._jars = jars

    def topics(self, url: str, namespace: str, properties: Mapping[str, str]) -> list[str]:
        """The topics of a namespace that have these properties."""
        source = _HERE / "java" / "ListByProperties.java"
        logging = f"-Dlog4j2.configurationFile={_HERE / 'java' / 'log4j2.xml'}"
        command = [*java_program(source, self._jars, logging), url, namespace, json.dumps(properties)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        topics: list[str] = json.loads(done.stdout.splitlines()[-1])
        return topics


def _files(token: Path | None, ca: Path | None) -> list[str]:
    return [str(file or "") for file in (token, ca)]


def _driven_messages(lines: list[str], name: str) -> Counter[tuple[str, str]]:
    said = map(json.loads, lines)
    return Counter(
        (each["topic"], each["text"]) for each in said if each["event"] == "message" and each["id"] == name
    )
