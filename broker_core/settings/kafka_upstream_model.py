"""``[kafka.upstream]``: the Kafka cluster behind an admin gateway, and the credentials for its brokers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Literal, Self, TypeAlias

from pydantic import AfterValidator, Field, GetCoreSchemaHandler, model_validator
from pydantic_core import CoreSchema

from broker_core.quantities import PositiveDuration, text_schema
from broker_core.service_addresses import service_addresses
from broker_core.settings.key_source import OptionalKey
from broker_core.settings.namespace_texts import kafka_namespace
from broker_core.settings.table import SettingConflict, Table
from broker_core.settings.upstream_model import UpstreamTlsSettings

__all__ = [
    "KafkaMechanism",
    "KafkaUpstreamSaslSettings",
    "KafkaUpstreamSettings",
    "PortRange",
    "check_kafka_forwarding",
]

KafkaMechanism: TypeAlias = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]

_DEFAULT_PORT: Final = 9092
_PORTS: Final = re.compile(r"\s*(\d{1,5})\s*(?:-\s*(\d{1,5})\s*)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class PortRange:
    """Ports from ``first`` to ``last``, both among them. ``str()`` is ``FIRST-LAST``."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> PortRange:
        """The ports written as ``19100-19199``, or as one port; else :exc:`ValueError`."""
        found = _PORTS.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r:.100} is no range of ports such as '19100-19199'")
        first, last = int(found[1]), int(found[2] or found[1])
        if not 0 < first <= last < 65_536:
            raise ValueError(f"{text!r:.100} is no range of ports from 1 to 65535, the lower one first")
        return cls(first, last)

    def __str__(self) -> str:
        return f"{self.first}-{self.last}"

    def __contains__(self, port: int) -> bool:
        return self.first <= port <= self.last

    def __len__(self) -> int:
        return self.last - self.first + 1

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return text_schema(
            cls,
            lambda value: f"{value!r:.100} is no range of ports such as '19100-19199'",
            numbers=True,
            written=str,
        )


def _server(text: str) -> str:
    if "/" in text or "," in text:
        raise ValueError(f"{text!r:.100} is no HOST:PORT of a node")
    try:
        service_addresses(f"kafka://{text}", {"kafka": _DEFAULT_PORT})
    except ValueError:
        shown = "" if "@" in text else f"{text!r:.100} "
        raise ValueError(f"{shown}is no HOST:PORT of a node".strip()) from None
    return text


class KafkaUpstreamSaslSettings(Table):
    """``[kafka.upstream.sasl]``: the credentials of the gateway itself."""

    mechanism: KafkaMechanism = Field(
        default="SCRAM-SHA-512", description="The SASL mechanism of the gateway at the nodes."
    )
    user: str = Field(default="", description="The gateway's own user, for PLAIN and SCRAM.")
    password: OptionalKey = Field(
        default=None,
        repr=False,
        description="The password of it: file:PATH or env:NAME, read for every connection.",
    )
    token: OptionalKey = Field(
        default=None,
        repr=False,
        description="The gateway's own token, for OAUTHBEARER: file:PATH or env:NAME, read for every connection.",
    )


class KafkaUpstreamSettings(Table):
    """``[kafka.upstream]``: the cluster that this server is the admin gateway of."""

    live: ClassVar = frozenset({"bootstrap_servers", "max_age", "ready", "sasl", "timeout", "tls"})

    bootstrap_servers: tuple[Annotated[str, AfterValidator(_server)], ...] = Field(
        min_length=1, description="HOST:PORT of nodes of the cluster; the others are found by them."
    )
    namespace: Annotated[str, AfterValidator(kafka_namespace)] = Field(
        default="public/default",
        description="The namespace that the topics of the cluster are listed in, and that Kafka clients see.",
    )
    forward: Literal["gateway", "client"] = Field(
        default="gateway",
        description="gateway: the cluster is asked with the gateway's own credentials, and clients authenticate here; "
        "client: with those of the client, which the cluster verifies.",
    )
    max_age: Annotated[PositiveDuration, Field(ge=1.0)] = Field(
        default=10.0,
        description="A listing that was not compared with the cluster's for so long is not given to anybody.",
    )
    ports: PortRange = Field(
        default=PortRange(19_100, 19_199),
        description="FIRST-LAST: the ports of the gateway at which clients find the nodes, one for each of them.",
    )
    timeout: Annotated[PositiveDuration, Field(le=25.0)] = Field(
        default=10.0,
        description="How long a node may take to answer a question; then its part is an error, or another is asked.",
    )
    ready: bool = Field(
        default=False, description="Whether /-/ready is a 503 while no node of the cluster answers."
    )
    tls: UpstreamTlsSettings | None = None
    sasl: KafkaUpstreamSaslSettings | None = None

    @model_validator(mode="after")
    def _credentials_are_whole(self) -> Self:
        own = self.sasl
        if own is None:
            return self
        is_token = own.mechanism == "OAUTHBEARER"
        needed, other = (("token",), ("user", "password")) if is_token else (("user", "password"), ("token",))
        for name in needed:
            if not getattr(own, name):
                raise SettingConflict(("sasl", name), f"it must be set for {own.mechanism}")
        for name in other:
            if getattr(own, name):
                raise SettingConflict(("sasl", name), f"{own.mechanism} has no use for it: leave it out")
        return self


def check_kafka_forwarding(upstream: KafkaUpstreamSettings, mechanisms: Sequence[KafkaMechanism]) -> None:
    """Check that the credentials to pass on to the cluster exist. Raises :exc:`SettingConflict`, with paths below
    ``[kafka]``.
    """
    if upstream.forward != "client":
        return
    scram = [name for name in mechanisms if name.startswith("SCRAM")]
    if scram:
        raise SettingConflict(
            ("upstream", "forward"),
            f'"client" cannot pass {scram[0]} on, by which a password is never sent: leave PLAIN and OAUTHBEARER in '
            'kafka.sasl.mechanisms alone, or set "gateway", with users of this server',
            rests_on=(("sasl",),),
        )
    if not mechanisms:
        raise SettingConflict(
            ("upstream", "forward"),
            '"client" passes on what clients authenticate by: kafka.sasl.mechanisms must be of "PLAIN" and '
            '"OAUTHBEARER", and none is set',
            rests_on=(("sasl",),),
        )
    if upstream.sasl is None:
        raise SettingConflict(
            ("upstream", "sasl"),
            'with kafka.upstream.forward = "client" too the nodes of the cluster are asked for with credentials of '
            "the gateway: set mechanism, user and password",
        )
