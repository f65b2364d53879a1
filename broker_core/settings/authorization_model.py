"""``[authorization]``: the roles that may do everything, and the rules for all others."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Final, Literal, Self, TypeAlias

from pydantic import Field, field_validator, model_validator

from broker_core.settings.namespace_texts import namespace_patterns
from broker_core.settings.table import ALL, Table

__all__ = ["AuthorizationRule", "AuthorizationSettings", "RuleAction"]

#: The actions that a rule may allow.
RuleAction: TypeAlias = Literal["list", "lookup", "monitor", "admin"]
_Patterns: TypeAlias = Annotated[tuple[str, ...], Field(min_length=1)]
#: Characters of a pattern of topics.
_LONGEST: Final = 1000
_PARTITION: Final = re.compile(r"-partition-\d+$")


class AuthorizationRule(Table):
    """``[[authorization.rules]]``: these roles may do these actions in these namespaces, or may not.

    ``*`` stands for any text.
    """

    roles: _Patterns = Field(description="Roles, such as team-*.")
    namespaces: _Patterns = Field(description="Namespaces, such as acme/*; * is every namespace.")
    actions: tuple[Literal[RuleAction, "*"], ...] = Field(
        min_length=1,
        description="list, lookup, monitor and admin (which has monitor in it); * is each of them.",
    )
    effect: Literal["allow", "deny"] = Field(
        default="allow",
        description="deny: the roles may not, whatever other rules allow; super_roles are never denied.",
    )
    topics: _Patterns | None = Field(
        default=None,
        description="Topics by their own names without partition, such as orders-*; ? is one character. Without it, "
        "all. With it, monitor is an error, since it is not about topics, and not a part of * or admin.",
    )

    @field_validator("roles")
    @classmethod
    def _has_names(cls, roles: tuple[str, ...]) -> tuple[str, ...]:
        if "" in roles:
            raise ValueError("a role is empty, and no client has such a role")
        return roles

    _have_two_parts = field_validator("namespaces")(namespace_patterns)

    @field_validator("topics")
    @classmethod
    def _are_topics(cls, topics: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for topic in topics or ():
            if not topic:
                raise ValueError("a pattern of topics is empty, and no topic has such a name")
            if len(topic) > _LONGEST:
                raise ValueError(
                    f"a pattern of topics has {len(topic)} characters, and at most {_LONGEST} are allowed"
                )
            if "/" in topic:
                raise ValueError(
                    f"{topic!r} has a '/', and matches no topic: write its own name, without TENANT/NAMESPACE/"
                )
            if _PARTITION.search(topic):
                raise ValueError(
                    f"{topic!r} is a partition: a rule is about the whole topic, leave -partition-N out"
                )
        return topics

    @model_validator(mode="after")
    def _are_about_topics(self) -> Self:
        if self.topics is not None and "monitor" in self.actions:
            raise ValueError(
                "topics and the action monitor: it is about the server, write a rule without topics for it"
            )
        return self


class AuthorizationSettings(Table):
    """``[authorization]``: which role may do what in which namespace."""

    live: ClassVar = ALL

    mode: Literal["auto", "rules", "allow"] = Field(
        default="auto",
        description="rules: what neither super_roles nor a rule allows is denied; allow: everybody may do everything, "
        "which is an error with authentication; auto: rules if there is authentication, a super role or a rule, "
        "else allow.",
    )
    super_roles: tuple[str, ...] = Field(default=(), description="Roles that may do everything.")
    rules: tuple[AuthorizationRule, ...] = Field(
        default=(),
        description="What other roles may do; a request needs one rule that allows it, and none that denies it.",
    )

    @field_validator("super_roles")
    @classmethod
    def _are_roles(cls, roles: tuple[str, ...]) -> tuple[str, ...]:
        for role in roles:
            if not role or "*" in role:
                raise ValueError(f"{role!r} is not the name of one role: patterns belong to the rules")
        return roles
