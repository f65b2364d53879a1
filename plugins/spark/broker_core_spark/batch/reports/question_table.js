// The table of all questions in the report: search, filter and sort. Only the rows in view are in the page.
// Texts are set as texts, never as HTML: names and patterns are foreign.
"use strict";

const QuestionTable = (() => {
  const ROW_HEIGHT = 30; // pixels, as in the style
  const SPARE_ROWS = 12; // above and below what is in view
  const COLUMNS = ["namespace", "mode", "pattern", "properties", "count", "change", "hash", "state"];
  const NUMBERS = ["count", "change"];
  const FILTERS = {
    all: () => true,
    added: (table, row) => table.state[row] === 1,
    removed: (table, row) => table.state[row] === 2,
    refused: (table, row) => table.state[row] === 3,
    "left out": (table, row) => table.state[row] === 4,
    "more topics": (table, row) => table.change(row) > 0,
    "fewer topics": (table, row) => table.change(row) < 0,
    "matches nothing": (table, row) => table.count[row] === 0,
  };

  // The data of the page with functions of a row.
  function decode(data) {
    const table = { ...data, length: data.pattern.length };
    const texts = {
      namespace: (row) => data.namespaces[data.namespace[row]],
      mode: (row) => data.modes[data.mode[row]],
      pattern: (row) => (data.pattern[row] === null ? "(all topics)" : data.pattern[row]),
      properties: (row) => data.propertySets[data.properties[row]],
      hash: (row) => data.hash[row],
      state: (row) => data.states[data.state[row]] + (data.reason[row] < 0 ? "" : ": " + data.reasons[data.reason[row]]),
    };
    table.change = (row) =>
      data.count[row] === null || data.before[row] === null ? null : data.count[row] - data.before[row];
    table.value = (row, column) =>
      column === "count" ? data.count[row] : column === "change" ? table.change(row) : texts[column](row);
    table.text = (row, column) => {
      const value = table.value(row, column);
      if (value === null) return "";
      if (!NUMBERS.includes(column)) return value;
      return (column === "change" && value > 0 ? "+" : "") + value.toLocaleString("en");
    };
    let searched = null;
    table.searched = (row) => {
      searched ??= Array.from({ length: table.length }, (_, at) =>
        ["namespace", "pattern", "properties", "state"].map((column) => texts[column](at)).join("\n").toLowerCase());
      return searched[row];
    };
    return table;
  }

  // The rows that have every word, as numbers.
  function find(table, text, filter) {
    const words = text.toLowerCase().split(/\s+/).filter((word) => word);
    const wanted = FILTERS[filter] ?? FILTERS.all;
    const found = [];
    for (let row = 0; row < table.length; row++) {
      if (wanted(table, row) && (!words.length || words.every((word) => table.searched(row).includes(word)))) found.push(row);
    }
    return found;
  }

  // Sorts rows in place. Rows without a value come last either way.
  function sort(table, rows, column, descending) {
    const keys = new Map(rows.map((row) => [row, table.value(row, column)]));
    const way = descending ? -1 : 1;
    return rows.sort((one, other) => {
      const a = keys.get(one), b = keys.get(other);
      if (a === b) return one - other;
      if (a === null || b === null) return a === null ? 1 : -1;
      return a < b ? -way : way;
    });
  }

  // The rows to render, [first, last), for a view of `height` pixels that is scrolled to `top`.
  function inView(top, height, count) {
    const first = Math.max(0, Math.floor(top / ROW_HEIGHT) - SPARE_ROWS);
    return [Math.min(first, count), Math.min(count, Math.ceil((top + height) / ROW_HEIGHT) + SPARE_ROWS)];
  }

  function start(page) {
    const table = decode(JSON.parse(page.getElementById("questions-data").textContent));
    const [view, body, counted] = ["view", "body", "counted"].map((name) => page.getElementById("questions-" + name));
    const [text, filter] = ["search", "filter"].map((name) => page.getElementById("questions-" + name));
    const heads = Array.from(page.querySelectorAll("#questions-head button"));
    let rows = [], column = "count", descending = true, shown = "";

    function render(anew) {
      const [first, last] = inView(view.scrollTop, view.clientHeight, rows.length);
      if (!anew && shown === first + "-" + last) return;
      shown = first + "-" + last;
      body.replaceChildren(...rows.slice(first, last).map((row, at) => {
        const line = page.createElement("div");
        line.className = "row state-" + table.state[row];
        line.setAttribute("role", "row");
        line.setAttribute("aria-rowindex", String(first + at + 2));
        line.style.top = (first + at) * ROW_HEIGHT + "px";
        for (const name of COLUMNS) {
          const cell = page.createElement("div");
          cell.className = "cell " + name;
          cell.setAttribute("role", "cell");
          cell.textContent = table.text(row, name);
          cell.title = cell.textContent;
          line.append(cell);
        }
        return line;
      }));
    }

    function update() {
      rows = sort(table, find(table, text.value, filter.value), column, descending);
      body.style.height = rows.length * ROW_HEIGHT + "px";
      counted.textContent = rows.length.toLocaleString("en") + " of " + table.length.toLocaleString("en");
      for (const head of heads) {
        const chosen = head.dataset.column === column;
        head.parentElement.setAttribute("aria-sort", chosen ? (descending ? "descending" : "ascending") : "none");
      }
      view.scrollTop = 0;
      render(true);
    }

    let waiting = null;
    text.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(update, 120); // once for a word, not for each letter
    });
    filter.addEventListener("change", update);
    view.addEventListener("scroll", () => render(false));
    for (const head of heads) {
      head.addEventListener("click", () => {
        descending = column === head.dataset.column ? !descending : NUMBERS.includes(head.dataset.column);
        column = head.dataset.column;
        update();
      });
    }
    page.getElementById("questions").hidden = false;
    update();
  }

  return { decode, find, sort, inView, start };
})();

if (typeof document === "undefined") module.exports = QuestionTable;
else QuestionTable.start(document);
