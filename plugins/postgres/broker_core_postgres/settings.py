"""The settings ``[plugins.postgres]``: each option with its type, default, bounds and unit.

Durations are written as ``"5s"`` or ``"250ms"`` and held in seconds, sizes as ``"16MB"`` and held in bytes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from broker_core.quantities import Duration, PositiveDuration, Size

__all__ = ["PostgresSettings"]

#: Shorter than the broker's limit for a listing (28 s), so that the plugin's error, which names the cause, comes first.
_DEADLINE = 10.0
#: Shorter than the deadline, so that a slow question differs from a database that does not answer.
_STATEMENT = 8.0


class PostgresSettings(BaseModel):
    """``[plugins.postgres]``: the database, the selecting properties, and the bounds."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    #: Settings that change without a restart.
    live: ClassVar = frozenset(
        {
            "statement_timeout",
            "connect_timeout",
            "pool_min",
            "pool_max",
            "pool_waiting",
            "pool_idle",
            "pool_lifetime",
            "deadline",
        }
    )

    # -- the database

    dsn: str | None = Field(
        default=None,
        description="Connection string of the database that is read: postgresql://user@host:5432/database, with "
        "several hosts separated by commas. Without it the environment of libpq counts (PGHOST, PGSERVICE and so on); "
        "with neither, and no socket of a server on this machine, it is an error.",
    )
    password_file: Path | None = Field(
        default=None,
        description="A file that holds nothing but the password, read again for every connection, so that it can be "
        "changed without a restart.",
    )
    password_env: str | None = Field(
        default=None, description="The name of the variable of the environment that holds the password."
    )
    service: str | None = Field(
        default=None, description="The name of a service in the service file (libpq's pg_service.conf)."
    )
    service_file: Path | None = Field(
        default=None, description="The service file; without it PGSERVICEFILE, else ~/.pg_service.conf."
    )
    listen: bool = Field(
        default=True, description="Whether changes are listened for (LISTEN); the version row is always read."
    )
    listen_dsn: str | None = Field(
        default=None,
        description="Connection string for LISTEN alone: the server itself if dsn is a pgbouncer that pools "
        "transactions. Without it dsn, unless prepared_statements is off.",
    )
    replicas: tuple[str, ...] = Field(
        default=(),
        description="Connection strings of read replicas, which listings are read from while they keep up.",
    )
    replica_max_lag: Annotated[int, Field(ge=0)] = Field(
        default=0,
        description="How many versions of a namespace a replica may be behind the newest that this server has seen; "
        "one that is further behind is not asked.",
    )

    auto_migrate: bool = Field(
        default=True,
        description="Whether an older schema is migrated by itself: by a server at its start, and by a command that "
        "writes, where their user may.",
    )

    # -- listings

    relation: str | None = Field(
        default=None,
        description="A table or view of the operator's own that is read instead of broker_core.topics: name or "
        "schema.name, with the columns of the documented contract.",
    )
    property_keys: tuple[str, ...] = Field(
        default=(),
        description="The request properties that select topics: all given ones of these must be equal. Others are "
        "ignored and counted.",
    )
    only_with_properties: bool = Field(
        default=False,
        description="Whether a request without a selecting property passes through to the next plugin.",
    )
    trigrams: Literal["auto", "on", "off"] = Field(
        default="auto",
        description="The trigram index for substrings: used if it is there, demanded at the start, or never used.",
    )

    # -- bounds

    statement_timeout: PositiveDuration = Field(
        default=_STATEMENT,
        description="The longest time of one statement, enforced by the server. Shorter than `deadline`.",
    )
    connect_timeout: PositiveDuration = Field(
        default=5.0, description="The longest time until a connection is made."
    )
    pool_min: Annotated[int, Field(ge=0)] = Field(
        default=1, description="Connections that are kept open although no request needs them."
    )
    pool_max: Annotated[int, Field(ge=1)] = Field(
        default=8, description="Connections at most to each server; further listings wait for one."
    )
    pool_waiting: Annotated[int, Field(ge=1)] = Field(
        default=1000, description="How many listings may wait for a connection; more are refused at once."
    )
    pool_idle: Duration = Field(
        default=300.0,
        description="A connection above pool_min is closed after so long without work; 0: never.",
    )
    pool_lifetime: Duration = Field(
        default=3600.0, description="A connection is replaced after so long; 0: never."
    )
    prepared_statements: Literal["on", "off"] = Field(
        default="on",
        description="off: nothing outlives a transaction on the server, as pgbouncer needs it if it pools "
        "transactions.",
    )
    hash_cache: Size = Field(
        default=16 * 1024 * 1024,
        description="Memory for remembered questions with the hash of their last answer; 0 remembers none.",
    )
    change_log_retention: Duration = Field(
        default=7 * 24 * 3600.0, description="How long the change log keeps a change; 0: for ever."
    )

    # -- the core's options for a plugin, with this plugin's defaults

    deadline: PositiveDuration = Field(default=_DEADLINE, description="How long one listing may take.")

    @field_validator("property_keys", "replicas", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        """A list, or a text with commas as in an environment variable."""
        if isinstance(value, str):
            return [part.strip() for part in value.split(",") if part.strip()]
        return value

    @field_validator("property_keys")
    @classmethod
    def _usable_keys(cls, keys: tuple[str, ...]) -> tuple[str, ...]:
        for key in keys:
            if not key or "\0" in key:
                raise ValueError("a property key is not empty and has no NUL character")
        return tuple(dict.fromkeys(keys))

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.pool_min > self.pool_max:
            raise ValueError(f"pool_min is {self.pool_min}, more than pool_max, which is {self.pool_max}")
        if self.only_with_properties and not self.property_keys:
            raise ValueError(
                "only_with_properties needs property_keys: no request would have a selecting property"
            )
        if self.relation is not None and self.replicas:
            raise ValueError("replicas cannot be used with relation, which has no versions to compare")
        if self.password_file is not None and self.password_env is not None:
            raise ValueError("password_file and password_env are both given: which one counts?")
        return self
