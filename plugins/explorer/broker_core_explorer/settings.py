"""The settings ``[plugins.explorer]``."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["ExplorerSettings"]


class ExplorerSettings(BaseModel):
    """``[plugins.explorer]``: the rights of the page."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    writes: bool = Field(
        default=False,
        description="Whether pages of the server change and delete topics, with the rights of the signed-in user.",
    )
