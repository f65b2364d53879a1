// Requests to `/v1` of the server that the page is from, and to no other.

/** What the server said in place of an answer, or that it said nothing (`status` 0). */
export class ApiError extends Error {
  /**
   * @param {number} status
   * @param {Record<string, any>} problem the body, RFC 9457
   * @param {string[]} schemes how a client may authenticate, of a 401
   */
  constructor(status, problem, schemes = []) {
    super(String(problem.detail || problem.title || `the server answered with ${status}`));
    this.status = status;
    this.problem = problem;
    this.cause_ = String(problem.cause || '');
    this.schemes = schemes;
  }
}

/** The root of the server as the browser sees it: behind a proxy it has a prefix, which the server does not know. */
export const ROOT = new URL(
  document.querySelector('meta[name=root]')?.getAttribute('content') || './',
  location.href.replace(/#.*/s, ''),
);

/** @param {string} text a part of a path, whatever is in it */
export const part = (text) => encodeURIComponent(text);

/**
 * The path of a namespace below `/v1`.
 * @param {string} namespace
 */
export function ofNamespace(namespace) {
  const [tenant = '', name = ''] = namespace.split('/');
  return `namespaces/${part(tenant)}/${part(name)}`;
}

/**
 * @param {string} path below `/v1/`; with a slash before it, below the root of the server
 * @param {Record<string, any>} [query] `undefined`, `null` and '' are left out; an array is a repeated parameter
 */
export function address(path, query = {}) {
  const url = new URL(path.startsWith('/') ? path.slice(1) : `v1/${path}`, ROOT);
  for (const [name, value] of Object.entries(query)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== undefined && each !== null && each !== '') url.searchParams.append(name, String(each));
    }
  }
  return url;
}

/** The API with the credentials of whoever signed in, which are in memory alone. */
export class Api {
  /** @type {string | null} */
  #credentials = null;
  /** Called for each 401, with the error. @type {(error: ApiError) => void} */
  onUnauthenticated = () => {};
  /** Called after each request with whether the server answered. @type {(answered: boolean) => void} */
  onReached = () => {};

  get signedIn() {
    return this.#credentials !== null;
  }

  /** @param {{token?: string, user?: string, password?: string} | null} given */
  signIn(given) {
    if (given === null) this.#credentials = null;
    else if (given.token) this.#credentials = `Bearer ${given.token}`;
    else {
      const bytes = new TextEncoder().encode(`${given.user}:${given.password}`);
      this.#credentials = `Basic ${btoa(String.fromCharCode(...bytes))}`;
    }
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {{query?: Record<string, any>, body?: any, type?: string, headers?: Record<string, string>,
   *          signal?: AbortSignal}} [options]
   * @returns {Promise<Response>}
   */
  async request(method, path, { query, body, type = 'application/json', headers = {}, signal } = {}) {
    /** @type {Record<string, string>} */
    const sent = { Accept: 'application/json', ...headers };
    if (this.#credentials !== null) sent.Authorization = this.#credentials;
    if (body !== undefined) sent['Content-Type'] = type;
    let response;
    try {
      response = await fetch(address(path, query), {
        method,
        headers: sent,
        body: body === undefined ? undefined : JSON.stringify(body),
        signal,
        credentials: 'omit', // the browser's own dialog never opens, and no cookie is sent
        cache: 'no-store',
        redirect: 'error',
        referrerPolicy: 'no-referrer',
      });
    } catch (error) {
      if (signal?.aborted) throw error;
      this.onReached(false);
      throw new ApiError(0, { detail: 'The server does not answer.' });
    }
    // A proxy says 502 and 504 for a server that is away, without a body of ours.
    if (response.ok || response.status === 304) {
      this.onReached(true);
      return response;
    }
    const failure = await failed(response);
    this.onReached(!(failure.status >= 502 && !failure.cause_));
    if (failure.status === 401) this.onUnauthenticated(failure);
    throw failure;
  }

  /**
   * @param {string} path
   * @param {Record<string, any>} [query]
   * @param {AbortSignal} [signal]
   */
  async get(path, query, signal) {
    return json(await this.request('GET', path, { query, signal }));
  }

  /**
   * @param {string} path
   * @param {any} body
   * @param {AbortSignal} [signal]
   */
  async post(path, body, signal) {
    return json(await this.request('POST', path, { body, signal }));
  }

  /**
   * Server-sent events over `fetch`, which sends credentials where `EventSource` sends none. Ends with an
   * {@link ApiError}, or when it is aborted.
   * @param {string} path
   * @param {Record<string, any>} query
   * @param {{signal: AbortSignal, last?: string, event: (name: string, data: string, id: string) => void}} options
   */
  async events(path, query, { signal, last, event }) {
    /** @type {Record<string, string>} */
    const headers = { Accept: 'text/event-stream' };
    if (last) headers['Last-Event-ID'] = last;
    const response = await this.request('GET', path, { query, headers, signal });
    if (response.body === null) return;
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = '';
    /** @type {{name: string, data: string[], id: string}} */
    let now = { name: 'message', data: [], id: last || '' };
    for (;;) {
      let chunk;
      try {
        chunk = await reader.read();
      } catch (error) {
        if (signal.aborted) throw error;
        chunk = { done: true, value: undefined };
      }
      if (chunk.done) {
        this.onReached(false);
        throw new ApiError(0, { detail: 'The stream ended.' });
      }
      const lines = (rest + chunk.value).split('\n');
      rest = lines.pop() || '';
      for (const line of lines) {
        if (line === '') {
          if (now.data.length) event(now.name, now.data.join('\n'), now.id);
          now = { name: 'message', data: [], id: now.id };
        } else {
          const colon = line.indexOf(':');
          const field = colon < 0 ? line : line.slice(0, colon);
          const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
          if (field === 'event') now.name = value;
          else if (field === 'data') now.data.push(value);
          else if (field === 'id') now.id = value;
        }
      }
    }
  }
}

/** @param {Response} response */
async function json(response) {
  return response.status === 204 ? null : response.json();
}

/** @param {Response} response */
async function failed(response) {
  let problem;
  try {
    problem = await response.json();
  } catch {
    problem = null; // a proxy's page, or half an answer
  }
  if (problem === null || typeof problem !== 'object') problem = { title: response.statusText };
  if (problem.detail === undefined && typeof problem.error === 'string') problem.detail = problem.error;
  const schemes = (response.headers.get('WWW-Authenticate') || '').match(/\b(Bearer|Basic)\b/gi) || [];
  return new ApiError(response.status, problem, schemes.map((each) => each.toLowerCase()));
}
