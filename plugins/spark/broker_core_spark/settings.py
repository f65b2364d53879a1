"""The operator's table ``[plugins.spark]``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from broker_core.quantities import Duration, PositiveDuration, Size

__all__ = [
    "KEEP_LEARNED",
    "MAX_COVERAGE_LOSS",
    "MAX_QUESTION_LOSS",
    "MAX_TOPIC_LOSS",
    "MIN_QUESTIONS",
    "SparkSettings",
]

#: Defaults of builds, with and without settings.
KEEP_LEARNED: Final = 30 * 86400.0
MIN_QUESTIONS: Final = 1
MAX_QUESTION_LOSS: Final = 0.5
MAX_TOPIC_LOSS: Final = 0.5
MAX_COVERAGE_LOSS: Final = 0.2

_Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]


def _as_text(value: Any) -> Any:
    """An option of a bucket as its client takes it: ``allow_http = true`` as ``"true"``."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else value


class SparkSettings(BaseModel):
    """Settings of serving, and of builds with ``--config``. The properties that select topics are in the manifest.

    ``on_failure`` is a setting of the core with a default of this plugin: the next lister answers a question whose
    answer fails here, and is exact too.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    #: Settings that change without a restart.
    live: ClassVar = frozenset({"refresh", "max_age", "max_stale", "deadline"})

    #: Store of the generations, as in ``broker-core spark build --out``: ``file:///...``, ``s3://...``, a path.
    store: str = Field(min_length=1)
    #: Options of a bucket (``endpoint``, ``region`` ...). Secrets come from the environment.
    store_options: dict[str, Annotated[str, BeforeValidator(_as_text)]] = Field(default_factory=dict)
    #: Time between looks at the pointer to the current generation.
    refresh: PositiveDuration = 10.0
    #: Topics of one namespace that may have changed since the generation. With more, its questions pass.
    overlay_limit: int = Field(default=10_000, ge=0, le=1_000_000)
    #: Bytes of answers that replace outdated answers of the generation.
    answers: Size = 64 * 1024 * 1024
    #: Time that the change log has to give the current version. After it, the question passes.
    source_timeout: PositiveDuration = 1.0
    #: Declares a catalogue that never changes and has no change log: its generation stays right.
    static: bool = False
    #: Time after its publication for which a generation may be served that no change log brings up to date.
    max_age: PositiveDuration | None = None
    #: Folder of the private copies that are mapped. By default the system's folder for temporary files.
    folder: Path | None = None
    on_failure: Literal["error", "next", "stale"] = "next"
    #: Age that a stale answer may have with ``on_failure = "stale"``.
    max_stale: PositiveDuration = 60.0

    #: Source of questions that every build has, besides those of ``--patterns``.
    always: str | None = Field(default=None, min_length=1)
    #: Time for which a learned question is built after it was asked last. 0: nothing is kept of the build before.
    keep_learned: Duration = KEEP_LEARNED
    #: Questions that a generation has at least. Otherwise it is not published.
    min_questions: int = Field(default=MIN_QUESTIONS, ge=0)
    #: Share of its questions that a generation may lose against the best of the day. With more it is not published.
    max_question_loss: _Share = MAX_QUESTION_LOSS
    #: Share of the topics in the namespaces of its questions that it may lose likewise.
    max_topic_loss: _Share = MAX_TOPIC_LOSS
    #: Points that it may lose of the share of asked questions that it covers, likewise.
    max_coverage_loss: _Share = MAX_COVERAGE_LOSS

    @property
    def serves_as_built(self) -> bool:
        """Whether a generation may be served that no change log brings up to date."""
        return self.static or self.max_age is not None
