"""One standalone broker: populate its store while it is stopped, start it on free loopback ports, stop it."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.interop.java_programs import java_program
from tests.interop.pulsar_peer.admin import Admin
from tests.interop.pulsar_peer.jars import HERE, peer_jars
from tests.interop.pulsar_peer.security import ADMIN, Security
from tests.support.ports import free_ports
from tests.support.quick_java import QUICK_JAVA

__all__ = ["PulsarBroker"]

_START_SECONDS = 600
_STOP_SECONDS = 30
#: What Pulsar's own start script opens on JDK 17.
_OPENS = (
    "java.base/java.nio",
    "java.base/jdk.internal.misc",
    "java.base/java.util",
    "java.base/java.util.zip",
    "java.base/java.lang",
    "java.base/sun.net",
    "java.management/sun.management",
    "jdk.management/com.sun.management.internal",
)


class PulsarBroker:
    """A real standalone broker in ``folder`` (its data, its log, its configuration). A context manager.

    ``heap`` is Java's notation and bounds heap and direct memory, each; ``settings`` override ``standalone.conf``;
    ``ports`` are those of the binary protocol and of HTTP, if free ones will not do. ``security`` makes it ask for
    tokens, and speak TLS on a port of its own. ``options`` are the JVM's, none if its speed is measured.
    Raises :exc:`~tests.interop.maven.PeerUnavailable` if this machine cannot run it.
    """

    def __init__(
        self,
        folder: Path,
        *,
        heap: str = "512m",
        settings: Mapping[str, str] | None = None,
        ports: tuple[int, int] | None = None,
        security: Security | None = None,
        options: Sequence[str] = QUICK_JAVA,
    ) -> None:
        self.folder = folder
        self.heap = heap
        self._options = options
        self.settings = dict(settings or {})
        self.jars = peer_jars()
        self._ports = ports
        self._security = security
        self.binary_port, self.http_port = ports or (0, 0)
        self.tls_port = 0
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def service_url(self) -> str:
        """What clients connect to."""
        return f"pulsar://127.0.0.1:{self.binary_port}"

    @property
    def tls_service_url(self) -> str:
        """What clients of a secured broker connect to."""
        return f"pulsar+ssl://127.0.0.1:{self.tls_port}"

    @property
    def admin(self) -> Admin:
        """Its admin interface."""
        token = None if self._security is None else self._security.token(ADMIN)
        return Admin(f"http://127.0.0.1:{self.http_port}/admin/v2", token)

    @property
    def pid(self) -> int:
        """The process id of the running broker."""
        if self._process is None:
            raise RuntimeError("the broker is not running")
        return self._process.pid

    def populate(self, topics: Mapping[str, Iterable[str]], *, heap: str = "1g") -> None:
        """Write persistent topics (namespace -> local names) into the store of the stopped broker.

        The metadata only: such topics list, but have no ledgers until somebody uses them.
        """
        if self._process is not None:
            raise RuntimeError("the broker runs: its store is locked")
        arguments = []
        for number, (namespace, names) in enumerate(topics.items()):
            listed = self.folder / f"names-{number}.txt"
            with listed.open("w", encoding="utf-8", newline="\n") as out:
                out.writelines(f"{name}\n" for name in names)
            arguments += [namespace, str(listed)]
        metadata = self.folder / "data" / "metadata"
        metadata.parent.mkdir(parents=True, exist_ok=True)
        options = (f"-Xmx{heap}", f"-Dlog4j2.configurationFile={HERE / 'log4j2.xml'}")
        command = java_program(HERE / "Populate.java", self.jars, *options)
        done = subprocess.run(
            [*command, str(metadata), *arguments], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"Populate.java failed:\n{(done.stdout + done.stderr)[-4000:]}")

    def start(self) -> None:
        """Start and wait until it serves; ports that somebody took meanwhile are replaced by others."""
        for _ in range(3):
            if self._start_once():
                return
        raise RuntimeError(f"the broker found no free port in three tries: see {self._log}")

    def stop(self) -> None:
        """Stop it, by force after half a minute; its data stays."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def _log(self) -> Path:
        return self.folder / "broker.log"

    def _start_once(self) -> bool:
        if self._ports is None:
            self.binary_port, self.http_port = free_ports(2)
        data = self.folder / "data"
        data.mkdir(exist_ok=True)
        config = self.folder / "standalone.conf"
        own = {
            "brokerServicePort": str(self.binary_port),
            "webServicePort": str(self.http_port),
            **self._secured(),
            **self.settings,
        }
        lines = [f"{key}={value}\n" for key, value in own.items()]
        # Of a repeated key java.util.Properties takes the last one.
        config.write_text((HERE / "standalone.conf").read_text() + "".join(lines))
        command = [
            *("java", *self._options),
            *(f"-Xms{self.heap}", f"-Xmx{self.heap}", f"-XX:MaxDirectMemorySize={self.heap}"),
            f"-Dlog4j2.configurationFile={HERE / 'log4j2.xml'}",
            "-Dio.netty.tryReflectionSetAccessible=true",
            *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENS),
            *("-cp", f"{self.jars}/*", "org.apache.pulsar.PulsarStandaloneStarter"),
            *(
                "-c",
                str(config),
                "-nfw",
                "-nss",
                "--metadata-dir",
                "./metadata",
                "--bookkeeper-dir",
                "./bookkeeper",
            ),
        ]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command, cwd=data, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                self._process = None
                said = self._log.read_text(errors="replace")
                if "Address already in use" in said or "BindException" in said:
                    shutil.rmtree(data / "bookkeeper", ignore_errors=True)
                    return False
                raise RuntimeError(f"the broker ended while it started:\n{said[-4000:]}")
            if self.admin.ready():
                return True
            time.sleep(0.2)
        self.stop()
        raise RuntimeError(f"the broker did not serve within {_START_SECONDS} s: see {self._log}")

    def _secured(self) -> dict[str, str]:
        if self._security is None:
            return {}
        self.tls_port = self.tls_port or free_ports(1)[0]
        return self._security.broker_settings(self.tls_port)
