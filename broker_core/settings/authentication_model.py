"""``[authentication]``: how clients prove their identity, with a table of each method that needs one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, field_validator, model_validator

from broker_core.quantities import Duration
from broker_core.settings.key_source import OptionalKey
from broker_core.settings.table import ALL, SettingConflict, Table, each_once

__all__ = ["Algorithm", "AuthenticationSettings", "BasicSettings", "Method", "OptionalFile", "TokenSettings"]

Method: TypeAlias = Literal["token", "tls", "basic"]
Algorithm: TypeAlias = Literal[
    "HS256", "HS384", "HS512",
    "RS256", "RS384", "RS512",
    "PS256", "PS384", "PS512",
    "ES256", "ES384", "ES512",
    "EdDSA",
]  # fmt: skip
#: A file, ``None`` if the setting is empty.
OptionalFile = Annotated[
    Path | None,
    BeforeValidator(lambda value: None if value == "" else value),
    PlainSerializer(lambda value: "" if value is None else str(value), return_type=str, when_used="json"),
]


class TokenSettings(Table):
    """``[authentication.token]``: JSON Web Tokens, verified by Pulsar's rules."""

    key: OptionalKey = Field(
        default=None, description="The secret or the public key: file:PATH, env:NAME or data:;base64,..."
    )
    jwks: OptionalKey = Field(
        default=None, description="In place of key: a JSON Web Key Set, in the same forms."
    )
    algorithms: tuple[Algorithm, ...] = Field(
        default=("RS256",),
        min_length=1,
        description="The algorithms that are accepted, all of one kind of key.",
    )
    subject_claim: str = Field(default="sub", min_length=1, description="The claim with the role.")
    audience: str = Field(default="", description="The audience that tokens must have; empty: not checked.")
    issuer: str = Field(default="", description="The issuer that tokens must have; empty: not checked.")
    leeway: Duration = Field(
        default=0.0, description="Tolerance for the clocks, at both ends of a token's time."
    )

    @field_validator("algorithms")
    @classmethod
    def _of_one_kind(cls, algorithms: tuple[Algorithm, ...]) -> tuple[Algorithm, ...]:
        # One key is of one kind. A set of keys may have several kinds, but never secrets beside public keys: a token
        # signed with a public key as the secret must not have a chance.
        if len({name.startswith("HS") for name in algorithms}) > 1:
            raise ValueError("algorithms of secrets (HS...) and of public keys do not go together")
        return algorithms


class BasicSettings(Table):
    """``[authentication.basic]``: user names with passwords."""

    file: OptionalFile = Field(
        default=None, description="An htpasswd file with bcrypt or $apr1$ hashes; the user name is the role."
    )


class AuthenticationSettings(Table):
    """``[authentication]``: how clients prove their identity."""

    live: ClassVar = ALL

    methods: Annotated[tuple[Method, ...], AfterValidator(each_once)] = Field(
        default=(), description="The methods that clients may use; none: all are let in."
    )
    anonymous_role: str = Field(
        default="", description="The role of clients without a method; empty: they are refused."
    )
    proxy_roles: tuple[str, ...] = Field(
        default=(), description="Roles that may, and must, name the principal that they act for."
    )
    token: TokenSettings | None = None
    basic: BasicSettings | None = None

    @field_validator("anonymous_role", "proxy_roles")
    @classmethod
    def _are_roles(cls, value: str | tuple[str, ...]) -> str | tuple[str, ...]:
        for role in (value,) if isinstance(value, str) else value:
            if (role or not isinstance(value, str)) and (not role.strip() or not role.isprintable()):
                raise ValueError(f"{role!r} is no role")
        return value

    @model_validator(mode="after")
    def _methods_have_what_they_need(self) -> AuthenticationSettings:
        if "token" in self.methods:
            token = self.token or TokenSettings()
            if token.key is None and token.jwks is None:
                raise SettingConflict(
                    ("methods",),
                    "method 'token' needs authentication.token.key (or jwks): the key of the tokens",
                )
            if token.key is not None and token.jwks is not None:
                raise SettingConflict(
                    ("token", "jwks"), "authentication.token.key is set too: leave one of them out"
                )
        if "basic" in self.methods and (self.basic is None or self.basic.file is None):
            raise SettingConflict(
                ("methods",), "method 'basic' needs authentication.basic.file: an htpasswd file"
            )
        if self.anonymous_role and self.anonymous_role in self.proxy_roles:
            raise SettingConflict(
                ("proxy_roles",), f"{self.anonymous_role!r} is the anonymous role: it proves nothing"
            )
        return self

    @property
    def is_on(self) -> bool:
        """Whether clients are authenticated by these settings alone."""
        return bool(self.methods or self.anonymous_role)
