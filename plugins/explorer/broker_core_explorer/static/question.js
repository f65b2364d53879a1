// The question of a listing: in the address, to the API, and as others write it.
import { address, ofNamespace, ROOT } from './api.js';
import { params } from './address.js';
import { fullPattern } from './patterns.js';
import { quoted } from './format.js';

/**
 * @typedef {object} Question
 * @property {string} namespace `tenant/namespace`
 * @property {string} typed the pattern as it was typed
 * @property {string} mode `persistent`, `non_persistent` or `all`
 * @property {[string, string][]} properties
 * @property {{role?: string, address?: string, client_version?: string} | null} as who asks in place of who signed in
 */

export const MODES = [['persistent', 'Persistent'], ['non_persistent', 'Non-persistent'], ['all', 'All']];
const AS = /** @type {const} */ (['role', 'address', 'client_version']);

/** @param {import('./address.js').Place} place @returns {Question} */
export function questionOf({ path, query }) {
  /** @type {Record<string, string>} */
  const as = {};
  for (const name of AS) if (query.get(name)) as[name] = String(query.get(name));
  const mode = query.get('mode') || 'persistent';
  return {
    namespace: path.slice(0, 2).join('/'),
    typed: query.get('q') || '',
    mode: MODES.some(([known]) => known === mode) ? mode : 'persistent',
    properties: query.getAll('p').map((pair) => {
      const at = pair.indexOf('=');
      return at < 0 ? [pair, ''] : [pair.slice(0, at), pair.slice(at + 1)];
    }),
    as: Object.keys(as).length || query.has('as') ? as : null,
  };
}

/** @param {Question} question @param {Record<string, any>} [more] */
export function queryOf(question, more = {}) {
  return params({
    q: question.typed,
    mode: question.mode === 'persistent' ? '' : question.mode,
    p: question.properties.map(([key, value]) => `${key}=${value}`),
    ...(question.as === null ? {} : { as: 1, ...question.as }),
    ...more,
  });
}

/** Properties that are asked with: one whose value is not typed yet is none. @param {Question} question */
const asked = (question) => question.properties.filter(([key, value]) => key !== '' && value !== '');

/** @param {Question} question */
export const patternOf = (question) => fullPattern(question.typed, question.namespace).full;

/** What a listing is asked with by GET. @param {Question} question */
export function parametersOf(question) {
  return {
    pattern: patternOf(question),
    mode: question.mode === 'persistent' ? '' : question.mode,
    property: asked(question).map(([key, value]) => `${key}=${value}`),
  };
}

/** The body of `explain` and `:why`. @param {Question} question */
export function bodyOf(question) {
  return {
    pattern: patternOf(question) || null,
    mode: question.mode,
    properties: Object.fromEntries(asked(question)),
    ...(question.as === null ? {} : { as: question.as }),
  };
}

/** @param {Question} question @param {boolean} signedIn @returns {[string, string][]} the name of a form, and its text */
export function formsOf(question, signedIn) {
  const path = `${ofNamespace(question.namespace)}/topics`;
  const url = address(path).href;
  const pairs = [...new URL(address(path, parametersOf(question))).searchParams];
  const curl = ['curl -sS -G', '-H \'Accept: text/plain\'', ...(signedIn ? ['-H "Authorization: $AUTHORIZATION"'] : []),
    ...pairs.map((pair) => `--data-urlencode ${quoted(pair.join('='))}`), quoted(url)];
  const command = [`broker-core list ${quoted(question.namespace)}`];
  const { full } = fullPattern(question.typed, question.namespace);
  if (full) command.push(`--pattern ${quoted(full)}`);
  if (question.mode !== 'persistent') command.push(`--mode ${question.mode.replace('_', '-')}`);
  for (const [key, value] of asked(question)) command.push(`--property ${quoted(`${key}=${value}`)}`);
  if (signedIn) command.push('--token-file TOKEN');
  command.push(`--url ${quoted(ROOT.href.replace(/\/$/, ''))}`);
  const python = [
    'import json', ...(signedIn ? ['import os'] : []), 'from urllib.parse import urlencode', 'from urllib.request import Request, urlopen', '',
    `question = [${pairs.map((pair) => `(${pair.map(text).join(', ')})`).join(', ')}]`,
    `request = Request(${text(url)} + "?" + urlencode(question))`,
    ...(signedIn ? ['request.add_header("Authorization", os.environ["AUTHORIZATION"])'] : []),
    'with urlopen(request) as answer:', '    topics = json.load(answer)["items"]', 'print(*topics, sep="\\n")',
  ];
  return [['curl', curl.join(' \\\n  ')], ['broker-core list', command.join(' \\\n  ')], ['Python', python.join('\n')]];
}

/** A text as Python writes it; JSON's escapes are Python's. @param {string} value */
const text = (value) => JSON.stringify(value);

const SAVED = 'broker-core.saved';

/** Questions that somebody kept in this browser: names and addresses, newest first. @returns {{name: string, hash: string}[]} */
export function savedQuestions() {
  try {
    const found = JSON.parse(localStorage.getItem(SAVED) || '[]');
    return Array.isArray(found) ? found.filter((each) => typeof each?.name === 'string' && /^#\//.test(each?.hash)) : [];
  } catch {
    return []; // a browser without storage
  }
}

/** @param {string} name @param {string | null} hash `null`: forget it @returns {boolean} whether the browser keeps it */
export function save(name, hash) {
  const others = savedQuestions().filter((each) => each.name !== name);
  try {
    localStorage.setItem(SAVED, JSON.stringify(hash === null ? others : [{ name, hash }, ...others].slice(0, 50)));
    return true;
  } catch {
    return false;
  }
}
