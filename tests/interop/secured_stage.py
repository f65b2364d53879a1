"""The stage of the secured scenes: a broker that asks for tokens and speaks TLS, and a gateway that does the same."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tests.interop.gate import Gate
from tests.interop.go_program import go_consumers
from tests.interop.programs import (
    DrivenConsumers,
    GoConsumers,
    JavaConsumers,
    PropertyConsumer,
    PythonConsumers,
)
from tests.interop.pulsar_peer import GATEWAY, PulsarBroker, Security
from tests.support.eventually import eventually_sync
from tests.support.ports import free_ports
from tests.support.scraped import samples, total
from tests.support.served import Served

__all__ = ["BILLING", "ORDERS", "SHARED", "SecuredStage"]

#: The two roles, each with the text that is in the names of its topics.
ORDERS, BILLING = "orders-app", "billing-app"
#: Both roles may list it, and a plugin shows each role its own topics.
SHARED = "public/shared"


@dataclass(frozen=True)
class SecuredStage:
    """``folder`` takes the logs of the clients. Roles may list and use ``public/ROLE`` and :data:`SHARED`."""

    broker: PulsarBroker
    security: Security
    gateway: Served
    gate: Gate
    folder: Path

    @classmethod
    def build(cls, folder: Path, broker: PulsarBroker, security: Security, stack: ExitStack) -> Self:
        """With the rights at the brokers, and the gateway started."""
        admin = broker.admin
        for namespace, roles in {
            SHARED: (ORDERS, BILLING),
            f"public/{ORDERS}": (ORDERS,),
            f"public/{BILLING}": (BILLING,),
        }.items():
            admin.create_namespace(namespace)
            for role in (*roles, GATEWAY):
                admin.grant(namespace, role, "consume", "produce")
        gate = Gate(folder)
        gate.rule(SHARED, roles={ORDERS: "orders-", BILLING: "billing-"})
        served = Served(folder, gateway_tables(broker, security, gate), python_path=gate.site)
        stack.enter_context(served)
        return cls(broker, security, served, gate, folder)

    def python(self, role: str) -> DrivenConsumers:
        """Start the Python client of a role."""
        log = self.folder / f"python-{role}.log"
        token = self.security.token_file(role)
        return PythonConsumers(log, self.gateway.tls_service_url, token=token, ca=self.security.ca)

    def property_consumer(
        self, name: str, role: str, pattern: str, properties: Mapping[str, str]
    ) -> PropertyConsumer:
        """Start a consumer of `broker_core.consumer` of a role; ``name`` is its subscription."""
        return PropertyConsumer(
            self.folder / f"property-{name}.log",
            self.gateway.tls_service_url,
            pattern,
            name,
            properties,
            token=self.security.token_file(role),
            ca=self.security.ca,
        )

    def java(self, role: str, *, token: Path | None = None) -> DrivenConsumers:
        """Start a JVM with the Java client of a role."""
        return JavaConsumers(
            self.folder / f"java-{role}.log",
            self.broker.jars,
            self.gateway.tls_service_url,
            token=token or self.security.token_file(role),
            ca=self.security.ca,
        )

    def go(self, role: str) -> DrivenConsumers:
        """Start the Go client of a role."""
        token = self.security.token_file(role)
        return GoConsumers(
            self.folder / f"go-{role}.log",
            go_consumers(),
            self.gateway.tls_service_url,
            token=token,
            ca=self.security.ca,
        )

    def wait_for_renewals(self, count: int) -> None:
        """Until so many clients of the gateway have renewed credentials that had ended."""

        def renewals() -> float:
            with urllib.request.urlopen(f"http://{self.gateway.ready['http']}/metrics", timeout=10) as answer:
                found = samples(answer.read().decode())
            return total(found, "broker_core_authentications_total", "outcome=renewed")

        eventually_sync(lambda: renewals() >= count, 180, what=f"{count} renewed credentials")

    def create(self, topics: Iterable[str], partitions: int = 0) -> None:
        """Create topics at the broker."""
        for topic in topics:
            self.broker.admin.create_topic(topic, partitions)


def gateway_tables(
    broker: PulsarBroker, security: Security, gate: Gate | None = None, **upstream: Any
) -> dict[str, dict[str, Any]]:
    """The tables of a gateway before a secured broker; ``upstream`` are more settings of its table."""
    issued = security.server_certificate("gateway")
    plain, secured = free_ports(2)
    tables: dict[str, dict[str, Any]] = {
        "pulsar": {
            "listen": f"127.0.0.1:{plain}",
            "tls": {
                "listen": f"127.0.0.1:{secured}",
                "certificate": str(issued.certificate),
                "key": str(issued.key),
            },
        },
        "http": {"listen": "127.0.0.1:0"},
        "authentication": {"methods": ["token"], "token": {"key": f"file:{security.token_public_key}"}},
        "authorization": {
            "rules": [
                {"roles": [role], "namespaces": [SHARED, f"public/{role}"], "actions": ["list", "lookup"]}
                for role in (ORDERS, BILLING)
            ]
        },
        "upstream": {
            "service_url": broker.tls_service_url,
            "token": f"file:{security.token_file(GATEWAY)}",
            "tls": {"ca": str(security.ca)},
            **upstream,
        },
    }
    if gate is not None:
        tables["plugins"] = {"enabled": ["gate"], "gate": gate.settings}
    return tables
