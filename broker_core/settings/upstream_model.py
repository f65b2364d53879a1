"""``[upstream]``: the cluster behind a gateway, the credentials for its brokers, and its TLS."""

from __future__ import annotations

import base64
import re
from typing import Annotated, ClassVar, Final, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from broker_core.quantities import PositiveDuration, Size
from broker_core.service_addresses import is_tls, service_addresses
from broker_core.settings.authentication_model import AuthenticationSettings, OptionalFile
from broker_core.settings.key_source import KeySource, OptionalKey
from broker_core.settings.table import SettingConflict, Table

__all__ = ["UpstreamSettings", "UpstreamSnapshotsSettings", "UpstreamTlsSettings", "check_forwarding"]

#: The methods whose data a gateway can pass on.
_FORWARDED: Final = ("token", "basic")
#: A token itself in place of its source: no scheme, no white space.
_LITERAL: Final = re.compile(r"[!-9;-~]+")
_ADMIN_URL: Final = re.compile(r"https?://[^\s/@?#]+/?")
#: Text that begins as a path does, or ends as the name of a file, and is no token.
_LIKE_A_PATH: Final = re.compile(rb"(~|\.{1,2})?/.*|.*\.(jwt|token|txt)", re.IGNORECASE)


def _token(value: object) -> object:
    """A token in the settings themselves, made a source as any other. No error shows it."""
    if value is None or isinstance(value, KeySource):
        return value
    if not isinstance(value, str):
        raise ValueError("it is no text")  # noqa: TRY004  # pydantic takes no TypeError for a finding
    if _LITERAL.fullmatch(value):
        return KeySource("data", base64.b64encode(value.encode()).decode())
    return value


def _words(value: object) -> object:
    """The words of a command; no error shows them."""
    if not isinstance(value, list | tuple) or not all(isinstance(word, str) for word in value):
        raise ValueError("it is no list of words")
    return value


class UpstreamTlsSettings(Table):
    """``[upstream.tls]`` and ``[kafka.upstream.tls]``: TLS of the connections to the brokers."""

    ca: OptionalFile = Field(
        default=None, description="The certificates that the brokers' are trusted by; empty: the system's."
    )
    certificate: OptionalFile = Field(
        default=None,
        description="The gateway's own certificate; without a token the brokers take its role from it.",
    )
    key: OptionalFile = Field(default=None, description="The key of it; empty: it is in the same file.")
    verify_hostname: bool = Field(
        default=True, description="Whether a broker's certificate must be for the host of its address."
    )

    @model_validator(mode="after")
    def _a_key_has_a_certificate(self) -> Self:
        if self.key is not None and self.certificate is None:
            raise SettingConflict(("key",), "its certificate is missing: a key alone proves nothing")
        return self


class UpstreamSnapshotsSettings(Table):
    """``[upstream.snapshots]``: the listings of the cluster that the gateway holds, however many clients ask."""

    live: ClassVar = frozenset({"max_age", "token", "token_command"})

    mode: Literal["auto", "off"] = Field(
        default="auto",
        description="auto: a namespace is listed once for all clients; off: the brokers are asked for each question.",
    )
    max_age: Annotated[PositiveDuration, Field(ge=1.0)] = Field(
        default=60.0,
        description="A listing that was not compared with the cluster's for so long is not given to anybody.",
    )
    token: Annotated[OptionalKey, BeforeValidator(_token)] = Field(
        default=None,
        repr=False,
        description="The token of the role that lists for all clients, not one of proxyRoles: file:PATH or env:NAME. "
        "Without one there is a listing for each principal.",
    )
    token_command: Annotated[tuple[str, ...], BeforeValidator(_words)] = Field(
        default=(),
        repr=False,
        description="In place of token: a command and its arguments, which prints the token.",
    )
    folder: OptionalFile = Field(
        default=None,
        description="A folder of their own in which large listings are stored too, so that after a restart the brokers "
        "are only asked whether they still have their hash; empty: none is stored. A relative path is taken as that of "
        "the catalogue.",
    )
    folder_bytes: Size = Field(
        default=2 * 1024**3,
        description="Bytes of that folder; the least used listings go first. 0: no bound.",
    )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.token is not None and self.token_command:
            raise SettingConflict(
                ("token_command",), "upstream.snapshots.token is set too: leave one of them out"
            )
        return self

    @property
    def has_own_role(self) -> bool:
        """Whether one role lists for all clients."""
        return self.token is not None or bool(self.token_command)


