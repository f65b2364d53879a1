"""Draws faults by a seed, plants each in a source, and says which of them no test finds: `make mutants`.

    python scripts/mutants.py --seed 1 --count 20 broker_core/names/topic_name.py --tests tests/names --tree FOLDER
    python scripts/mutants.py --seed 1 --count 200 broker_core plugins

A fault is one change of the syntax tree: another comparison, operator, connective or constant, a negated condition, two
arguments in each other's place, a statement that is gone, a function that returns nothing. The tests of a source are
its own test file and what `--tests` names; a folder stands for its sources that have a test file of their own. The
faults are planted in a copy of the tree, which is run with the `.venv` of the tree. With `--tree` it is that of another
checkout, such as the one before a change, with the sources that are named: the shares that are found can be compared.
"""

from __future__ import annotations

import argparse
import ast
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

__all__ = ["Fault", "drawn", "faults", "files_of", "main", "own_tests", "planted"]

_ROOT: Final = Path(__file__).parent.parent
#: Where the tests of the packages are.
_TESTS: Final = {
    "plugins/explorer/broker_core_explorer": "tests/explorer",
    "plugins/postgres/broker_core_postgres": "tests/postgres",
    "plugins/spark/broker_core_spark": "tests/spark",
    "broker_core": "tests",
    "scripts": "tests/scripts",
}
_OTHER: Final[dict[type[ast.AST], type[ast.AST]]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
_SIMPLE: Final = ast.Assign | ast.AugAssign | ast.Raise | ast.Expr
#: pytest's codes for a test that failed, for an interrupted run, and for a source that cannot even be imported.
_FOUND: Final = frozenset({1, 2, 4})


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that can be planted in a syntax tree: its line, what it is, and how."""

    line: int
    words: str
    plant: Callable[[], None]


def faults(tree: ast.Module) -> list[Fault]:
    """All faults that can be planted in a tree, in one order."""
    passive = {
        id(inner)
        for node in ast.walk(tree)
        for part in (getattr(node, "annotation", None), getattr(node, "returns", None))
        if isinstance(part, ast.AST)
        for inner in ast.walk(part)
    }
    return [
        Fault(getattr(node, "lineno", 0), words, plant)
        for node in ast.walk(tree)
        if id(node) not in passive
        for words, plant in (*_in_expression(node), *_in_block(node))
    ]


def _in_expression(node: Any) -> Iterator[tuple[str, Callable[[], None]]]:
    text = ast.unparse(node)[:70] if isinstance(node, ast.expr | ast.Return) else ""
    match node:
        case ast.Compare(ops=[operator, *_]) if type(operator) in _OTHER:
            yield f"{text}: {_other_name(operator)}", partial(node.ops.__setitem__, 0, _other(operator))
        case ast.BinOp(op=operator) | ast.BoolOp(op=operator) | ast.AugAssign(op=operator):
            if type(operator) in _OTHER:
                yield f"{text}: {_other_name(operator)}", partial(setattr, node, "op", _other(operator))
        case ast.Call(args=[first, second, *rest]) if not isinstance(first, ast.Starred):
            yield f"{text}: arguments swapped", partial(setattr, node, "args", [second, first, *rest])
        case ast.Constant(value=bool() as value):
            yield f"{not value} for {value}", partial(setattr, node, "value", not value)
        case ast.Constant(value=int() as value):
            yield f"{value + 1} for {value}", partial(setattr, node, "value", value + 1)
        case ast.Return(value=ast.expr() as value) if not (
            isinstance(value, ast.Constant) and value.value is None
        ):
            yield f"{text}: nothing returned", partial(setattr, node, "value", None)
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            negated = ast.UnaryOp(ast.Not(), test)
            yield f"{ast.unparse(test)[:70]}: negated", partial(setattr, node, "test", negated)


def _in_block(node: Any) -> Iterator[tuple[str, Callable[[], None]]]:
    if isinstance(node, ast.Module | ast.ClassDef):
        return
    for field in ("body", "orelse", "finalbody"):
        found = getattr(node, field, None)
        block: list[Any] = found if isinstance(found, list) else []
        for at, statement in enumerate(block):
            is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            if isinstance(statement, _SIMPLE) and not is_text:
                gone = partial(block.__setitem__, at, ast.Pass())
                yield f"line {statement.lineno} gone: {ast.unparse(statement)[:70]}", gone


def _other(operator: ast.AST) -> ast.AST:
    return _OTHER[type(operator)]()


def _other_name(operator: ast.AST) -> str:
    return f"{_OTHER[type(operator)].__name__} for {type(operator).__name__}"


def planted(text: str, number: int) -> str:
    """A source with one of its faults."""
    tree = ast.parse(text)
    faults(tree)[number].plant()
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def drawn(sources: Sequence[Path], tree: Path, count: int, random: Random) -> list[tuple[Path, int, Fault]]:
    """``count`` faults of these sources, each with its number there; a larger source has more of them."""
    every = [
        (source, number, fault)
        for source in sources
        for number, fault in enumerate(faults(ast.parse((tree / source).read_text(encoding="utf-8"))))
    ]
    return sorted(random.sample(every, min(count, len(every))), key=lambda each: (str(each[0]), each[1]))


def own_tests(source: Path, tree: Path) -> list[str]:
    """The test file of a source, if there is one."""
    package, folder = next(item for item in _TESTS.items() if source.is_relative_to(item[0]))
    name = source.parent.name if source.name == "__init__.py" else source.stem
    test = Path(folder) / source.parent.relative_to(package) / f"test_{name}.py"
    return [str(test)] if (tree / test).is_file() else []


def files_of(sources: Sequence[Path], tree: Path) -> list[Path]:
    """The sources, with the files that have a test file of their own in place of a folder."""
    found: list[Path] = []
    for source in sources:
        if (tree / source).is_dir():
            every = (path.relative_to(tree) for path in sorted((tree / source).rglob("*.py")))
            found += [file for file in every if own_tests(file, tree)]
        else:
            found.append(source)
    return found


def _copy(tree: Path, folder: Path) -> Path:
    """The files that git knows in ``tree``, with its environment."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=tree, capture_output=True, check=True).stdout
    for name in filter(None, listed.decode().split("\0")):
        if (tree / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(tree / name, folder / name)
    (folder / ".venv").symlink_to(tree / ".venv")
    return folder


def _is_found(copy: Path, tests: Sequence[str], seconds: float) -> bool:
    """Whether a test fails, or does not end."""
    path = os.pathsep.join(
        str(copy / folder) for folder in ("", "plugins/explorer", "plugins/postgres", "plugins/spark")
    )
    environment = os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [".venv/bin/python", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    try:
        code = subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, timeout=seconds, check=False
        ).returncode
    except subprocess.TimeoutExpired:
        return True
    if code not in {0, *_FOUND}:
        raise SystemExit(f"pytest ended with {code}: {' '.join(command)}")
    return code != 0


def main(arguments: Sequence[str] | None = None) -> None:
    """Plant the faults one after the other, print what becomes of each, and end with 1 if one survives."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "sources", nargs="+", type=Path, help="files and folders of the tree, by their paths in it"
    )
    parser.add_argument("--tree", type=Path, default=_ROOT)
    parser.add_argument("--tests", nargs="*", default=[], help="further tests, of all sources")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument(
        "--seconds", type=float, default=300.0, help="a run that takes longer has found the fault"
    )
    options = parser.parse_args(arguments)
    tree = options.tree.resolve()
    survivors = []
    with tempfile.TemporaryDirectory(prefix="broker-core-mutants-") as folder:
        copy = _copy(tree, Path(folder))
        chosen = drawn(files_of(options.sources, tree), tree, options.count, Random(options.seed))
        tests = {source: [*own_tests(source, tree), *options.tests] for source, _, _ in chosen}
        every = sorted(
            {each for wanted in tests.values() for each in wanted}
        )  # in one run, which starts once
        if not all(tests.values()) or _is_found(copy, every, options.seconds * len(tests)):
            without = ", ".join(str(source) for source, wanted in tests.items() if not wanted)
            raise SystemExit(
                f"no tests of {without}"
                if without
                else f"these tests do not pass without a fault: {' '.join(every)}"
            )
        for source, number, fault in chosen:
            text = (tree / source).read_text(encoding="utf-8")
            (copy / source).write_text(planted(text, number), encoding="utf-8")
            found = _is_found(copy, tests[source], options.seconds)
            (copy / source).write_text(text, encoding="utf-8")
            print(f"{'found   ' if found else 'SURVIVES'} {source}:{fault.line}: {fault.words}", flush=True)
            if not found:
                survivors.append(fault)
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} faults are found (seed {options.seed})")
    sys.exit(bool(survivors))


if __name__ == "__main__":
    main()
