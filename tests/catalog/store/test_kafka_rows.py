from __future__ import annotations

from broker_core.catalog.store.kafka_administration import ScramRow


def test_no_text_of_a_credential_shows_its_secrets() -> None:
    row = ScramRow("app", "SCRAM-SHA-256", 4096, b"pepper", b"stored", b"server")
    for text in (repr(row), str(row), f"{row}", repr([row]), f"{row!r}"):
        assert "app" in text
        for secret in ("pepper", "stored", "server"):
            assert secret not in text
