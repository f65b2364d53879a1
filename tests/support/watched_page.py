"""A page in a browser, with all that goes wrong in it: errors, reports of its policy, requests to other hosts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from tests.support.eventually import eventually_sync

__all__ = ["PATIENCE", "WatchedPage"]

#: Milliseconds until something must be there, on a machine with other work.
PATIENCE: Final = 60_000
#: What Chromium says in its console of each answer that is an error: the page shows these itself.
_ANSWERS: Final = re.compile(
    r"Failed to load resource: (?:the server responded|net::ERR_(?:CONNECTION|EMPTY|INCOMPLETE))"
)
#: Whether an expression holds within a second; waits for frames would have the browser draw sixty a second.
_HELD: Final = """new Promise((done) => {
  const holds = () => %s;
  const end = performance.now() + 1000;
  const look = () => (holds() ? done(true) : performance.now() > end ? done(false) : setTimeout(look, 15));
  look();
})"""
#: Findings of axe-core, a line for each. Contrast takes nine tenths of its time, so it is looked at once for each look
#: that there is: colours, backgrounds and letters of an element and of all around it.
_AXE: Final = """async (coloursAlone) => {
  const SHOWN = ['color', 'backgroundColor', 'backgroundImage', 'opacity', 'filter', 'fontSize', 'fontWeight',
    'textShadow', 'position'];
  const looks = new Map([[null, '']]);
  const look = (one) => {
    if (!looks.has(one)) {
      const style = getComputedStyle(one);
      looks.set(one, [look(one.parentElement), ...SHOWN.map((name) => style[name])].join());
    }
    return looks.get(one);
  };
  const letters = (one) => [...one.childNodes].reduce((sum, each) => sum + (each.nodeType === 3 && each.length), 0);
  const texts = [...document.body.querySelectorAll('*')].filter((one) => one.checkVisibility() && (
    letters(one) || one.matches('input, select, textarea')));
  texts.sort((one, other) => letters(one) - letters(other));  // the longest is taken: a single letter is left undecided
  const each = [...new Map(texts.map((one) => [look(one), one])).values()];
  const options = { resultTypes: ['violations'], preload: false };
  const rules = { 'color-contrast': { enabled: false }, 'target-size': { enabled: true } };
  const runs = coloursAlone ? [] : [[document, { ...options, rules }]];
  runs.push([each, { ...options, runOnly: ['color-contrast'] }]);
  const found = [];
  for (const [where, how] of runs) found.push(...(await axe.run(where, how)).violations);
  return found.map(({ id, help, nodes }) =>
    `${id}: ${help}: ${nodes.map((node) => node.html.slice(0, 150)).join(' | ')}`);
}"""


class WatchedPage:
    """The page at ``root`` of a server, in a context of a browser (Playwright's).

    ``wrong`` has a line for each error of a script, report of the content security policy, and request to another host.
    """

    def __init__(self, context: Any, root: str) -> None:
        self.context = context
        self.root = root
        self.wrong: list[str] = []
        context.set_default_timeout(PATIENCE)
        context.add_init_script(
            "addEventListener('securitypolicyviolation', (event) =>"
            " console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`))"
        )
        self.page = context.new_page()
        self.page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        self.page.on("console", self._said)
        self.page.on("request", self._asked)

    def go(self, place: str = "") -> None:
        """Open a place of the page: what follows ``#/`` in its address."""
        self.page.goto(f"{self.root}#/{place}")
        self.page.locator("h1").first.wait_for()

    def leave(self) -> None:
        """End what it follows, and drop what it stores and what was routed; the next :meth:`go` loads it anew."""
        self.page.unroute_all()
        self.context.clear_cookies()
        self.page.evaluate(
            "localStorage.clear(); sessionStorage.clear(); location.hash = '#/help';"
            " history.replaceState(null, '', '?left#/help')"  # an address of another document
        )

    def settled(self) -> None:
        """Wait until nothing on the screen is awaited any more."""
        self.holds("!document.querySelector('main :is(.spinner, .stale)') && document.querySelector('h1')")

    def holds(self, expression: str) -> None:
        """Wait until an expression of JavaScript holds; Playwright's own wait needs `eval`, which the page forbids.

        The page looks itself, so that a wait costs the machine little; a page that is left meanwhile is asked anew.
        """
        from playwright.sync_api import Error

        def held() -> bool:
            try:
                return bool(self.page.evaluate(_HELD % expression))
            except Error as error:
                if "Execution context was destroyed" not in str(error):
                    raise
                return False

        eventually_sync(held, PATIENCE / 1000, what=expression)

    def see(self, text: str | re.Pattern[str]) -> Any:
        """Wait for a text on the screen; its element."""
        found = self.page.get_by_text(text).locator("visible=true").first
        found.wait_for()
        return found

    def axe(self, *, colours_alone: bool = False) -> list[str]:
        """What axe-core finds against WCAG 2.2 AA and its own best practices, a line for each finding.

        ``colours_alone``: by the rules that other colours can break, for a page that passed the others.
        """
        from axe_playwright_python.base import AXE_FILE_PATH

        if not self.page.evaluate("'axe' in window"):  # half a megabyte, once for a document
            self.page.evaluate(Path(AXE_FILE_PATH).read_text(encoding="utf-8"))
        return list(self.page.evaluate(_AXE, colours_alone))

    def too_wide(self) -> int:
        """By how many pixels the page is wider than its window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - innerWidth"))

    def _said(self, message: Any) -> None:
        if message.type in {"error", "warning"} and not _ANSWERS.match(message.text):
            self.wrong.append(f"{message.type}: {message.text}")

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((self.root, "blob:", "data:")):
            self.wrong.append(f"a request to {request.url}")
