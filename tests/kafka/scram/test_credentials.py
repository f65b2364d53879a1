from __future__ import annotations

import pytest

from broker_core.kafka.scram.credentials import HASHES, ITERATIONS, decoy_of, derive_credential


@pytest.mark.parametrize("mechanism", HASHES)
def test_a_credential_has_its_password_and_no_other(mechanism: str) -> None:
    credential = derive_credential(mechanism, b"pencil", iterations=4096)
    assert credential.has_password(b"pencil")
    assert not credential.has_password(b"Pencil")
    assert derive_credential(mechanism, b"pencil", iterations=4096).salt != credential.salt


def test_a_credential_shows_no_secret() -> None:
    credential = derive_credential("SCRAM-SHA-256", b"pencil")
    assert repr(credential) == f"ScramCredential(mechanism='SCRAM-SHA-256', iterations={ITERATIONS})"


@pytest.mark.parametrize("mechanism", HASHES)
def test_a_decoy_looks_like_a_user_and_has_no_password(mechanism: str) -> None:
    real = derive_credential(mechanism, b"pencil")
    decoy = decoy_of(mechanism, "mallory", b"secret")
    for name in ("salt", "stored_key", "server_key"):
        assert len(getattr(decoy, name)) == len(getattr(real, name))
    assert decoy.iterations == real.iterations
    assert decoy.salt == decoy_of(mechanism, "mallory", b"secret").salt
    assert decoy.salt != decoy_of(mechanism, "trent", b"secret").salt
    assert decoy.salt != decoy_of(mechanism, "mallory", b"another").salt
    assert not decoy.has_password(b"")


def test_kafka_takes_the_rounds() -> None:
    assert 4096 <= ITERATIONS <= 16384