class UpstreamSettings(Table):
    """``[upstream]``: the cluster that this server is the lookup gateway of."""

    live: ClassVar = frozenset({"service_url", "token", "token_command", "ready", "admin_url", "tls"})

    service_url: str = Field(
        description="pulsar://HOST:PORT or pulsar+ssl://HOST:PORT of the brokers that lookups are relayed to, and that "
        "list topics if no plugin answers."
    )
    forward: Literal["gateway", "client"] = Field(
        default="gateway",
        description="gateway: the brokers are asked with the gateway's own credentials, for the client's principal; "
        "client: with those of the client.",
    )
    token: Annotated[OptionalKey, BeforeValidator(_token)] = Field(
        default=None, repr=False, description="The gateway's own token: file:PATH or env:NAME."
    )
    token_command: Annotated[tuple[str, ...], BeforeValidator(_words)] = Field(
        default=(),
        repr=False,
        description="In place of token: a command and its arguments, which prints the token.",
    )
    original_auth_data: bool = Field(
        default=False,
        description="Whether the client's credentials go to the brokers beside the gateway's own, for brokers with "
        "authenticateOriginalAuthData.",
    )
    ready: bool = Field(default=False, description="Whether /-/ready is a 503 while no broker answers.")
    admin_url: str | None = Field(
        default=None,
        description="http://HOST:PORT or https://HOST:PORT of the brokers' web service, which knows the non-persistent "
        "topics of all brokers; each broker knows its own alone.",
    )
    listing_depends_on: tuple[Literal["principal", "properties"], ...] = Field(
        default=(),
        description="What the answers of the brokers' own plugin depend on, if they have one: such questions are "
        "asked one by one. Without properties, those of clients are not sent to the brokers.",
    )
    snapshots: UpstreamSnapshotsSettings = Field(default_factory=UpstreamSnapshotsSettings)
    tls: UpstreamTlsSettings | None = None

    @field_validator("service_url")
    @classmethod
    def _is_a_service_url(cls, url: str) -> str:
        service_addresses(url)
        return url

    @field_validator("admin_url")
    @classmethod
    def _is_an_admin_url(cls, url: str | None) -> str | None:
        if url and not _ADMIN_URL.fullmatch(url):
            raise ValueError(f"{url!r} is no http://HOST:PORT or https://HOST:PORT")
        return url.rstrip("/") if url else None

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        if self.tls is not None and not is_tls(self.service_url):
            raise SettingConflict(
                ("service_url",), "upstream.tls is set: a URL of TLS begins with pulsar+ssl://"
            )
        if self.token is not None and self.token_command:
            raise SettingConflict(("token_command",), "upstream.token is set too: leave one of them out")
        if self.forward == "client":
            for name, given in (
                ("token", self.token is not None),
                ("token_command", bool(self.token_command)),
            ):
                if given:
                    raise SettingConflict(
                        (name,),
                        'the gateway has no use for a token of its own with upstream.forward = "client"',
                    )
            if self.original_auth_data:
                raise SettingConflict(
                    ("original_auth_data",), 'with upstream.forward = "client" they are sent as they are'
                )
        elif self.original_auth_data and not self.has_own_credentials:
            raise SettingConflict(
                ("original_auth_data",),
                "the gateway needs credentials of its own too: upstream.token, token_command or tls.certificate",
            )
        return self

    @property
    def of_snapshot_role(self) -> Self:
        """The connections of the role that lists for all clients."""
        own = self.snapshots
        return self.model_copy(
            update={
                "forward": "gateway",
                "token": own.token,
                "token_command": own.token_command,
                "original_auth_data": False,
            }
        )

    @property
    def has_own_credentials(self) -> bool:
        """Whether the gateway has credentials of its own for the brokers."""
        own_certificate = self.tls is not None and self.tls.certificate is not None
        return self.forward == "gateway" and (
            self.token is not None or bool(self.token_command) or own_certificate
        )

    @property
    def token_warning(self) -> str | None:
        """The warning about a token in the settings themselves. It does not show the token."""
        if self.token is None or self.token.kind != "data":
            return None
        if _LIKE_A_PATH.fullmatch(self.token.read()):
            return "it is taken for the token itself, and looks like a path: write file:PATH"
        return (
            "it is the token itself, which everybody sees who reads the settings: "
            "use file:PATH, env:NAME or upstream.token_command"
        )


def check_forwarding(upstream: UpstreamSettings, authentication: AuthenticationSettings) -> None:
    """Check that the credentials to pass on to the brokers exist. Raises :exc:`SettingConflict`."""
    if upstream.forward == "client":
        others = [method for method in authentication.methods if method not in _FORWARDED]
        if others or not authentication.methods:
            raise SettingConflict(
                ("upstream", "forward"),
                '"client" passes tokens and passwords on: authentication.methods must be of "token" and "basic"'
                + (f", not {others[0]!r}" if others else ", and none is set"),
                rests_on=(("authentication",),),
            )
        if authentication.anonymous_role:
            raise SettingConflict(
                ("upstream", "forward"),
                '"client" has nothing to pass on for authentication.anonymous_role: leave one of them out',
                rests_on=(("authentication",),),
            )
    elif upstream.original_auth_data and not authentication.is_on:
        raise SettingConflict(
            ("upstream", "original_auth_data"),
            "clients send no credentials without authentication.methods",
            rests_on=(("authentication",),),
        )
