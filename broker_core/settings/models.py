"""Every setting with its type, default and bounds; one model per table of the TOML file.

Built in code, ``Settings()`` has the defaults and its arguments, and reads neither files nor the environment;
:func:`~broker_core.settings.load.load_settings` reads them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, model_validator

from broker_core.pattern_and_replica_bounds import MAX_PATTERN
from broker_core.quantities import Count, Duration, ListenAddress, PositiveDuration, Size, format_size
from broker_core.settings.access_log_model import AccessLogSettings
from broker_core.settings.advertised_address import Advertised
from broker_core.settings.authentication_model import AuthenticationSettings, OptionalFile
from broker_core.settings.authorization_model import AuthorizationSettings
from broker_core.settings.kafka_model import KafkaSettings
from broker_core.settings.quota_model import QuotaSettings, check_quota_names
from broker_core.settings.shrink_guard_model import ShrinkGuardSettings
from broker_core.settings.table import ALL, SettingConflict, Table, each_once
from broker_core.settings.tls_models import HttpTlsSettings, Network, PulsarTlsSettings
from broker_core.settings.tracing_model import TracingSettings
from broker_core.settings.upstream_model import UpstreamSettings, check_forwarding
from broker_core.settings.watchers_model import WatchersSettings

__all__ = [
    "AdminSettings",
    "CatalogSettings",
    "HttpSettings",
    "LimitsSettings",
    "LogSettings",
    "PatternsSettings",
    "PluginsSettings",
    "PulsarSettings",
    "Settings",
]

#: CONNECTED carries max_message_size as an int32, and a frame may be 10 KiB longer than a message.
#: docs/reference/pulsar-behaviour.md#frame-limits
_LARGEST_MESSAGE: Final = 2**31 - 1 - 10 * 1024


def _connections(value: object) -> object:
    """``"auto"`` or a number from 1 on: one finding if it is neither, not one for each type."""
    number = int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value
    if value != "auto" and (isinstance(number, bool) or not isinstance(number, int) or number < 1):
        raise ValueError(f"{value!r} is not a number of connections, nor 'auto'")
    return number


def _host_name(value: str) -> str:
    if not re.fullmatch(
        r"(?=.{1,253}$)[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*",
        value,
    ):
        raise ValueError(
            f"{value!r:.100} is not the name of a host, such as 'topics.example.com', without a port"
        )
    return value.lower()


def _file_mode(value: object) -> str:
    """An octal text such as ``"0640"``: a TOML number would be read as decimal."""
    if isinstance(value, str) and re.fullmatch("0?6[0246][0246]", value):
        return value.rjust(4, "0")
    raise ValueError(
        f"{value!r:.100} is not the mode of a file that its owner writes, such as '0600' or, for a group, '0660'"
    )


class PulsarSettings(Table):
    """``[pulsar]``: the server of Pulsar's binary protocol."""

    live: ClassVar = frozenset({"drain_delay", "drain_timeout"})

    listen: ListenAddress = Field(
        default=ListenAddress("127.0.0.1", 6650),
        description="HOST:PORT to serve clients on; port 0: a free one.",
    )
    advertised: Advertised = Field(
        default="",
        description="HOST:PORT by which clients reach this server, for those that look a pattern up to watch it; "
        "empty: the address that is listened on, with the name of the machine in place of a wildcard.",
    )
    max_message_size: Annotated[Size, Field(ge=1024, le=_LARGEST_MESSAGE)] = Field(
        default=5 * 1024 * 1024,
        description="Sent to clients in CONNECTED, and the bound of a listing's frame for clients that have one. "
        "It must be the same as at the brokers.",
    )
    advertise_frame: Literal["same", "auto"] = Field(
        default="same",
        description="What CONNECTED says of the size: `same`, max_message_size to all; `auto`, `max_listing` to "
        "clients that take a larger one as their limit for answers and for nothing else.",
    )
    max_listing: Annotated[Size, Field(ge=1024, le=_LARGEST_MESSAGE)] = Field(
        default=256 * 1024 * 1024, description="The largest listing of such clients, with `auto`."
    )
    keep_alive: PositiveDuration = Field(
        default=30.0, description="A PING after so long; a peer silent for twice as long is closed."
    )
    write_timeout: PositiveDuration = Field(
        default=15.0,
        description="A peer that takes nothing of an answer for so long is closed, unless it was ahead of "
        "`min_write_rate`.",
    )
    min_write_rate: Size = Field(
        default=256 * 1024,
        description="Bytes a second: a peer may keep a whole answer waiting for `write_timeout` and the time that its "
        "size takes at this rate, then it is closed; 0: for any time.",
    )
    drain_delay: Duration = Field(
        default=0.0,
        description="How long SIGTERM lets clients connect and ask on while /-/ready is a 503, so that load balancers "
        "stop sending clients here.",
    )
    drain_timeout: Duration = Field(
        default=10.0,
        description="How long SIGTERM waits for the answers that are under way, after drain_delay.",
    )
    haproxy_from: tuple[Network, ...] = Field(
        default=(),
        description="Networks of TCP proxies: each connection from there begins with a preamble of HAProxy's PROXY "
        "protocol, which has the address of the client.",
    )
    tls: PulsarTlsSettings | None = None

    @property
    def unused_max_listing(self) -> str | None:
        """The reason why ``max_listing`` has no effect although it is set, or ``None``."""
        if self.advertise_frame == "same":
            is_set = "max_listing" in self.model_fields_set
            return 'it has no effect without advertise_frame = "auto"' if is_set else None
        if self.max_listing < self.max_message_size:
            sizes = format_size(self.max_listing), format_size(self.max_message_size)
            return f"{sizes[0]} has no effect: the limit of clients is max_message_size, {sizes[1]}, at least"
        return None


