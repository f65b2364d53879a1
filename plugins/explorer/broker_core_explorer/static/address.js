// Where the page is, in the part of the address after `#`: what is asked stays in a link, and reaches no log of a server.
import { useEffect, useState } from './html.js';

/**
 * @typedef {object} Place
 * @property {string} screen the first part of the path: `namespaces`, `topics`, `topic`, `live` ...
 * @property {string[]} path what follows it, decoded
 * @property {URLSearchParams} query
 */

/** @param {string} hash @returns {Place} */
export function placeOf(hash) {
  const [path, query = ''] = split(hash.replace(/^#\/?/, ''), '?');
  const parts = path.split('/').map(decoded);
  return { screen: parts[0] || 'namespaces', path: parts.slice(1).filter((each) => each !== ''), query: new URLSearchParams(query) };
}

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a link that somebody cut
  }
}

/** @param {string} text @param {string} at @returns {[string, string?]} */
function split(text, at) {
  const index = text.indexOf(at);
  return index < 0 ? [text] : [text.slice(0, index), text.slice(index + 1)];
}

/**
 * A link within the page.
 * @param {string[]} parts
 * @param {URLSearchParams | Record<string, any>} [query] empty values are left out
 */
export function link(parts, query = {}) {
  const found = query instanceof URLSearchParams ? query : params(query);
  const text = found.toString();
  return `#/${parts.map((each) => encodeURIComponent(each)).join('/')}${text ? `?${text}` : ''}`;
}

/** @param {Record<string, any>} values */
export function params(values) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== undefined && each !== null && each !== '' && each !== false) query.append(name, String(each));
    }
  }
  return query;
}

/** @param {string} to @param {{replace?: boolean}} [options] without a step for the button Back */
export function go(to, { replace = false } = {}) {
  if (to === location.hash) return;
  if (replace) {
    history.replaceState(null, '', to);
    dispatchEvent(new HashChangeEvent('hashchange'));
  } else location.hash = to;
}

/** @returns {Place} the place of the page now; the component is drawn again when it changes */
export function usePlace() {
  const [hash, set] = useState(location.hash);
  useEffect(() => {
    const changed = () => set(location.hash);
    addEventListener('hashchange', changed);
    return () => removeEventListener('hashchange', changed);
  }, []);
  return placeOf(hash);
}
