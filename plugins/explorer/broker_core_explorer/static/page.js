// What each screen is built on.
import htm from './vendor/htm.js';
import { h, createContext, options } from './vendor/preact.js';
import { useState, useEffect, useRef, useCallback, useContext } from './vendor/hooks.js';

export { h, render, Fragment } from './vendor/preact.js';
export * from './vendor/hooks.js';

/** What stands in `${}` is text, never markup. */
export const html = htm.bind(h);

function placeOf(hash) {
  const [path, query = ''] = split(hash.replace(/^#\/?/, ''), '?');
  const parts = path.split('/').map(decoded);
  return { screen: parts[0] || 'namespaces', path: parts.slice(1).filter((each) => each !== ''), query: new URLSearchParams(query) };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a link that somebody cut
  }
}

/** @type {F.split} */
export function split(text, at) {
  const index = text.indexOf(at);
  return index < 0 ? [text] : [text.slice(0, index), text.slice(index + 1)];
}

/** @type {F.link} */
export function link(parts, query = {}) {
  const text = String(query instanceof URLSearchParams ? query : params(query));
  return `#/${parts.map(encodeURIComponent).join('/')}${text && `?${text}`}`;
}

/** @type {F.linkIn} */
export const linkIn = (screen, namespace, query) => link([screen, ...namespace.split('/')], query);

/** @type {F.params} */
export function params(values) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    for (const each of [value].flat()) if (each || each === 0) query.append(name, each);
  }
  return query;
}

/** @type {F.go} */
export function go(to, { replace = false } = {}) {
  if (to === location.hash) return;
  if (replace) {
    history.replaceState(null, '', to);
    dispatchEvent(new HashChangeEvent('hashchange'));
  } else location.hash = to;
}

/** @type {F.useEvent} */
export const useEvent = (target, name, heard) => useEffect(() => {
  target.addEventListener(name, heard);
  return () => target.removeEventListener(name, heard);
}, []);

export function usePlace() {
  const [hash, set] = useState(location.hash);
  useEvent(window, 'hashchange', () => set(location.hash));
  return placeOf(hash);
}

/** The status of what a browser cannot ask. */
export const UNASKABLE = -1;

/** `status` 0: the server said nothing. */
export class ApiError extends Error {
  /** @param {number} status @param {Values} problem the body, RFC 9457 @param {string[]} schemes of a 401 */
  constructor(status, problem, schemes = []) {
    super(String(problem.detail || problem.title || `the server answered with ${status}`));
    this.status = status;
    this.problem = problem;
    this.cause_ = String(problem.cause || '');
    this.schemes = schemes;
  }

  /** A proxy says 502 and 504 of a server that is away. */
  get away() {
    return this.status === 0 || (this.status >= 502 && !this.cause_);
  }
}