class HttpSettings(Table):
    """``[http]``: metrics, health and the API for programs over HTTP; without the table there is no HTTP."""

    live: ClassVar = frozenset({"most_items"})

    listen: ListenAddress = Field(
        default=ListenAddress("127.0.0.1", 8080),
        description="HOST:PORT of /metrics, /questions, /plugins, /-/live and /-/ready.",
    )
    questions: bool = Field(
        default=False,
        description="Whether /questions says which patterns and selecting properties were asked for how often.",
    )
    protect: bool = Field(
        default=False,
        description="Whether /metrics and health need credentials too, as /questions and /plugins do whenever clients "
        "are authenticated.",
    )
    connections: Annotated[int | Literal["auto"], BeforeValidator(_connections)] = Field(
        default="auto",
        description="Connections of the API's clients; health and metrics have 32 more. auto: an eighth of what the "
        "limit of open files has room for, at most 1024.",
    )
    api: bool = Field(
        default=True, description="Whether the API for programs is served, below /v1 and /admin/v2."
    )
    writes: bool = Field(
        default=True,
        description="Whether it changes topics of the embedded catalogue, for clients with the right `admin`.",
    )
    most_items: Count = Field(
        default=10_000_000,
        ge=1,
        description="Names of an answer to a request without `limit`; more are in a further page.",
    )
    hosts: tuple[Annotated[str, AfterValidator(_host_name)], ...] = Field(
        default=(),
        description="Names, besides addresses and localhost, by which browsers, and programs without credentials, "
        "may ask this server, without a port; others are refused, since any page could stand behind them.",
    )
    haproxy_from: tuple[Network, ...] = Field(
        default=(),
        description="Networks of TCP proxies: each connection from there begins with a preamble of HAProxy's PROXY "
        "protocol, which has the address of the client.",
    )
    tls: HttpTlsSettings | None = None


class AdminSettings(Table):
    """``[admin]``: the way for the operator on this machine, without credentials."""

    socket: OptionalFile = Field(
        default=None,
        description="A unix socket with the pages of [http], for the user that runs the server alone; empty: none. A "
        "relative path is taken as that of the catalogue.",
    )


