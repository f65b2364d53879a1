"""The keys of tokens: a secret, a public key or a set of keys, each bound to the algorithms of its kind."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt import PyJWK
from jwt.algorithms import get_default_algorithms
from jwt.exceptions import PyJWTError

from broker_core.access.authentication.tokens.key_kinds import Key, algorithms_of, kind_of, usable_key
from broker_core.settings import TokenSettings

__all__ = ["MOST_TRIED", "TokenKeys"]

#: The most keys of a set that are tried for a token that names none: each takes some 50 µs, for any client that
#: connects.
MOST_TRIED: Final = 8


@dataclass(frozen=True, slots=True)
class _BoundKey:
    """A key with the algorithms that it may verify, and its id in a set."""

    key: Key = field(repr=False)
    algorithms: frozenset[str]
    key_id: str | None = None


class TokenKeys:
    """The keys in force. They are read once: :meth:`read` them again for new ones."""

    def __init__(self, keys: Collection[_BoundKey], algorithms: Collection[str], *, is_set: bool) -> None:
        self._keys = tuple(keys)
        self._algorithms = frozenset(algorithms)
        self._is_set = is_set
        self._by_id = {key.key_id: key for key in keys if key.key_id is not None}
        self._without_id = tuple(key for key in keys if key.key_id is None)

    @classmethod
    def read(cls, settings: TokenSettings) -> TokenKeys:
        """The keys of the settings. Raises :exc:`OSError`, or :exc:`ValueError` in words that show no key."""
        source = settings.jwks or settings.key
        if source is None:
            raise ValueError("it is not set")
        data = source.read()
        try:
            if not data.strip():
                raise ValueError("it is empty")
            return cls._of(data, settings)
        except ValueError as error:
            place = "" if source.kind == "data" else f"{source.path or source}: "
            raise ValueError(f"{place}{error}") from None

    @classmethod
    def _of(cls, data: bytes, settings: TokenSettings) -> TokenKeys:
        allowed = settings.algorithms
        if settings.jwks is not None:
            return cls(_set_of(data, allowed), allowed, is_set=True)
        key = usable_key(data, allowed)
        return cls([_BoundKey(key, frozenset(allowed))], allowed, is_set=False)

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of each key, in words."""
        return tuple(kind_of(key.key) for key in self._keys)

    @property
    def crowded(self) -> tuple[str, ...]:
        """The algorithms with more keys than are tried for a token that names none."""
        counts = Counter(name for key in self._keys for name in key.algorithms)
        return tuple(sorted(name for name, number in counts.items() if number > MOST_TRIED))

    def problem(self, algorithm: str, key_id: str | None, signed: bytes, signature: bytes) -> str | None:
        """The reason why no key verifies a signature of ``signed``, without parts of the token; ``None`` if one does.

        Of a set, the key with the id that the token names; otherwise each key without an id. For a token without an id
        each key is tried, at most :data:`MOST_TRIED` of them.
        """
        if algorithm not in self._algorithms:
            shown = f"by {algorithm}" if algorithm in _ALGORITHMS else "by an unknown algorithm"
            return f"it is signed {shown}, which is not one of authentication.token.algorithms"
        keys, which = self._chosen(key_id)
        if not keys:
            return f"it names a key ('kid') that {which} does not have"
        fit = [key for key in keys if algorithm in key.algorithms]
        if not fit:
            return (
                f"{which} has no key for {algorithm}" if len(keys) > 1 else f"{which} is not for {algorithm}"
            )
        if len(fit) > MOST_TRIED:
            return f"it names no key ('kid'), and {which} has more than {MOST_TRIED} keys for {algorithm}"
        implementation: Any = _ALGORITHMS[algorithm]
        if any(implementation.verify(signed, key.key, signature) is True for key in fit):
            return None
        return f"it is not signed by {which}" if len(keys) == 1 else f"no key of {which} has signed it"

    def _chosen(self, key_id: str | None) -> tuple[Sequence[_BoundKey], str]:
        """The keys that may have signed a token, and their name in a sentence."""
        if not self._is_set:
            return self._keys, "the key of this server"
        if key_id is not None and key_id in self._by_id:
            return (self._by_id[key_id],), "the key of the set that it names"
        keys = self._keys if key_id is None else self._without_id
        return keys, "the only key of the set" if len(self._keys) == 1 and keys else "the set"


_ALGORITHMS: Final[Mapping[str, Any]] = get_default_algorithms()


def _set_of(data: bytes, algorithms: Collection[str]) -> list[_BoundKey]:
    """The keys of a JSON Web Key Set that can verify one of the algorithms; others are left out."""
    try:
        members = json.loads(data)["keys"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ValueError("it is no JSON Web Key Set: an object with a list of 'keys'") from None
    if not isinstance(members, list):
        raise ValueError("it is no JSON Web Key Set: 'keys' is no list")  # noqa: TRY004 - as for all that is wrong
    found: list[_BoundKey] = []
    for member in members:
        key = _member(member, algorithms) if isinstance(member, dict) else None
        if key is None:
            continue
        if key.key_id is not None and any(key.key_id == other.key_id for other in found):
            raise ValueError(f"two keys of the set have the id {key.key_id!r}")
        found.append(key)
    if not found:
        raise ValueError(f"the set has no key for {', '.join(algorithms)}")
    return found


def _member(member: Mapping[str, Any], algorithms: Collection[str]) -> _BoundKey | None:
    """A key of a set, ``None`` for a key of another use."""
    if "d" in member:
        raise ValueError("a key of the set is a private key: the server has public keys")
    use, operations, key_id = member.get("use", "sig"), member.get("key_ops", ["verify"]), member.get("kid")
    if use != "sig" or not isinstance(operations, list) or "verify" not in operations:
        return None
    own = member.get("alg")
    if own is not None and (not isinstance(own, str) or own not in algorithms):
        return None
    try:
        key: Any = PyJWK(dict(member)).key
    except PyJWTError:
        return None  # of a kind that is not known here
    if not isinstance(key, bytes | RSAPublicKey | EllipticCurvePublicKey | Ed25519PublicKey):
        return None
    possible = frozenset(algorithms_of(key)) & frozenset(algorithms)
    if own is not None:
        possible &= {own}
    if not possible:
        return None
    if key_id is not None and not isinstance(key_id, str):
        raise ValueError("the id ('kid') of a key of the set is no text")
    return _BoundKey(key, possible, key_id)
