"""A plugin's own table of the settings: the keys that every plugin has, and the keys of the plugin's own model."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from fnmatch import translate
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, ValidationError

from broker_core.names import NamespaceName
from broker_core.quantities import PositiveDuration

__all__ = ["CommonOptions", "PluginOptions", "UnusableTable", "live_keys", "read_table"]

M = TypeVar("M", bound=BaseModel)

_NAMESPACES: Final = re.compile(r"[-=:.\w*?/]+", re.ASCII)
#: Keys that cannot be live: a server reads them only at its start.
_NEVER_LIVE: Final = frozenset({"namespaces", "on_failure", "property_keys"})


class UnusableTable(ValueError):
    """A plugin's table has an unknown key or a wrong value; the message names the key.

    ``missing`` are the keys that must be set, if nothing else is wrong.
    """

    def __init__(self, message: str, *, missing: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.missing = missing


def _patterns(value: object) -> object:
    """Namespaces as a list, or separated by commas as in a variable of the environment."""
    patterns = [part.strip() for part in value.split(",")] if isinstance(value, str) else value
    if isinstance(patterns, list | tuple):
        if not patterns:
            raise ValueError(
                "names no namespace, so that the plugin would never be asked: leave it out of plugins.enabled"
            )
        for pattern in patterns:
            if not isinstance(pattern, str) or not _NAMESPACES.fullmatch(pattern):
                raise ValueError(
                    f"{pattern!r} is no namespace, nor a pattern of namespaces such as 'tenant/*'"
                )
            if "/" not in pattern and "*" not in pattern:
                raise ValueError(f"{pattern!r} matches no namespace: write '{pattern}/*' for all of a tenant")
    return patterns


class CommonOptions(BaseModel):
    """The keys that every plugin's table ``[plugins.NAME]`` has."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    #: The time that one call of a hook may take; waiting for permits in ``request.reserve()`` does not count.
    deadline: PositiveDuration = 5.0
    #: The namespaces that the plugin is asked about, with ``*`` and ``?``.
    namespaces: Annotated[tuple[str, ...], BeforeValidator(_patterns)] = ("*",)
    #: After a failure: ``error`` refuses the request, ``next`` asks the next plugin, ``stale`` takes the plugin's last
    #: answer to the same question. A filter must not fail open.
    on_failure: Literal["error", "next", "stale"] = "error"
    #: The greatest age of that last answer; without one, ``stale`` refuses the request.
    max_stale: PositiveDuration = 60.0
    #: The names that are checked against the pattern if the plugin claims to have filtered.
    verify_filtered: Literal["always", "sample", "never"] = "always"


class PluginOptions(CommonOptions):
    """The options of one plugin: the operator's, else the plugin's own, else the defaults.

    ``deadline`` and ``max_stale`` are in seconds. ``settings`` is the instance of the plugin's own model, ``None`` if
    it has none.
    """

    settings: BaseModel | None = None

    def covers(self, namespace: NamespaceName) -> bool:
        """Whether the plugin is asked about this namespace."""
        name = str(namespace)
        return any(pattern == "*" or re.match(translate(pattern), name) for pattern in self.namespaces)


def read_table(table: Mapping[str, object], model: type[BaseModel] | None) -> PluginOptions:
    """The options of a plugin from its table and its model. Raises :exc:`UnusableTable`, one line."""
    common = CommonOptions.model_fields
    own = _keys(model) if model is not None else frozenset()
    if model is None or model.model_config.get("extra") != "allow":
        for key in table:
            if key not in common and key not in own:
                raise UnusableTable(f"{key}: unknown key{_nearest(key, [*common, *sorted(own)])}")
    given = _checked(CommonOptions, {key: value for key, value in table.items() if key in common})
    settings: BaseModel | None = None
    values = {key: getattr(given, key) for key in given.model_fields_set}
    if model is not None:
        # A key of the core that the model has too gets the core's value: "2s" is 2.0.
        mine = {key: value for key, value in table.items() if key not in common}
        settings = _checked(
            model, mine | {key: value for key, value in values.items() if key in own}, secret=True
        )
        proposed = {
            key: getattr(settings, key) for key in common if key in model.model_fields and key not in values
        }
        proposal = _checked(
            CommonOptions, {key: value for key, value in proposed.items() if value is not None}
        )
        values |= {key: getattr(proposal, key) for key in proposal.model_fields_set}
    return PluginOptions.model_construct(**values, settings=settings)


def live_keys(model: type[BaseModel] | None) -> frozenset[str]:
    """The keys of a plugin's table that are live, by its model. Raises :exc:`ValueError`, one line."""
    keys = getattr(model, "live", None)
    if model is None or not isinstance(keys, set | frozenset) or not keys:
        raise ValueError("the model of its settings names no live keys (live: ClassVar = frozenset({...}))")
    for key in keys:
        if key in _NEVER_LIVE:
            raise ValueError(f"{key!r}, which the model of its settings calls live, needs a restart")
        if key not in _keys(model) | CommonOptions.model_fields.keys():
            raise ValueError(f"{key!r}, which the model of its settings calls live, is no key of it")
    return frozenset(keys)


def _checked(model: type[M], values: Mapping[str, Any], *, secret: bool = False) -> M:
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        found = error.errors(include_url=False)
        missing = tuple(".".join(map(str, each["loc"])) for each in found if each["type"] == "missing")
        raise UnusableTable(
            "; ".join(_findings(error, secret=secret)), missing=missing if len(missing) == len(found) else ()
        ) from None


def _findings(error: ValidationError, *, secret: bool) -> Iterable[str]:
    for finding in error.errors(include_url=False):
        reason = finding.get("ctx", {}).get("error")
        problem = (
            str(reason) if isinstance(reason, Exception) else finding["msg"][:1].lower() + finding["msg"][1:]
        ).replace("a valid tuple", "a list")  # TOML has only lists
        # A plugin's own value may be a password, so it is not shown.
        shown = "" if secret or finding["type"] in {"missing", "value_error"} else f"{finding['input']!r}: "
        where = ".".join(str(part) for part in finding["loc"])
        yield f"{where}: {shown}{problem}" if where else f"{shown}{problem}"


def _keys(model: type[BaseModel]) -> frozenset[str]:
    """The keys for the fields of a model: their names, or their aliases."""
    keys: set[str] = set()
    by_name = model.model_config.get("populate_by_name") or model.model_config.get("validate_by_name")
    for name, field in model.model_fields.items():
        alias = field.validation_alias or field.alias
        if alias is None or by_name:
            keys.add(name)
        if isinstance(alias, str):
            keys.add(alias)
        elif isinstance(alias, AliasChoices):
            keys.update(choice for choice in alias.choices if isinstance(choice, str))
    return frozenset(keys)


def _nearest(key: str, known: list[str]) -> str:
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.0)
    return f", did you mean {near[0]!r}?" if near else ""
