"""``[authorization]``: the roles that may do everything, and the rules for all others."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, field_validator

from broker_core.settings.table import Table

__all__ = ["AuthorizationRule", "AuthorizationSettings"]

_Patterns: TypeAlias = Annotated[tuple[str, ...], Field(min_length=1)]


class AuthorizationRule(Table):
    """``[[authorization.rules]]``: these roles may do these actions in these namespaces. ``*`` stands for any text."""

    roles: _Patterns = Field(description="Roles, such as team-*.")
    namespaces: _Patterns = Field(description="Namespaces, such as acme/*; * is every namespace.")
    actions: tuple[Literal["list", "lookup", "monitor", "admin", "*"], ...] = Field(
        min_length=1,
        description="list, lookup, monitor and admin (which has monitor in it); * is each of them.",
    )

    @field_validator("roles")
    @classmethod
    def _has_names(cls, roles: tuple[str, ...]) -> tuple[str, ...]:
        if "" in roles:
            raise ValueError("a role is empty, and nobody has such a role")
        return roles

    @field_validator("namespaces")
    @classmethod
    def _has_two_parts(cls, namespaces: tuple[str, ...]) -> tuple[str, ...]:
        for namespace in namespaces:
            if namespace != "*" and (namespace.count("/") != 1 or not all(namespace.split("/"))):
                raise ValueError(f"{namespace!r} is not TENANT/NAMESPACE, such as 'acme/*', nor '*' for all")
        return namespaces


class AuthorizationSettings(Table):
    """``[authorization]``: which role may do what in which namespace."""

    mode: Literal["auto", "rules", "allow"] = Field(
        default="auto",
        description="rules: what neither super_roles nor a rule allows is denied; allow: everybody may do everything, "
        "which is an error with authentication; auto: rules where there is authentication, a super role or a rule, "
        "else allow.",
    )
    super_roles: tuple[str, ...] = Field(default=(), description="Roles that may do everything.")
    rules: tuple[AuthorizationRule, ...] = Field(
        default=(), description="What other roles may do; a request needs one rule that allows it."
    )

    @field_validator("super_roles")
    @classmethod
    def _are_roles(cls, roles: tuple[str, ...]) -> tuple[str, ...]:
        for role in roles:
            if not role or "*" in role:
                raise ValueError(f"{role!r} is not the name of one role: patterns belong to the rules")
        return roles