/** The root of the server as the browser sees it, behind a prefix of a proxy. */
export const ROOT = new URL(
  document.querySelector('meta[name=root]')?.getAttribute('content') || './',
  location.href.replace(/#.*/s, ''),
);

/** @type {F.text} */
export const part = (text) => encodeURIComponent(text);

/** @type {F.text} */
export function ofNamespace(namespace) {
  const [tenant, name = ''] = split(namespace, '/');
  return `namespaces/${part(tenant)}/${part(name)}`;
}

/** Parts that an address loses. */
export const DOTS = /(^|\/)\.\.?(\/|$)/;

/** @type {F.address} */
export function address(path, query = {}) {
  const below = path[0] === '/' ? path.slice(1) : `v1/${path}`;
  const url = new URL(below, ROOT);
  if (url.href !== ROOT.href + below || DOTS.test(decoded(below))) throw new ApiError(UNASKABLE, { detail: 'Addresses lose parts that are . or ..: curl --path-as-is asks for them.' });
  url.search = String(params(query));
  return url;
}

/** The API, with credentials that are in memory alone. */
export class Api {
  /** @type {string | null} */
  #credentials = null;
  /** Called for each 401. @type {(error: ApiError) => void} */
  onUnauthenticated = () => {};
  /** Called when the server did not answer. @type {() => void} */
  onLost = () => {};

  /** The name that was given with a password. */
  user = '';
  /** How a client may authenticate, as the last 401 said. @type {string[]} */
  schemes = [];

  get signedIn() {
    return this.#credentials !== null;
  }

  signIn(given) {
    this.user = given?.user || '';
    if (given === null) this.#credentials = null;
    else if (given.token) this.#credentials = `Bearer ${given.token}`;
    else {
      const bytes = new TextEncoder().encode(`${given.user}:${given.password}`);
      this.#credentials = `Basic ${btoa(String.fromCharCode(...bytes))}`;
    }
  }

  /** @type {F.request} */
  async request(method, path, { query, body, headers = {}, signal } = {}) {
    const sent = {
      Accept: 'application/json', ...headers, ...(this.#credentials && { Authorization: this.#credentials }), ...(body && { 'Content-Type': 'application/json' }),
    };
    const url = address(path, query);
    const ask = () => fetch(url, {
      method,
      headers: sent,
      body: JSON.stringify(body),
      signal,
      credentials: 'omit', // the browser's own dialog never opens, and no cookie is sent
      cache: 'no-store',
      redirect: 'error',
      referrerPolicy: 'no-referrer',
    });
    let response;
    try {
      // A connection may end under a request: what changes nothing is asked once more.
      response = await (method === 'GET' ? ask().catch((error) => (signal?.aborted ? Promise.reject(error) : ask())) : ask());
    } catch (error) {
      throw this.#lost(error);
    }
    if (response.ok || response.status === 304) return response;
    const failure = await failed(response);
    if (failure.away) this.onLost();
    if (failure.status === 401) {
      this.schemes = failure.schemes;
      this.onUnauthenticated(failure);
    }
    throw failure;
  }

  /** What a connection that ended means, unless the page ended it. @param {Error} error */
  #lost(error) {
    if (error.name === 'AbortError') return error;
    this.onLost();
    return new ApiError(0, { detail: 'The server does not answer.' });
  }

  /** @type {F.read} */
  async read(response) {
    if (response.status === 204) return null;
    return response.json().catch((error) => {
      throw this.#lost(error);
    });
  }

  /** @type {F.askApi} */
  async get(path, query, signal) {
    return this.read(await this.request('GET', path, { query, signal }));
  }

  /** @type {F.askApi} */
  async post(path, body, signal) {
    return this.read(await this.request('POST', path, { body, signal }));
  }

  // `EventSource` sends no credentials.
  /** @type {F.events} */
  async events(path, query, { signal, last, event }) {
    const headers = { Accept: 'text/event-stream', ...(last && { 'Last-Event-ID': last }) };
    const response = await this.request('GET', path, { query, headers, signal });
    if (response.body === null) return;
    if (last) event('resumed', '', last); // what changes next is all that it will say
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = '';
    for (;;) {
      const chunk = await reader.read().catch((error) => {
        if (signal.aborted) throw error;
        return { done: true, value: '' };
      });
      if (chunk.done) {
        this.onLost();
        throw new ApiError(0, { detail: 'The stream ended.' });
      }
      const found = (rest + chunk.value).split('\n\n');
      rest = found.pop() || '';
      for (const each of found) {
        const [name, data, id] = ['event', 'data', 'id'].map((field) => RegExp(`^${field}: ?(.*)`, 'm').exec(each)?.[1] || '');
        if (data) event(name, data, id);
      }
    }
  }
}

async function failed(response) {
  const said = await response.json().catch(() => null); // a proxy's page, or half an answer
  const problem = { title: response.statusText, detail: said?.error, ...said };
  const schemes = response.headers.get('WWW-Authenticate')?.toLowerCase().match(/\b(bearer|basic)\b/g);
  return new ApiError(response.status, problem, schemes || []);
}

/** @type {PageContextOf} */
export const PageContext = createContext(/** @type {any} */ (null));
/** @returns {Page} */
export const usePage = () => useContext(PageContext);

/** @type {F.may} */
export const may = (me, right, where = 'namespace') => !me || me.super || (me.rights[where] ?? [right]).includes(right);

/** @type {F.unchangeable} */
export const unchangeable = (me) => (!me ? 'The server has not said yet who you are.'
  : !me.server.writes ? (me.server.topics === 'upstream' ? 'Brokers hold the topics: make and change them there.' : 'This server takes no changes over HTTP ([http] writes = false).')
  : !me.server.page_changes ? 'Pages change nothing on this server: [plugins.explorer] writes = true allows it.'
  : may(me, 'admin') ? '' : 'To make or change topics you need the right admin in this namespace.');

/** Whatever is shown is asked anew. */
export const askAgain = () => dispatchEvent(new Event('ask-again'));

const SLOW_MS = 1000;
const NOTHING = { data: undefined, error: null, loading: false, slow: false, old: false, of: '', at: 0, kept: 0 };

/** @type {F.useAsk} */
export function useAsk(ask, key, { keep = true, delay = 0, every = 0 } = {}) {
  const { epoch } = usePage();
  const [turn, setTurn] = useState(0);
  const [state, set] = useState(/** @type {any} */ ({ ...NOTHING, loading: ask !== null }));
  const again = useCallback(() => setTurn((before) => before + 1), []);
  const latest = useRef(ask);
  latest.current = ask;
  const busy = useRef(false);
  const quiet = useRef(false);
  useEffect(() => {
    const asking = latest.current;
    if (asking === null) {
      busy.current = false;
      set(NOTHING);
      return undefined;
    }
    const controller = new AbortController();
    const of = key.join();
    const done = (found) => {
      if (controller.signal.aborted) return;
      busy.current = false;
      set(found);
    };
    if (!quiet.current) set((before) => ({ ...before, data: keep ? before.data : undefined, loading: true, slow: false, old: true }));
    const slow = setTimeout(() => set((before) => ({ ...before, slow: before.loading })), SLOW_MS + delay);
    quiet.current = false;
    busy.current = true;
    const start = setTimeout(() => {
      asking(controller.signal).then(
        (data) => done({ ...NOTHING, data, of, at: Date.now() }),
        // While the server is away, or the sign-in has ended, its last answer stays.
        (error) => done((before) => ({ ...before, loading: false, slow: false, old: false, error: error.away && before.of === of && before.data !== undefined ? null : error,
          kept: (error.away || error.status === 401) && before.of === of && before.data !== undefined ? before.at : 0 })),
      ).finally(() => clearTimeout(slow));
    }, delay);
    return () => {
      clearTimeout(slow);
      clearTimeout(start);
      controller.abort();
    };
  }, [...key, epoch, turn]);
  useEffect(() => {
    if (!every) return undefined;
    const timer = setInterval(() => {
      if (busy.current || !isSeen()) return;
      quiet.current = true;
      again();
    }, every);
    return () => clearInterval(timer);
  }, [every, again]);
  return { ...state, again };
}

/** @type {F.useGet} */
export function useGet(path, query, options) {
  const { api } = usePage();
  return useAsk(path === null ? null : (signal) => api.get(path, query, signal), [path, String(params(query || {}))], options);
}

export const isSeen = () => document.visibilityState === 'visible';

export function useVisible() {
  const [visible, set] = useState(isSeen());
  useEvent(document, 'visibilitychange', () => set(isSeen()));
  return visible;
}

// Texts, in the language of the browser.

const whole = new Intl.NumberFormat();
const some = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 3 });
const moment = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' });
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto' });
const plurals = new Intl.PluralRules('en');

