"""docs/reference/settings.md has every setting, with the default that it has."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from broker_core.plugins.load.plugin_options import CommonOptions
from broker_core.settings import Settings, load_settings
from broker_core.settings.environment_layer import CONFIG_VARIABLE, variable_name
from broker_core.settings.setting_paths import dotted, known_keys, table_model
from tests.docs.pages import blocks, code_in, read, tables
from tests.support.files import file_with
from tests.support.one_test import in_one_test

PAGE = "reference/settings.md"


def documented() -> dict[str, dict[str, tuple[str, ...]]]:
    """Heading (``pulsar``) to key to its row."""
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for table in tables(PAGE):
        if table.columns == ("key", "type", "default", "meaning"):
            name = table.heading.strip("`[]")
            found[name] = {code_in(row[0])[0]: row for row in table.rows}
    return found


def table_models() -> dict[str, type[BaseModel]]:
    """Every table of a settings file with its model, and the keys that each plugin's table has."""
    models = {dotted(path): model for path, model in known_keys(Settings).items() if model is not None}
    return models | {"plugins.NAME": CommonOptions}


def keys_of(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """The settings of a table itself, without the tables in it."""
    return {key: field for key, field in model.model_fields.items() if table_model(model, key) is None}


def test_the_tables_are_all_there() -> None:
    assert set(documented()) == set(table_models())


@in_one_test("table", sorted(table_models()))
def test_the_keys_of_a_table_are_all_there(table: str) -> None:
    assert set(documented()[table]) == set(keys_of(table_models()[table]))


def settings_with_defaults() -> list[tuple[str, str, FieldInfo]]:
    return [
        (table, key, field)
        for table, model in sorted(table_models().items())
        for key, field in keys_of(model).items()
    ]


@in_one_test("table, key, field", settings_with_defaults())
def test_a_default_is_the_default(table: str, key: str, field: FieldInfo) -> None:
    _, kind, default, meaning = documented()[table][key]
    assert meaning.endswith((".", "`)."))
    assert kind
    if field.is_required():
        assert default == "required"
        return
    (text,) = code_in(default)
    written = tomllib.loads(f"value = {text}")["value"]
    model = table_models()[table]
    assert printed(model, key, written) == printed(model, key, field.default)


def printed(model: type[BaseModel], key: str, value: object) -> Any:
    """A value as the model understands and prints it."""
    urls: dict[str, object] = {
        "service_url": "pulsar://any",
        "endpoint": "http://any",
        "bootstrap_servers": ["any"],
    }
    fields = model.model_fields.items()
    required = {name: urls.get(name, "any") for name, field in fields if field.is_required()}
    return model.model_validate(required | {key: value}).model_dump(mode="json")[key]


def has_defaults(model: type[BaseModel]) -> bool:
    return not any(field.is_required() for field in model.model_fields.values())


def test_the_whole_file_has_every_setting_at_its_default(tmp_path: Any) -> None:
    (text,) = [block.text for block in blocks(PAGE) if block.file == "broker-core.toml"]
    file = file_with(tmp_path / "broker-core.toml", text)
    loaded = load_settings(file, environment={}).settings
    given = tomllib.loads(text)
    without_default = {name for name, model in table_models().items() if not has_defaults(model)}
    for name, model in table_models().items():
        if (("plugins" in name or "upstream" in name) and name != "plugins") or name in without_default:
            continue
        table: Any = given
        value: Any = loaded
        for part in name.split("."):
            table, value = table[part], getattr(value, part)
        expected = {key for key in model.model_fields if f"{name}.{key}" not in without_default}
        assert table.keys() == expected, name
        if name != "catalog":
            assert value.model_dump(include=set(keys_of(model))) == model().model_dump(
                include=set(keys_of(model))
            )


def test_choices_are_all_there() -> None:
    for table, key, field in settings_with_defaults():
        choices = re.search(r"Literal\[(.*?)\]", str(field.annotation))
        if choices:
            names = {json.dumps(name) for name in re.findall(r"'([^']+)'", choices[1])}
            assert set(code_in(documented()[table][key][1])) == names, f"{table}.{key}"


def test_the_variables_are_named_as_documented() -> None:
    text = read(PAGE)
    for path in (("pulsar", "listen"), ("plugins", "enabled"), ("plugins", "tenant-filter", "deadline")):
        assert f"`{variable_name(path)}`" in text
    assert f"`{CONFIG_VARIABLE}`" in text
