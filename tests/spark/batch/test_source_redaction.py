"""No secret of an address is shown, and of an ambiguous address only the scheme."""

from __future__ import annotations

import pytest

from broker_core_spark.batch.source_redaction import redacted_message, redacted_source

AT = "@"  # an address with a password is not written out, not even here


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        (f"postgresql://u:p{AT}host/db", "postgresql://host/db"),
        (f"postgresql://u{AT}h1:5432,h2:5433/db?target_session_attrs=any", "postgresql://h1:5432,h2:5433/db"),
        ("postgresql://host/db", "postgresql://host/db"),
        ("postgresql://[::1]:5432/db", "postgresql://[::1]:5432/db"),
        ("postgresql://host/db?user=u&password=secret", "postgresql://host/db"),
        ("postgresql:///db?host=/run&password=secret", "postgresql:///db"),
        ("postgres://", "postgres://"),
        (f"postgresql://u:secret{AT}secret{AT}host/db", "postgresql://..."),
        (f"postgresql://u:secret/secret{AT}host/db", "postgresql://..."),
        (f"postgresql://u:123/secret{AT}host/db", "postgresql://..."),
        (f"postgresql://u:123?secret{AT}host/db", "postgresql://..."),
        (f"postgresql://u:123#secret{AT}host/db", "postgresql://..."),
        ("postgresql://u:secret/db", "postgresql://..."),
        ("postgresql://host/db/secret", "postgresql://..."),
        (f"POSTGRESQL://u:secret{AT}host/db", "POSTGRESQL://host/db"),
        (f"postgresql:/u:secret{AT}host/db", "postgresql:..."),
        (f"jdbc:postgresql://u:secret{AT}host/db", "jdbc:..."),
        (f"!!:secret://u{AT}host", "..."),
        ("host=h password = secret", "..."),
        (f"s3a://key:secret{AT}bucket/a.parquet", "s3a://bucket/a.parquet"),
        (f"s3a://key:sec/ret{AT}bucket/a.parquet", "s3a://..."),
        ("s3a://bucket/folder/a.parquet?signature=secret", "s3a://bucket/folder/a.parquet"),
        (f"abfss://names{AT}account.example/a.parquet", f"abfss://names{AT}account.example/a.parquet"),
        (f"abfss://names:secret{AT}account.example/a", "abfss://account.example/a"),
        (f"file:///folder/a{AT}b.parquet?x=y", f"file:///folder/a{AT}b.parquet"),
        (f"/folder/a{AT}b:c.sqlite", f"/folder/a{AT}b:c.sqlite"),
        ("table:catalog.topics", "table:catalog.topics"),
    ],
    ids=range(27),
)
def test_only_what_can_be_no_secret_is_shown(source: str, shown: str) -> None:
    assert redacted_source(source) == shown
    assert "secret" not in redacted_source(source)


def test_what_others_say_of_an_address_is_cut_down_where_it_has_secrets() -> None:
    said = "[PATH_NOT_FOUND] Path does not exist: s3a://..."
    assert redacted_message("s3a://bucket/a.parquet", said) == said
    hidden = f"s3a://key:secret{AT}bucket/a.parquet"
    assert redacted_message(hidden, f"[PATH_NOT_FOUND] Path does not exist: {hidden}") == "[PATH_NOT_FOUND]"
    assert hidden not in redacted_message(hidden, f"no such path: {hidden}")
