"""Errors of generations and of stores."""

from __future__ import annotations

from broker_core.errors import BrokerCoreError

__all__ = ["DamagedFile", "InvalidGeneration", "NoSuchGeneration", "OtherFormatVersion", "StoreFailed"]


class InvalidGeneration(BrokerCoreError):
    """A file of a generation is damaged, foreign, or of an unknown version: ``file`` is its name."""

    def __init__(self, file: str, reason: str) -> None:
        super().__init__(f"{file}: {reason}")
        self.file = file
        self.reason = reason

    def __reduce__(self) -> tuple[type[InvalidGeneration], tuple[str, str]]:
        """Make the error picklable: Spark's workers send theirs to the driver."""
        return type(self), (self.file, self.reason)


class OtherFormatVersion(InvalidGeneration):
    """A generation of a version of the format that is not known here: it is built again."""


class NoSuchGeneration(BrokerCoreError):
    """The store has no generation of that id, or several ids begin alike."""


class StoreFailed(BrokerCoreError):
    """The store cannot be read or written, or is no place for generations. The message says why."""


class DamagedFile(StoreFailed):
    """A stored file is too short, too long, no regular file, or of other bytes than were written."""
