"""The page of the explorer by TypeScript, which reads the types of its comments; and its vendored files, by npm's."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from broker_core_explorer import plugin
from tests.interop.foreign import node_modules
from tests.interop.maven import PeerUnavailable

pytestmark = pytest.mark.interop

STATIC: Final = Path(plugin.__file__).parent / "static"
PLUGIN: Final = STATIC.parents[1]
PACKAGE: Final = Path(__file__).parent / "explorer_types"
#: All of `strict` but that each parameter of a callback needs a type.
OPTIONS: Final = {
    "allowJs": True,
    "checkJs": True,
    "lib": ["es2024", "dom", "dom.iterable"],
    "module": "es2022",
    "moduleResolution": "bundler",
    "noEmit": True,
    "noImplicitAny": False,
    "skipLibCheck": True,
    "strict": True,
    "target": "es2023",
    "types": [],
    "useUnknownInCatchVariables": False,
}


#: Calls of one module by another, and what TypeScript says of them.
IMPORTS: Final = (
    "import { linkIn, ofNamespace, useGet, usePage } from './page.js';"
    "import { commandOf, queryOf } from './question.js';"
)
WRONG: Final = {
    "usePage().nothing()": "Property 'nothing' does not exist on type 'Page'",
    "ofNamespace(['public', 'default'])": "is not assignable to parameter of type 'string'",
    "linkIn('topics', 'public/default', 'q=a')": """Argument of type '"q=a"' is not assignable""",
    "useGet('me', {}, { often: 5 })": "'often' does not exist in type 'Asking'",
    "queryOf({ namespace: 'public/default' })": "missing the following properties from type 'Question'",
    "commandOf(usePage(), 'PUT', 'me', {})": "missing the following properties from type 'Api'",
}


@pytest.fixture(scope="module")
def modules() -> Path:
    try:
        return node_modules(PACKAGE) / "node_modules"
    except PeerUnavailable as error:
        pytest.skip(str(error))


def test_what_is_vendored_is_what_npm_has_but_for_two_lines(modules: Path) -> None:
    for name, source in {
        "preact.js": "preact/dist/preact.mjs",
        "hooks.js": "preact/hooks/dist/hooks.mjs",
        "htm.js": "htm/dist/htm.mjs",
    }.items():
        theirs = (modules / source).read_text(encoding="utf-8").replace('from"preact"', 'from"./preact.js"')
        kept = [line for line in theirs.splitlines() if not line.startswith("//# sourceMappingURL=")]
        assert (STATIC / "vendor" / name).read_text(encoding="utf-8").splitlines() == kept, name
    for package in ("preact", "htm"):
        license_ = (STATIC / "vendor" / f"LICENSE-{package}.txt").read_bytes()
        assert license_ == (modules / package / "LICENSE").read_bytes()


def test_the_types_of_the_page(modules: Path, tmp_path: Path) -> None:
    page = tmp_path / STATIC.relative_to(PLUGIN)
    shutil.copytree(STATIC, page)
    shutil.copy(PLUGIN / "types.d.ts", tmp_path)
    # TypeScript looks for the types of a module beside it.
    types = modules / "preact" / "src"
    for source, name in {
        types / "index.d.ts": "preact.d.ts",
        types / "jsx.d.ts": "jsx.d.ts",
        types / "dom.d.ts": "dom.d.ts",
        modules / "preact" / "hooks" / "src" / "index.d.ts": "hooks.d.ts",
        modules / "htm" / "dist" / "htm.d.ts": "htm.d.ts",
    }.items():
        text = source.read_text(encoding="utf-8")
        for whole in ("'../../src/index'", "'./index'"):
            text = text.replace(whole, "'./preact'")
        (page / "vendor" / name).write_text(text, encoding="utf-8")
    modules_of_page = [f"{page}/*.js", f"{page}/screens/*.js"]

    def found(**more: bool) -> list[str]:
        config = {"compilerOptions": OPTIONS | more, "include": ["types.d.ts", *modules_of_page]}
        (tmp_path / "tsconfig.json").write_text(json.dumps(config), encoding="utf-8")
        check = ["node", str(modules / "typescript" / "lib" / "tsc.js"), "-p", str(tmp_path)]
        return subprocess.run(check, capture_output=True, text=True, check=False).stdout.splitlines()

    assert found() == []
    # What modules call of each other has types; components get what they are given by markup, which has none.
    without = set()
    for name, line in re.findall(
        r"static/(\S+\.js)\((\d+),\d+\): error TS70", "\n".join(found(noImplicitAny=True))
    ):
        text = (page / name).read_text(encoding="utf-8").splitlines()[int(line) - 1]
        without.update(re.findall(r"^export (?:async )?(?:function|const) ([a-z]\w+)", text))
    assert without == set()
    # The check itself is alive: wrong calls are found.
    (page / "wrong.js").write_text("\n".join([IMPORTS, *WRONG]), encoding="utf-8")
    said = found()
    assert len(said) == len(WRONG)
    for line, says in zip(said, WRONG.values(), strict=True):
        assert says in line
