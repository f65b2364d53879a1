"""The options that ``broker-core spark build`` and ``broker-core spark follow`` share."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

__all__ = [
    "ChangesOption",
    "ConfOption",
    "MasterOption",
    "NamespaceOption",
    "OutOption",
    "WhereOption",
]


OutOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--out",
        metavar="URI",
        help="Where generations are: a folder, file://, s3://, gs:// or az://; plugins.spark.store of the broker.",
        show_default=False,
    ),
]
NamespaceOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--namespace",
        metavar="NAMESPACE",
        help="tenant/namespace of local names in a file or table, and the one that a running server lists.",
        show_default=False,
    ),
]
ChangesOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--changes",
        metavar="COLUMN",
        help="A column of a table whose value grows with each change of a row. Iceberg and Delta need none.",
        show_default=False,
    ),
]
WhereOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--where",
        metavar="SQL",
        help="A condition for rows of a table: all others are left out, and counted.",
        show_default=False,
    ),
]
MasterOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="URL",
        help="Where Spark runs, unless a session is there (spark-submit): local[2], spark://, k8s://, yarn, sc://.",
        show_default="local[*]",
    ),
]
ConfOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--conf", metavar="KEY=VALUE", help="A setting of Spark; may be repeated.", show_default=False
    ),
]
