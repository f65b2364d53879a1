// The parts that screens are built of.
import { UNASKABLE, askAgain, clockTime, cut, html, number, useEffect, useId, useLayoutEffect, usePage, useRef, useState } from './page.js';

export function Answer({ ask, what, children, rights }) {
  const { data, error, loading, slow, again, kept } = ask;
  if (error && !loading && !kept) return html`<${Failure} error=${error} what=${what} again=${again} rights=${rights} />`;
  if (data === undefined) return html`<${Waiting} slow=${slow} what=${what} />`;
  return html`${kept ? html`<p class="kept small muted">As it was at ${clockTime(kept)}</p>` : null}${children(data)}`;
}

export function Waiting({ slow, what }) {
  return html`<div class="state" role="status">
    <span class="spinner" aria-hidden="true"></span>
    <p>${slow ? `Still waiting for ${what}: the server is slow to answer.` : `Asking: ${what}…`}</p>
  </div>`;
}

export function Failure({ error, what, again, rights }) {
  const { me } = usePage();
  if (error.status === 401) {
    return html`<div class="state"><h2>Sign in to see ${what}</h2><p>${error.message}</p>
      <button type="button" onClick=${askAgain}>Sign in</button></div>`;
  }
  if (error.status === 403) {
    const as = error.problem?.as;
    const gate = error.cause_ === 'DENIED' && !/ has no right to /.test(error.message); // what rules say of it
    return html`<div class="state denied" role="alert">
      <h2>${as ? html`The role <bdi>${as}</bdi>` : 'You'} may not see ${what}</h2>
      <p>${gate ? (/\[http\]/.test(error.message) ? 'A setting refuses it to everybody.' : 'A plugin refuses: it must let this client pass.') : as ? '' : me?.role ? html`The role <b>${me.role}</b> lacks the right.` : 'You lack the right.'}
        ${rights && !gate && html` It needs <b>${rights}</b>, which an operator gives by a rule in <code>[authorization]</code>.`}</p>
      ${gate && html`<p class="muted">${error.message}</p>`}
    </div>`;
  }
  const held = /^The shrink guard holds/.test(error.message);
  const title = held ? 'Many topics are missing at once: the listing is held'
    : error.status === 0 ? 'The server does not answer'
    : error.status === UNASKABLE ? `A browser cannot ask for ${what}`
    : error.status === 404 ? `The server does not know ${what}`
    : error.status === 429 ? 'A quota is used up'
    : error.status === 503 ? 'The server is too busy for this now'
    : `The server could not show ${what}`;
  return html`<div class="state failed" role=${error.away ? undefined : 'alert'}>
    <h2>${title}</h2>
    <p>${error.status === 0 ? 'The page asks again by itself.' : error.message}</p>
    ${error.status !== 0 && error.cause_ && html`<p class="muted">Cause ${error.cause_}, status ${error.status}</p>`}
    ${error.cause_ === 'PLUGIN' && html`<p><b>What it would take:</b> the plugin must answer. <a href="#/plugins">Look at the plugins</a></p>`}
    ${held && html`<a href="#/screen/held">Held listings</a>`}
    ${again && error.status !== 400 && html`<button type="button" onClick=${again}>Try again</button>`}
  </div>`;
}

/** What has the focus when its screen is new. */
export const Title = ({ of, children }) => html`<div class="head"><h1 tabindex="-1"><bdi>${of}</bdi></h1>${children}</div>`;

/** `needs`: the right that is missing for what it leads to. */
export const Way = ({ to, here, needs, children }) => html`<a href=${to} aria-current=${here ? 'page' : undefined} ...${barred(needs)}>${children}</a>`;

/** @type {F.barred} */
export const barred = (needs) => needs && { class: 'barred', title: `You lack the right ${needs}` };

export const Empty = ({ title, children }) => html`<div class="state empty"><h2>${title}</h2>${children}</div>`;

export function Command({ text, label = 'Copy' }) {
  return html`<div class="command"><pre tabindex="0"><code>${text}</code></pre><${Copy} text=${text} label=${label} /></div>`;
}

/** The button stays, with the focus. */
export const Fold = ({ open, set, show }) => html`<p><button type="button" class="quiet" onClick=${() => set(!open)}>${open ? 'Show fewer' : show}</button></p>`;

export function Copy({ text, label }) {
  const { say } = usePage();
  const copy = async () => {
    try {
      say((await toClipboard(typeof text === 'function' ? await text() : text)) ? 'Copied' : 'Not copied: copy it by hand');
    } catch (error) {
      say(error.message);
    }
  };
  return html`<button type="button" class="quiet" onClick=${copy}>${label}</button>`;
}

