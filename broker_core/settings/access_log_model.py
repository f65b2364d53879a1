"""``[log.access]``: a file with one line for each listing."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field, field_validator

from broker_core.redaction import is_secret_name
from broker_core.settings.table import ALL, Table
from broker_core.settings.tls_models import NamedFile

__all__ = ["AccessLogSettings"]


class AccessLogSettings(Table):
    """``[log.access]``: a file with one JSON line for each listing; without the table there is none."""

    live: ClassVar = ALL

    path: NamedFile = Field(
        description="The file that lines are appended to; SIGHUP opens it anew. A relative path is taken as that of "
        "the catalogue."
    )
    sample: Annotated[float, Field(ge=0, le=1)] = Field(
        default=1.0, description="The share of answered listings that get a line; refused ones always do."
    )
    properties: tuple[str, ...] = Field(
        default=(), description="The request properties whose values are in the lines; none: no property is."
    )

    @field_validator("properties")
    @classmethod
    def _no_secret(cls, keys: tuple[str, ...]) -> tuple[str, ...]:
        for key in keys:
            if is_secret_name(key):
                raise ValueError(f"{key!r} is the name of a secret, which is never logged")
        return keys
