"""One broker, which is its own controller: without credentials, by SASL and over TLS, on free ports of loopback."""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from broker_core.client.kafka import AdminClient
from tests.interop.kafka_peer.jars import HERE, kafka_jars
from tests.support.certificates import Authority
from tests.support.narrowed import present
from tests.support.ports import free_ports
from tests.support.quick_java import QUICK_JAVA

__all__ = ["KafkaBroker", "unsigned_token"]

_START_SECONDS: Final = 600.0
_STOP_SECONDS: Final = 30
_LOGIN: Final = "org.apache.kafka.common.security"


def unsigned_token(subject: str) -> str:
    """A token that brokers take which verify no signature."""

    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    return f"{part({'alg': 'none'})}.{part({'sub': subject, 'iat': 1_700_000_000, 'exp': 4_000_000_000})}."


class KafkaBroker:
    """A real broker in ``folder``, with an authorizer. A context manager.

    ``address`` asks for no credentials, and its clients may do everything; ``sasl_address`` takes the user ``alice``
    by PLAIN and SCRAM, and unsigned tokens, ``tls_address`` speaks TLS with a certificate of ``authority``.
    ``properties`` replace those of the broker; ``options`` are the JVM's, none if its speed is measured.

    It is node ``number`` of a cluster: alone, or beside others of the same id ``cluster``, which are ``controllers`` or
    have them, at the ports of these numbers. Raises :exc:`~tests.interop.maven.PeerUnavailable` if this machine cannot
    run it.
    """

    #: Of the user ``alice``.
    password: Final = "alice-secret"

    def __init__(
        self,
        folder: Path,
        properties: Mapping[str, str] | None = None,
        *,
        number: int = 1,
        cluster: str | None = None,
        controllers: Mapping[int, int] | None = None,
        heap: str = "384m",
        options: Sequence[str] = QUICK_JAVA,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.number = number
        self._properties = dict(properties or {})
        self._cluster = cluster
        self._controllers = controllers
        self._heap = heap
        self._options = options
        self.jars = kafka_jars()
        self.authority = Authority(folder)
        self._process: subprocess.Popen[bytes] | None = None
        self._ports = free_ports(4)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._ports[0]}"

    @property
    def sasl_address(self) -> str:
        return f"127.0.0.1:{self._ports[1]}"

    @property
    def tls_address(self) -> str:
        return f"127.0.0.1:{self._ports[2]}"

    def __enter__(self) -> Self:
        self.start()
        try:
            self.wait()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def start(self) -> None:
        """Start the process, with what it has in its folder; :meth:`wait` for it then."""
        properties = self.folder / "server.properties"
        if not properties.exists():
            settings = self._settings() | self._properties
            properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
            cluster = self._cluster or f"K{secrets.token_urlsafe(16)[1:]}"  # an option would begin with "-"
            alone = [] if self._controllers else ["--standalone"]
            credential = f"SCRAM-SHA-512=[name=alice,password={self.password}]"
            more = [*alone, "-t", cluster, "-c", str(properties), "--add-scram", credential]
            self._tool("format", *more)
        with (self.folder / "broker.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*self._java(*self._options, f"-Xmx{self._heap}"), "kafka.Kafka", str(properties)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def wait(self) -> None:
        """Wait until it serves."""
        asyncio.run(self._answers())

    def send_signal(self, number: int) -> None:
        """Send a signal to the process: SIGSTOP makes it stand still until SIGCONT."""
        present(self._process).send_signal(number)

    def kill(self) -> None:
        """End the process without a word to anybody."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    async def _answers(self) -> None:
        """Wait until it serves: the client asks until there is an answer."""
        async with AdminClient(self.address, api_timeout=_START_SECONDS) as client:
            await client.list_topics()

    def _java(self, *options: str) -> list[str]:
        log = f"-Dlog4j2.configurationFile={HERE / 'log4j2.xml'}"
        return ["java", *options, "-Djava.awt.headless=true", log, "-cp", f"{self.jars}/*"]

    def _tool(self, *arguments: str) -> str:
        done = subprocess.run(
            [*self._java(*QUICK_JAVA, "-Xmx256m"), "kafka.tools.StorageTool", *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"StorageTool {arguments[0]} failed:\n{(done.stdout + done.stderr)[-4000:]}")
        return done.stdout

    def _settings(self) -> dict[str, str]:
        plain, sasl, tls, controller = self._ports
        issued = self.authority.issue("kafka")
        keystore = self.folder / "keystore.pem"
        keystore.write_bytes(issued.key.read_bytes() + issued.certificate.read_bytes())
        listeners = f"OPEN://127.0.0.1:{plain},LOGIN://127.0.0.1:{sasl},CLOSED://127.0.0.1:{tls}"
        of_login = "listener.name.login"
        quorum = {"controller.quorum.bootstrap.servers": f"127.0.0.1:{controller}"}
        if self._controllers is not None:
            controller = self._controllers.get(self.number, 0)
            voters = ",".join(f"{each}@127.0.0.1:{port}" for each, port in self._controllers.items())
            quorum = {"controller.quorum.voters": voters}
        here = f"{listeners},CONTROLLER://127.0.0.1:{controller}" if controller else listeners
        return {
            **quorum,
            "process.roles": "broker,controller" if controller else "broker",
            "node.id": str(self.number),
            "listeners": here,
            "advertised.listeners": here,
            "listener.security.protocol.map": (
                "OPEN:PLAINTEXT,LOGIN:SASL_PLAINTEXT,CLOSED:SSL,CONTROLLER:PLAINTEXT"
            ),
            "inter.broker.listener.name": "OPEN",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.folder / "data"),
            "auto.create.topics.enable": "false",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512,OAUTHBEARER",
            f"{of_login}.plain.sasl.jaas.config": (
                f'{_LOGIN}.plain.PlainLoginModule required user_alice="{self.password}";'
            ),
            f"{of_login}.scram-sha-512.sasl.jaas.config": f"{_LOGIN}.scram.ScramLoginModule required;",
            f"{of_login}.oauthbearer.sasl.jaas.config": (
                f'{_LOGIN}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";'
            ),
            "listener.name.closed.ssl.keystore.type": "PEM",
            "listener.name.closed.ssl.keystore.location": str(keystore),
            # Pages of so many partitions, so that few topics are several pages.
            "max.request.partition.size.limit": "5",
            "num.network.threads": "1",
            "num.io.threads": "2",
            "offsets.topic.replication.factor": "1",
        }
