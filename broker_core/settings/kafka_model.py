"""``[kafka]``: the server of Kafka's protocol; without the table there is none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, model_validator

from broker_core.compact_json import read_json
from broker_core.pattern_and_replica_bounds import MAX_REPLICATION
from broker_core.quantities import ListenAddress
from broker_core.settings.advertised_address import Advertised, is_wildcard
from broker_core.settings.authentication_model import OptionalFile
from broker_core.settings.kafka_upstream_model import (
    KafkaMechanism,
    KafkaUpstreamSettings,
    check_kafka_forwarding,
)
from broker_core.settings.namespace_texts import kafka_namespace
from broker_core.settings.table import SettingConflict, Table
from broker_core.settings.tls_models import NamedFile, Network

__all__ = ["KafkaMechanism", "KafkaSaslSettings", "KafkaSettings", "KafkaTlsSettings"]

_NAMESPACE: Final = "public/default"
_FOUR_HOURS: Final = 4 * 60 * 60 * 1000


def _principal(text: str) -> str:
    kind, separator, name = text.partition(":")
    if kind != "User" or not separator or not name:
        raise ValueError(f"{text!r} is no principal: write 'User:NAME'")
    return text


def _pairs(value: object) -> object:
    """A table, which the environment has as JSON."""
    if isinstance(value, str):
        try:
            return read_json(value)
        except ValueError as error:
            raise ValueError(f"it is no table, and no JSON object: {error}") from None
    return value


_Namespace = Annotated[str, AfterValidator(kafka_namespace)]
_Principal = Annotated[str, AfterValidator(_principal)]
_AsTable = PlainSerializer(dict, return_type=dict[str, str])


class KafkaTlsSettings(Table):
    """``[kafka.tls]``: Kafka's protocol over TLS, on an address of its own; without the table there is none."""

    listen: ListenAddress = Field(
        default=ListenAddress("127.0.0.1", 9093),
        description="HOST:PORT to serve clients on over TLS; port 0: a free one.",
    )
    advertised: Advertised = Field(
        default="", description="HOST:PORT that clients of this listener get as its address; empty: `listen`."
    )
    certificate: NamedFile = Field(description="A PEM file with the certificate of the server and its chain.")
    key: NamedFile = Field(description="A PEM file with the key of the certificate, without a password.")
    client_ca: OptionalFile = Field(
        default=None, description="A PEM file with the authorities of clients, for mutual TLS."
    )


class KafkaSaslSettings(Table):
    """``[kafka.sasl]``: the SASL mechanisms of clients."""

    live: ClassVar = frozenset({"mechanisms"})

    mechanisms: tuple[KafkaMechanism, ...] = Field(
        default=(),
        description="The mechanisms that clients may use; none: no client is asked for credentials.",
    )


