"""The base of the models of tables: an unknown key is an error, and nothing changes once it is made."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

__all__ = ["Table"]


class Table(BaseModel):
    """One table of the settings file."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)
