"""The plugin's settings: accepted values, and the texts of refused ones."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from broker_core.plugins.load.plugin_options import UnusableTable, read_table
from broker_core_postgres.settings import PostgresSettings
from tests.support.narrowed import of_type


def settings(**table: Any) -> PostgresSettings:
    return of_type(read_table(table, PostgresSettings).settings, PostgresSettings)


def test_the_defaults_need_no_table() -> None:
    assert settings() == PostgresSettings()


def test_every_option_says_what_it_is() -> None:
    model: type[BaseModel] = PostgresSettings
    assert [name for name, field in model.model_fields.items() if not field.description] == []


def test_durations_sizes_and_lists_as_operators_write_them() -> None:
    read = settings(statement_timeout="1500ms", hash_cache="1MB", property_keys="region, team,region")
    assert (read.statement_timeout, read.hash_cache) == (1.5, 1024 * 1024)
    assert read.property_keys == ("region", "team")


def test_the_deadline_is_the_core_s_own_option() -> None:
    assert read_table({}, PostgresSettings).deadline == 10.0
    assert read_table({"deadline": "2s"}, PostgresSettings).deadline == 2.0


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"dns": "postgresql://"}, "dns: unknown key, did you mean 'dsn'?"),
        ({"pool_min": 9}, "pool_min is 9, more than pool_max, which is 8"),
        ({"only_with_properties": True}, "only_with_properties needs property_keys"),
        ({"password_file": "a", "password_env": "B"}, "which one counts?"),
        ({"property_keys": [""]}, "a property key is not empty"),
        ({"trigrams": "maybe"}, "trigrams: "),
        ({"pool_max": 0}, "pool_max: "),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_what_is_refused(table: dict[str, Any], said: str) -> None:
    with pytest.raises(UnusableTable) as refused:
        settings(**table)
    assert said in str(refused.value)