/** @type {F.shown} */
export const number = (value) => (typeof value === 'number' && Number.isFinite(value) ? whole.format(value) : '–');

/** @type {F.counted} */
export const counted = (value, one, many = `${one}s`) => `${number(value)} ${plurals.select(value) === 'one' ? one : many}`;

/** @type {F.shown} */
export function size(bytes) {
  if (typeof bytes !== 'number') return '–';
  const unit = Math.max(0, Math.min(4, Math.floor(Math.log2(bytes) / 10)));
  return `${unit ? some.format(bytes / 1024 ** unit) : whole.format(bytes)} ${['B', 'KiB', 'MiB', 'GiB', 'TiB'][unit]}`;
}

/** @type {F.shown} */
export function duration(seconds) {
  if (typeof seconds !== 'number' || !Number.isFinite(seconds)) return '–';
  if (seconds < 1e-3) return `${some.format(seconds * 1e6)} µs`;
  if (seconds < 1) return `${some.format(seconds * 1e3)} ms`;
  if (seconds < 120) return `${some.format(seconds)} s`;
  const [unit, length] = seconds < 7200 ? ['min', 60] : seconds < 172800 ? ['h', 3600] : ['d', 86400];
  return `${whole.format(Math.round(seconds / length))} ${unit}`;
}