class CatalogSettings(Table):
    """``[catalog]``: the embedded catalogue of topics, one SQLite file."""

    live: ClassVar = frozenset({"property_keys"})

    path: Path = Field(
        default=Path("broker-core.sqlite"),
        description="The file, made if it is not there. A relative path is taken from the folder of the settings "
        "file that names it (or that leaves it out); in an option or the environment, from the working directory.",
    )
    mode: Annotated[str, BeforeValidator(_file_mode)] = Field(
        default="0600",
        description="The rights of a new file, and so of what is made beside it: it has the names of all topics, and "
        "what verifies Kafka's passwords. A file that is there keeps its own.",
    )
    property_keys: tuple[str, ...] = Field(
        default=(),
        description="The request properties that select topics; all given ones of these must be equal, and others "
        "are ignored.",
    )
    snapshots: Literal["folder", "off"] = Field(
        default="folder",
        description="folder: large namespaces are also stored in the folder FILE.snapshots beside the catalogue, from "
        "which a restart reads them in a fraction of the time; off: nothing is stored, or read from there.",
    )
    snapshots_bytes: Size = Field(
        default=2 * 1024**3,
        description="Bytes of that folder; the least used namespaces go first. 0: no bound.",
    )
    warm_within: Duration = Field(
        default=5.0,
        description="The longest time at the start in which the stored namespaces that were asked most are read before "
        "the server is ready; 0: none is.",
    )

    @property
    def file_mode(self) -> int:
        """``mode`` as a number."""
        return int(self.mode, 8)


class PatternsSettings(Table):
    """``[patterns]``: which patterns are evaluated here, and what happens to the others."""

    evaluate: bool = Field(
        default=True, description="false: every listing goes out unfiltered, and the clients filter."
    )
    max_length: Count = Field(
        default=MAX_PATTERN,
        description="UTF-16 units of a pattern with its scheme; a longer one is never compiled: `unsupported` applies.",
    )
    unsupported: Literal["unfiltered", "error"] = Field(
        default="unfiltered",
        description="What a pattern gets that RE2 refuses: the whole namespace, which the client filters, or an error.",
    )


class LimitsSettings(Table):
    """``[limits]``: memory, time and places. Sizes are powers of 1024; 0 permits is no limit."""

    live: ClassVar = ALL

    connections: Annotated[int | Literal["auto"], BeforeValidator(_connections)] = Field(
        default="auto",
        description="Clients connected at once. auto: as many as the limit of open files allows, with some kept back.",
    )
    connections_per_address: Annotated[int, Field(ge=0)] = Field(
        default=0, description="Clients connected at once from one IP address; 0: no limit of its own."
    )

    heap_permits: Size = Field(
        default=100 * 1024**2, description="Memory that listings under way may allocate."
    )
    direct_permits: Size = Field(
        default=100 * 1024**2, description="Memory that answers being written may hold."
    )
    snapshots: Size = Field(default=512 * 1024**2, description="Memory of namespaces kept as columns.")
    permit_timeout: PositiveDuration = Field(
        default=25.0,
        description="The longest wait for permits; below the 30 s that clients wait for an answer.",
    )
    permit_queue: Count = Field(default=1000, description="Listings that may wait for permits, of each kind.")
    concurrent_lookups: Count = Field(default=50_000, description="Requests under way at once.")
    properties: Annotated[int, Field(ge=0)] = Field(
        default=64, description="Pairs of properties in one request."
    )
    property_bytes: Size = Field(
        default=16_384, description="UTF-8 bytes of all keys and values of properties in one request."
    )


