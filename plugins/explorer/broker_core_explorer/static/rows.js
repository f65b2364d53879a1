// A list of any length: what is seen of it is drawn, and fetched by pages.
import { html, useEffect, useLayoutEffect, useRef, useState } from './html.js';
import { number } from './format.js';

const ROW = 30; // pixels, as in app.css
const PAGE = 200;
const MOST_PAGES = 40;
const BEYOND = 6; // rows drawn above and below what is seen
/** Milliseconds until a page is asked for: one that is scrolled past is not. */
const PAUSE_MS = 30;

/** How high an element may be: browsers stop at 17 or 33 million pixels. */
let tallest = 0;
function mostHeight() {
  if (!tallest) {
    const probe = document.createElement('div');
    probe.className = 'probe';
    probe.style.height = '33000000px';
    document.body.append(probe);
    tallest = probe.getBoundingClientRect().height > 32e6 ? 32e6 : 15e6;
    probe.remove();
  }
  return tallest;
}

/**
 * @param {object} props
 * @param {string} props.label of the list, for screen readers
 * @param {string} props.of another text is another list, which begins at its first row
 * @param {number} props.total rows in all
 * @param {any[]} props.first rows that are known already
 * @param {((offset: number, limit: number, signal: AbortSignal) => Promise<any[]>) | null} props.load
 * @param {(item: any) => any} props.row what a row shows
 * @param {(item: any) => string} props.href where a row leads
 */
export function Rows({ label, of, total, first, load, row, href }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  const [active, setActive] = useState(-1);
  const [, draw] = useState(0);
  const [failed, setFailed] = useState(/** @type {any} */ (null));
  const pages = useRef(/** @type {Map<number, any[]>} */ (new Map()));
  const running = useRef(/** @type {Map<number, AbortController>} */ (new Map()));

  const before = useRef(of);
  if (before.current !== of) {
    before.current = of;
    pages.current = new Map();
    running.current.forEach((each) => each.abort());
    running.current.clear();
  }
  for (let page = 0; page * PAGE < first.length; page += 1) {
    const items = first.slice(page * PAGE, (page + 1) * PAGE);
    if (items.length === PAGE || first.length === total) pages.current.set(page, items);
  }

  useLayoutEffect(() => {
    if (box.current) box.current.scrollTop = 0;
    setTop(0);
    setActive(-1);
    setFailed(null);
  }, [of]);
  useLayoutEffect(() => {
    const watcher = new ResizeObserver(() => box.current && setHeight(box.current.clientHeight));
    if (box.current) watcher.observe(box.current);
    return () => watcher.disconnect();
  }, []);
  useEffect(() => () => running.current.forEach((each) => each.abort()), []);

  const whole = total * ROW;
  const tall = Math.min(whole, mostHeight());
  const ratio = tall > height && whole > tall ? (whole - height) / (tall - height) : 1;
  const at = top * ratio;
  const from = Math.max(0, Math.floor(at / ROW) - BEYOND);
  const to = Math.min(total, Math.ceil((at + height) / ROW) + BEYOND);
  const firstPage = Math.floor(from / PAGE);
  const lastPage = Math.floor(Math.max(from, to - 1) / PAGE);

  useEffect(() => {
    running.current.forEach((controller, page) => {
      if (page < firstPage || page > lastPage) {
        controller.abort();
        running.current.delete(page);
      }
    });
    if (load === null) return;
    for (let page = firstPage; page <= lastPage; page += 1) {
      if (pages.current.has(page) || running.current.has(page) || page * PAGE >= total) continue;
      const controller = new AbortController();
      running.current.set(page, controller);
      setTimeout(async () => {
        if (controller.signal.aborted) return;
        try {
          const items = await load(page * PAGE, PAGE, controller.signal);
          if (controller.signal.aborted) return;
          pages.current.set(page, items);
          const [oldest] = pages.current.keys();
          if (pages.current.size > MOST_PAGES && oldest !== page) pages.current.delete(oldest);
          setFailed(null);
        } catch (error) {
          if (!controller.signal.aborted) setFailed(error);
        } finally {
          if (running.current.get(page) === controller) running.current.delete(page);
          draw((turn) => turn + 1);
        }
      }, PAUSE_MS);
    }
  }, [firstPage, lastPage, of, total, failed === null]);

  const item = (index) => pages.current.get(Math.floor(index / PAGE))?.[index % PAGE];
  const show = (index) => {
    const node = box.current;
    if (!node) return;
    setActive(index);
    const y = index * ROW;
    if (y < at) node.scrollTop = y / ratio;
    else if (y + ROW > at + height) node.scrollTop = Math.ceil((y + ROW - height) / ratio);
  };
  const key = (event) => {
    const seen = Math.max(1, Math.floor(height / ROW) - 1);
    const now = active < 0 ? Math.floor(at / ROW) - 1 : active;
    const moves = { ArrowDown: now + 1, ArrowUp: now - 1, PageDown: now + seen, PageUp: now - seen, Home: 0, End: total - 1 };
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key in moves) {
      event.preventDefault();
      show(Math.max(0, Math.min(total - 1, moves[/** @type {keyof typeof moves} */ (event.key)])));
    } else if (event.key === 'Enter' && active >= 0 && item(active) !== undefined) {
      event.preventDefault();
      location.hash = href(item(active));
    }
  };

  const rows = [];
  for (let index = from; index < to; index += 1) {
    const found = item(index);
    rows.push(html`<a key=${index} id=${`row-${index}`} role="option" tabindex="-1" class="row"
      aria-posinset=${index + 1} aria-setsize=${total} aria-selected=${index === active}
      href=${found === undefined ? undefined : href(found)}>${found === undefined
        ? html`<span class="ghost">${failed === null ? '…' : 'not loaded'}</span>` : row(found)}</a>`);
  }
  return html`<div class="rows">
    ${failed === null ? null : html`<p class="notice bad" role="alert">Rows are missing: ${failed.message}
      <button type="button" onClick=${() => setFailed(null)}>Try again</button></p>`}
    <div ref=${box} class="scroller" style=${{ '--rows': total }} role="listbox" tabindex="0" aria-label=${label}
        aria-activedescendant=${active >= from && active < to ? `row-${active}` : undefined}
        onScroll=${(event) => setTop(event.currentTarget.scrollTop)} onKeyDown=${key}>
      <div class="tall" role="presentation" style=${{ height: `${tall}px` }}>
        <div class="window" role="presentation" style=${{ transform: `translateY(${from * ROW - at + top}px)` }}>${rows}</div>
      </div>
    </div>
    ${total * ROW > height ? html`<p class="where muted" aria-hidden="true">${number(Math.min(total, Math.floor(at / ROW) + 1))} to ${number(Math.min(total, Math.floor((at + height) / ROW)))} of ${number(total)}</p>` : null}
  </div>`;
}