/** @type {F.shown} */
export const milliseconds = (value) => (typeof value === 'number' ? duration(value / 1000) : '–');

/** @type {F.date} */
export function date(value) {
  const found = new Date(value ?? '');
  return Number.isNaN(found.getTime()) ? null : found;
}

/** @type {(format: Intl.DateTimeFormat) => F.shown} */
const shown = (format) => (value) => {
  const found = date(value);
  return found === null ? '–' : format.format(found);
};
export const time = shown(moment);
export const clockTime = shown(clock);

/** @type {F.shown} */
export function ago(value) {
  const found = date(value);
  if (found === null) return '–';
  const seconds = (found.getTime() - Date.now()) / 1000;
  for (const [unit, length] of /** @type {const} */ ([['day', 86400], ['hour', 3600], ['minute', 60]])) {
    if (Math.abs(seconds) >= length) return relative.format(Math.round(seconds / length), unit);
  }
  return relative.format(Math.round(seconds), 'second');
}

/** @type {F.shown} */
export const percent = (value) => (typeof value === 'number' ? `${some.format(value * 100)} %` : '–');

/** @type {F.shown} */
export function anything(value) {
  if (value === null || value === undefined) return '–';
  if (typeof value === 'number') return Number.isInteger(value) ? whole.format(value) : some.format(value);
  if (typeof value === 'string') return value;
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  return JSON.stringify(value);
}

/** @type {F.cut} */
export const cut = (text, most = 300) => (text.length > most ? `${text.slice(0, most)}… (${counted(text.length, 'character')})` : text);

/** @type {F.inNamespace} */
export function shortName(namespace, name) {
  const before = `persistent://${namespace}/`;
  return name.startsWith(before) ? name.slice(before.length) : name;
}

/** @type {F.plain} */
export const plain = (text) => text.replace(/[\0-\x08\v-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]/g, (each) => `\\u{${each.charCodeAt(0).toString(16)}}`);

// Of whatever text is drawn.
options.vnode = (/** @type {any} */ node) => {
  if (typeof node.props === 'string') node.props = plain(node.props);
};

/** @type {F.unseen} */
export const unseen = (text, how) => text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, how);

/** @type {F.quoted} */
export function quoted(text) {
  if (/^[\w@%+=:,./-]+$/.test(text)) return text;
  const escaped = (each) => unseen(each, (one) => encodeURIComponent(one).replaceAll('%', '\\x'));
  return escaped(text) === text ? `'${text.replaceAll("'", `'\\''`)}'` : `$'${escaped(text.replace(/[\\']/g, '\\$&'))}'`;
}