class PluginsSettings(Table):
    """``[plugins]``: which plugins are asked, in which order; and a table ``[plugins.NAME]`` of each plugin's own.

    The tables are free here; the plugin registry checks them against what each plugin declares.
    """

    model_config = ConfigDict(extra="allow", frozen=True, validate_default=True)
    __pydantic_extra__: dict[str, dict[str, Any]] = Field(init=False)

    enabled: Annotated[tuple[str, ...], AfterValidator(each_once)] = Field(
        default=(),
        description="Names of the plugins, the first is asked first. An installed plugin that is not named is off.",
    )

    @property
    def tables(self) -> Mapping[str, Mapping[str, Any]]:
        """The plugins' own tables by plugin name, enabled or not."""
        return self.__pydantic_extra__ or {}

    def table(self, name: str) -> Mapping[str, Any]:
        """The plugin's own table as it was written, empty if there is none."""
        return self.tables.get(name, {})


class LogSettings(Table):
    """``[log]``: what is logged, how and where."""

    live: ClassVar = frozenset({"level", "format", "file"})

    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="The least that is logged."
    )
    format: Literal["auto", "human", "json"] = Field(
        default="auto", description="auto: for a person on a terminal, JSON lines otherwise."
    )
    file: OptionalFile = Field(
        default=None,
        description="A file that the log is appended to, instead of standard error; SIGHUP opens it anew. A relative "
        "path is taken as that of the catalogue.",
    )
    access: AccessLogSettings | None = None


class Settings(Table):
    """All settings. Immutable; ``http``, ``kafka`` and ``upstream`` are ``None`` if their table is absent."""

    live: ClassVar = frozenset({"quotas"})

    pulsar: PulsarSettings = PulsarSettings()
    authentication: AuthenticationSettings = AuthenticationSettings()
    authorization: AuthorizationSettings = AuthorizationSettings()
    shrink_guard: ShrinkGuardSettings = ShrinkGuardSettings()
    http: HttpSettings | None = None
    kafka: KafkaSettings | None = None
    admin: AdminSettings = AdminSettings()
    catalog: CatalogSettings = CatalogSettings()
    upstream: UpstreamSettings | None = None
    patterns: PatternsSettings = PatternsSettings()
    limits: LimitsSettings = LimitsSettings()
    quotas: Annotated[tuple[QuotaSettings, ...], AfterValidator(check_quota_names)] = Field(
        default=(), description="Bounds of what clients ask per second."
    )
    watchers: WatchersSettings = WatchersSettings()
    plugins: PluginsSettings = PluginsSettings()
    log: LogSettings = LogSettings()
    tracing: TracingSettings | None = None

    @model_validator(mode="after")
    def _access_fits_together(self) -> Settings:
        if self.authorization.mode == "allow" and self.authentication.is_on:
            raise SettingConflict(
                ("authorization", "mode"),
                "'allow' has no use for authentication: write rules, or leave the mode out",
                rests_on=(("authentication",),),
            )
        anonymous = self.authentication.anonymous_role
        if anonymous and anonymous in self.authorization.super_roles:
            raise SettingConflict(
                ("authorization", "super_roles"),
                f"{anonymous!r} is the anonymous role: clients without credentials would be allowed everything",
                rests_on=(("authentication",),),
            )
        # A plugin may authenticate, which shows at the start.
        if (
            self.http is not None
            and self.http.protect
            and not self.authentication.is_on
            and not self.plugins.enabled
        ):
            raise SettingConflict(
                ("http", "protect"),
                "it needs authentication, or no client could ask: set authentication.methods",
                rests_on=(("authentication",), ("plugins",)),
            )
        if self.upstream is not None:
            check_forwarding(self.upstream, self.authentication)
        listeners = [self.pulsar, self.http, self.kafka]
        if "tls" in self.authentication.methods and not any(
            table and table.tls and table.tls.client_ca for table in listeners
        ):
            raise SettingConflict(
                ("authentication", "methods"),
                "method 'tls' needs pulsar.tls.client_ca (or that of http.tls, kafka.tls): the authorities of clients",
                rests_on=(("pulsar", "tls"), ("http", "tls"), ("kafka", "tls")),
            )
        return self
