// The parts that screens are built of: states of a question, copies, dialogs, fields, tables.
import { UNASKABLE, html, linkIn, useEffect, useId, useLayoutEffect, usePage, useRef, useState } from './page.js';

export function Answer({ ask, what, children, rights }) {
  const { data, error, loading, slow, again } = ask;
  if (error !== null && !loading) return html`<${Failure} error=${error} what=${what} again=${again} rights=${rights} />`;
  if (data === undefined) return html`<${Waiting} slow=${slow} what=${what} />`;
  return children(data);
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
      <button type="button" onClick=${() => dispatchEvent(new Event('ask-again'))}>Sign in</button></div>`;
  }
  if (error.status === 403) {
    const as = error.problem?.as;
    return html`<div class="state denied" role="alert">
      <h2>${as ? html`The role <bdi>${as}</bdi>` : 'You'} may not see ${what}</h2>
      <p>${as ? '' : me?.role ? html`The role <b>${me.role}</b> lacks the right.` : 'You lack the right.'}
        ${rights ? html` It needs <b>${rights}</b>, which an operator gives by a rule in <code>[authorization]</code>.` : null}</p>
      <p class="muted">${error.message}</p>
    </div>`;
  }
  const held = /^The shrink guard holds/.test(error.message);
  const title = held ? 'Many topics are missing at once: the listing is held'
    : error.status === 0 ? 'The server does not answer'
    : error.status === UNASKABLE ? `A browser cannot ask for ${what}`
    : error.status === 404 ? `There is no such thing: ${what}`
    : error.status === 429 ? 'A quota is used up'
    : error.status === 503 ? 'The server has no place for this now'
    : `The server could not show ${what}`;
  return html`<div class="state failed" role="alert">
    <h2>${title}</h2>
    <p>${error.status === 0 ? 'The page asks again by itself.' : error.message}</p>
    ${error.status !== 0 && error.cause_ ? html`<p class="muted">Cause ${error.cause_}, status ${error.status}</p>` : null}
    ${held ? html`<a href="#/screen/held">Held listings</a>` : null}
    ${again && error.status !== 400 ? html`<button type="button" onClick=${again}>Try again</button>` : null}
  </div>`;
}

export const Empty = ({ title, children }) => html`<div class="state empty"><h2>${title}</h2>${children}</div>`;

export function Command({ text, label = 'Copy' }) {
  return html`<div class="command"><pre tabindex="0"><code>${text}</code></pre><${Copy} text=${text} label=${label} /></div>`;
}

export function Copy({ text, label }) {
  const { say } = usePage();
  const copy = async () => {
    const copied = typeof text === 'function' ? await text() : text;
    say((await toClipboard(copied)) ? 'Copied' : 'Not copied: mark the text, and copy it by hand');
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

export function Dialog({ title, close, children, wide, bare }) {
  const ref = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const id = useId();
  useLayoutEffect(() => {
    const node = ref.current;
    node?.showModal();
    return () => {
      // Gives the focus back.
      node?.close();
      const at = document.activeElement;
      if (at === document.body || node?.contains(at)) document.querySelector('h1')?.focus();
    };
  }, []);
  return html`<dialog ref=${ref} class=${wide ? 'wide' : ''} aria-labelledby=${id} onClose=${close}
      onClick=${(event) => event.target === ref.current && close()}>
    <div class="dialog">
      <h2 id=${id} class=${bare ? 'hidden-text' : ''}>${title}</h2>
      ${children}
      ${bare ? null : html`<button type="button" class="quiet icon close" aria-label="Close" onClick=${close}>✕</button>`}
    </div>
  </dialog>`;
}

export function Field({ label, hint, children, class: className = '', bad }) {
  const id = useId();
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const said = bad || hint;
  // Beside the label: what stands in it is the name of the control, and is read each time.
  useLayoutEffect(() => {
    if (said) box.current?.querySelector('input, select, textarea')?.setAttribute('aria-describedby', id);
  }, [!said]);
  return html`<div ref=${box} class=${`field ${className}`}><label><span class="label">${label}</span>${children}</label>
    ${said ? html`<span id=${id} class=${bad ? 'bad' : 'hint'}>${said}</span>` : null}</div>`;
}

/** A text field whose state is in the address. */
export function TextInput({ value, set, ...rest }) {
  const [typed, setTyped] = useState(value);
  // What was typed comes back by the address, late: only another value is somebody else's.
  const sent = useRef([value]);
  useEffect(() => {
    const at = sent.current.indexOf(value);
    if (at < 0) setTyped(value);
    sent.current = at < 0 ? [value] : sent.current.slice(at);
  }, [value]);
  const changed = (event) => {
    sent.current.push(event.target.value);
    setTyped(event.target.value);
    set(event.target.value);
  };
  return html`<input type="text" value=${typed} onInput=${changed} autocomplete="off" autocapitalize="off"
    spellcheck=${false} dir="auto" ...${rest} />`;
}

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
    ? html`<span class="pairs">${entries.map(([key, value]) => html`<span class="pair"><bdi>${key}</bdi>=<bdi>${value}</bdi></span>`)}</span>`
    : html`<span class="muted">none</span>`;
};

export function QuestionLink({ of }) {
  const pairs = Object.entries(of.properties || {});
  const mode = String(of.mode).toLowerCase();
  return html`<a href=${linkIn('topics', of.namespace, { q: of.pattern, mode: mode === 'persistent' ? '' : mode, p: pairs.map((pair) => pair.join('=')) })}><bdi class="cut">${of.pattern || 'all topics'}</bdi></a>
    ${' '}${mode === 'persistent' ? null : html`<${Badge} kind="plain">${mode.replace('_', '-')}<//> `}${pairs.length ? html`<${Pairs} of=${of.properties} />` : null}`;
}

export const Badge = ({ kind, children }) => html`<span class=${`badge ${kind}`}>${children}</span>`;