/** Plain http has no clipboard. @type {(text: string) => Promise<boolean>} */
async function toClipboard(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement('textarea');
    area.value = text;
    area.className = 'hidden-text';
    document.body.append(area);
    area.select();
    const copied = document.execCommand('copy');
    area.remove();
    return copied;
  }
}

/** @type {F.download} */
export function download(name, chunks, type) {
  const url = URL.createObjectURL(new Blob(chunks, { type }));
  const anchor = document.createElement('a');
  anchor.href = url;
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** What is behind a dialog is neither seen nor read. */
export function Said() {
  const { said, say } = usePage();
  return html`<p class="said" role="status">${said.text}${said.href && html` <a href=${said.href}>Look at it</a> <button type="button" class="quiet icon" aria-label="Dismiss" onClick=${() => say('')}>✕</button>`}</p>`;
}

export function Dialog({ title, close, children, wide, bare }) {
  const { say } = usePage();
  const ref = useRef(/** @type {any} */ (null));
  const id = useId();
  useLayoutEffect(() => {
    const node = ref.current;
    say('');
    node?.showModal();
    return () => node?.close(); // gives the focus back
  }, []);
  return html`<dialog ref=${ref} class=${wide ? 'wide' : ''} aria-labelledby=${id} onClose=${close}
      onClick=${(event) => event.target === ref.current && close()}>
    <div class="dialog">
      <h2 id=${id} class=${bare ? 'hidden-text' : ''}>${title}</h2>
      ${children}
      <${Said} />
      ${bare ? null : html`<button type="button" class="quiet icon close" aria-label="Close" onClick=${close}>✕</button>`}
    </div>
  </dialog>`;
}

export function Field({ label, hint, children, class: className = '', bad }) {
  const id = useId();
  const box = useRef(/** @type {any} */ (null));
  const said = bad || hint;
  // What stands in the label is read each time.
  useLayoutEffect(() => {
    if (said) box.current?.querySelector('input, select, textarea')?.setAttribute('aria-describedby', id);
  }, [!said]);
  return html`<div ref=${box} class=${`field ${className}`}><label><span class="label">${label}</span>${children}</label>
    ${said && html`<span id=${id} class=${bad ? 'bad' : 'hint'}>${said}</span>`}</div>`;
}

export const TextInput = ({ value, set, ...rest }) => html`<input type="text" value=${value} onInput=${(event) => set(event.target.value)}
  autocomplete="off" autocapitalize="off" spellcheck=${false} dir="auto" ...${rest} />`;

/** `numeric`: columns to the right. */
export function Table({ caption, head, rows, numeric = [] }) {
  const kind = (index) => (numeric.includes(index) ? 'number' : '');
  return html`<div class="scrolls" tabindex="0" role="group" aria-label=${caption}><table>
    <caption class="hidden-text">${caption}</caption>
    <thead><tr>${head.map((cell, index) => html`<th scope="col" class=${kind(index)}>${cell}</th>`)}</tr></thead>
    <tbody>${rows.map((row) => html`<tr>${row.map((cell, index) => (index === 0
      ? html`<th scope="row" class=${kind(index)}>${cell}</th>`
      : html`<td class=${kind(index)}>${cell}</td>`))}</tr>`)}</tbody>
  </table></div>`;
}

export const Facts = ({ items }) => html`<dl class="facts">${items.map(
  ([name, value]) => html`<div><dt>${name}</dt><dd dir="auto">${value}</dd></div>`,
)}</dl>`;

export const Pairs = ({ of }) => {
  const entries = Object.entries(of || {});
  return entries.length
    ? html`<span class="pairs">${entries.slice(0, 20).map(([key, value]) => html`<span class="pair"><bdi>${key}</bdi>=<bdi>${cut(value, 100)}</bdi></span>`)}${
      entries.length > 20 ? ` and ${number(entries.length - 20)} more` : null}</span>`
    : html`<span class="muted">none</span>`;
};

export const Badge = ({ kind, children }) => html`<span class=${`badge ${kind}`}>${children}</span>`;

/** Rows of a request. */
export const PAGE = 200;
const ROW = 30; // pixels, as in app.css
const MOST_PAGES = 40;
const BEYOND = 6; // rows around what is seen
const PAUSE_MS = 30; // a page that is scrolled past is not asked

/** Pixels that a list may be high: Firefox stops at 17 million, others at 33. */
const TALLEST = CSS.supports('-moz-appearance', 'none') ? 15e6 : 32e6;
let left = { of: '', top: 0, active: -1 };

export function Rows({ label, of, state, last, total, first, load, row, href }) {
  const box = useRef(/** @type {any} */ (null));
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  const [active, setActive] = useState(-1);
  const [, draw] = useState(0);
  const [failed, setFailed] = useState(/** @type {any} */ (null));
  const pages = useRef(/** @type {any} */ (new Map()));

  const content = `${of} ${state}`;
  const before = useRef(content);
  if (before.current !== content) {
    before.current = content;
    pages.current = new Map();
  }
  for (let page = 0; page * PAGE < first.length; page += 1) {
    const items = first.slice(page * PAGE, (page + 1) * PAGE);
    if (items.length === PAGE || first.length === total) pages.current.set(page, items);
  }

  useLayoutEffect(() => {
    if (left.of !== of) left = { of, top: 0, active: -1 };
    if (box.current) box.current.scrollTop = left.top;
    setTop(left.top);
    setActive(left.active);
    setFailed(null);
  }, [of]);
  useLayoutEffect(() => {
    const watcher = new ResizeObserver(() => box.current && setHeight(box.current.clientHeight));
    if (box.current) watcher.observe(box.current);
    return () => watcher.disconnect();
  }, []);

  const whole = total * ROW;
  const tall = Math.min(whole, TALLEST);
  const ratio = tall > height && whole > tall ? (whole - height) / (tall - height) : 1;
  const at = top * ratio;
  const from = Math.max(0, Math.floor(at / ROW) - BEYOND);
  const to = Math.min(total, Math.ceil((at + height) / ROW) + BEYOND);
  const place = (index) => (last ? total - 1 - index : index);
  const ends = [place(from), place(Math.max(from, to - 1))].sort((one, other) => one - other);
  const [firstPage, lastPage] = ends.map((each) => Math.floor(each / PAGE));

  useEffect(() => {
    if (load === null) return undefined;
    const controller = new AbortController();
    const fetched = async (page) => {
      try {
        const items = await load(page * PAGE, PAGE, controller.signal);
        if (controller.signal.aborted) return;
        pages.current.set(page, items);
        const [oldest] = pages.current.keys();
        if (pages.current.size > MOST_PAGES && oldest !== page) pages.current.delete(oldest);
        setFailed(null);
      } catch (error) {
        if (!controller.signal.aborted) setFailed(error);
      }
      draw((turn) => turn + 1);
    };
    const pause = setTimeout(() => {
      for (let page = firstPage; page <= lastPage; page += 1) if (!pages.current.has(page) && page * PAGE < total) fetched(page);
    }, PAUSE_MS);
    return () => {
      clearTimeout(pause);
      controller.abort();
    };
  }, [firstPage, lastPage, content, total, failed === null]);

  const item = (index) => pages.current.get(Math.floor(place(index) / PAGE))?.[place(index) % PAGE];
  const choose = (index) => {
    left.active = index;
    setActive(index);
  };
  const show = (index) => {
    const node = box.current;
    if (!node) return;
    choose(index);
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
      show(Math.max(0, Math.min(total - 1, moves[event.key])));
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
      onClick=${() => choose(index)} href=${found === undefined ? undefined : href(found)}>${found === undefined
        ? html`<span class="ghost">${failed === null ? '…' : 'not loaded'}</span>` : row(found)}</a>`);
  }
  return html`<div class="rows">
    ${failed === null ? null : html`<p class="notice bad" role="alert">Rows are missing: ${failed.message}
      <button type="button" onClick=${() => setFailed(null)}>Try again</button></p>`}
    <div ref=${box} class="scroller" style=${{ '--rows': total }} role="listbox" tabindex="0" aria-label=${label}
        aria-activedescendant=${active >= from && active < to ? `row-${active}` : undefined}
        onFocus=${() => active < 0 && choose(Math.ceil(at / ROW))} onScroll=${(event) => setTop(left.top = event.currentTarget.scrollTop)} onKeyDown=${key}>
      <div class="tall" role="presentation" style=${{ height: `${tall}px` }}>
        <div class="window" role="presentation" style=${{ transform: `translateY(${from * ROW - at + top}px)` }}>${rows}</div>
      </div>
    </div>
    ${total * ROW > height && html`<p class="where small muted number" aria-hidden="true">${number(Math.min(total, Math.floor(at / ROW) + 1))} to ${number(Math.min(total, Math.floor((at + height) / ROW)))} of ${number(total)}</p>`}
  </div>`;
}
