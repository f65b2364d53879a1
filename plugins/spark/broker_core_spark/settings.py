"""The operator's table ``[plugins.spark]``."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from broker_core.quantities import PositiveDuration, Size

__all__ = ["SparkSettings"]


class SparkSettings(BaseModel):
    """What the plugin needs to serve. Which properties select is in the generation's manifest, not here.

    ``on_failure`` is the plugin's own default for a setting of the core: an answer that fails is left to the next
    lister, which is exact too.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    #: Where generations are: what ``broker-core spark build --out`` named (``file:///...``, ``s3://...``, a path).
    store: str = Field(min_length=1)
    #: Options of a bucket (``endpoint``, ``region`` ...). No secrets: these come from the environment.
    store_options: dict[str, str] = Field(default_factory=dict)
    #: How often the pointer to the current generation is looked at.
    refresh: PositiveDuration = 10.0
    #: The most topics of one namespace that may have changed since the generation; with more, its questions pass.
    overlay_limit: int = Field(default=10_000, ge=0, le=1_000_000)
    #: Bytes of answers that are kept because the generation's own is no longer right.
    answers: Size = 64 * 1024 * 1024
    #: How long the change log may take to say what is current; then the question passes.
    source_timeout: PositiveDuration = 1.0
    #: The catalogue never changes and has no change log: the generation is right for as long as it is served.
    static: bool = False
    #: Folder for the private copies that are mapped; the system's folder for temporary files by default.
    folder: Path | None = None
    on_failure: Literal["error", "next", "stale"] = "next"
    #: With ``on_failure = "stale"``: how old an answer may be where the current state cannot be known.
    max_stale: PositiveDuration = 60.0

    @property
    def longest_stale(self) -> float | None:
        """How old an answer may be in seconds, where the current state cannot be known; ``None``: never."""
        return self.max_stale if self.on_failure == "stale" else None