class KafkaSettings(Table):
    """``[kafka]``: topics listed, created, described and deleted by Kafka clients."""

    live: ClassVar = frozenset(
        {
            "namespace",
            "namespaces",
            "configs",
            "num_partitions",
            "replication_factor",
            "replication",
            "max_request_pagination_size_limit",
            "max_request_partition_size_limit",
        }
    )

    listen: ListenAddress = Field(
        default=ListenAddress("127.0.0.1", 9092),
        description="HOST:PORT to serve Kafka clients on; port 0: a free one.",
    )
    advertised: Advertised = Field(
        default="",
        description="HOST:PORT that clients get as its address; empty: `listen`. Required if that is a wildcard.",
    )
    namespace: _Namespace = Field(
        default=_NAMESPACE, description="The namespace whose topics Kafka clients see."
    )
    node_id: Annotated[int, Field(ge=0, lt=2**31)] = Field(
        default=1, description="The id of the one node of the cluster that clients are shown."
    )
    num_partitions: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        default=1, description="Partitions of a topic that is created without a number of them."
    )
    replication_factor: Annotated[int, Field(ge=1, le=MAX_REPLICATION)] = Field(
        default=1, description="The replication factor of a topic that is created without one."
    )
    replication: Literal["strict", "record"] = Field(
        default="strict",
        description="strict: more replicas than nodes are refused (38), as in Kafka; record: the number is stored, and "
        "one replica shown.",
    )
    max_request_pagination_size_limit: Annotated[int, Field(ge=1, lt=2**31)] = Field(
        default=2000, description="The units of a page at most, whatever a client asks for (KIP-1062)."
    )
    max_request_partition_size_limit: Annotated[int, Field(ge=0, lt=2**31)] = Field(
        default=0,
        description="The partitions of a page of DescribeTopicPartitions at most; 0: "
        "`max_request_pagination_size_limit`.",
    )
    advertise_list_topics: bool = Field(
        default=True,
        description="Whether the API of KIP-142 (key 20142) is among those that clients are shown.",
    )
    delete_topic_delay_ms: Annotated[int, Field(ge=0)] = Field(
        default=_FOUR_HOURS, description="Milliseconds for which the id of a deleted topic is remembered."
    )
    super_users: tuple[_Principal, ...] = Field(
        default=(), description="Principals that no ACL of Kafka binds, as User:NAME."
    )
    allow_everyone_if_no_acl_found: bool = Field(
        default=False, description="Whether everybody may do what no ACL is about."
    )
    namespaces: Annotated[Mapping[_Principal, _Namespace], BeforeValidator(_pairs), _AsTable] = Field(
        default={},
        description="The namespace of each of these principals, in place of `namespace`.",
    )
    configs: Annotated[Mapping[str, str], BeforeValidator(_pairs), _AsTable] = Field(
        default={},
        description="The broker's defaults of topic configs, by their names in Kafka.",
    )
    haproxy_from: tuple[Network, ...] = Field(
        default=(),
        description="Networks of TCP proxies: each connection from there begins with a preamble of HAProxy's PROXY "
        "protocol, which has the address of the client.",
    )
    tls: KafkaTlsSettings | None = None
    sasl: KafkaSaslSettings = KafkaSaslSettings()
    upstream: KafkaUpstreamSettings | None = None

    @model_validator(mode="after")
    def _clients_can_come_back(self) -> KafkaSettings:
        if is_wildcard(self.listen.host) and not self.advertised:
            raise SettingConflict(
                ("advertised",),
                f"it is required: clients cannot connect to {self.listen}, a wildcard address",
            )
        if self.tls is not None and is_wildcard(self.tls.listen.host) and not self.tls.advertised:
            raise SettingConflict(
                ("tls", "advertised"),
                f"it is required: clients cannot connect to {self.tls.listen}, a wildcard address",
            )
        return self

    @model_validator(mode="after")
    def _a_gateway_has_one_namespace(self) -> KafkaSettings:
        upstream = self.upstream
        if upstream is None:
            return self
        check_kafka_forwarding(upstream, self.sasl.mechanisms)
        if self.namespace not in (_NAMESPACE, upstream.namespace):
            raise SettingConflict(
                ("namespace",),
                f"clients of a gateway see kafka.upstream.namespace, which is {upstream.namespace!r}: leave it out",
                rests_on=(("upstream",),),
            )
        for name in ("namespaces", "super_users", "allow_everyone_if_no_acl_found", "configs"):
            if getattr(self, name):
                raise SettingConflict(
                    (name,),
                    "before the cluster of [kafka.upstream] it has no use: "
                    + (
                        "all clients see kafka.upstream.namespace"
                        if name == "namespaces"
                        else "the cluster has its own, and [authorization] stands in front"
                    ),
                    rests_on=(("upstream",),),
                )
        for path, listen in (("listen",), self.listen), (("tls", "listen"), self.tls and self.tls.listen):
            if listen and listen.port in upstream.ports:
                raise SettingConflict(
                    ("upstream", "ports"),
                    f"{upstream.ports} has the port of kafka.{'.'.join(path)}, which is no node's",
                    rests_on=(path[:-1],),
                )
        return self

    @property
    def clients_namespace(self) -> str:
        """The namespace of Kafka clients without one of their own; a gateway's is that of its cluster."""
        return self.namespace if self.upstream is None else self.upstream.namespace
