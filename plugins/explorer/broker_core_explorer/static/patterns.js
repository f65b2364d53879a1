// Topics patterns as they are typed: their full form, and which part of a name is literal and which was captured.

const META = /[\\^$.*+?()[\]{}|]/;
/** What a pattern is not asked of. */
const PARTITION = /-partition-\d+$/;
const SCHEME = /^(?:non-)?persistent:\/\//;

/** @param {string} text */
export const literal = (text) => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');

/** Whether a text means only itself. @param {string} text */
export const isPlain = (text) => !META.test(text);

/**
 * What is asked for a text that was typed, and where the text begins in it. A name is matched with `tenant/namespace/`
 * before it, which nobody likes to type.
 * @param {string} typed
 * @param {string} namespace
 * @returns {{full: string, shift: number}}
 */
export function fullPattern(typed, namespace) {
  if (typed === '') return { full: '', shift: 0 };
  const body = typed.replace(/^\^/, '').replace(SCHEME, '');
  const before = `${literal(namespace)}/`;
  if (body.startsWith(before) || body.startsWith(`${namespace}/`)) return { full: typed, shift: 0 };
  if (SCHEME.test(typed)) return { full: typed, shift: 0 };
  const open = topLevelChoice(body) ? '(?:' : '';
  return { full: before + open + body + (open && ')'), shift: before.length + open.length - (typed.length - body.length) };
}

/** Whether a pattern has a `|` outside of groups and classes. @param {string} pattern */
function topLevelChoice(pattern) {
  return atoms(pattern).some((atom) => atom.text === '|');
}

/**
 * The parts of a pattern from left to right: literal characters, groups, classes, dots, each with what repeats it.
 * @param {string} pattern
 * @returns {{text: string, plain: boolean}[]}
 */
export function atoms(pattern) {
  const found = [];
  let at = 0;
  while (at < pattern.length) {
    const start = at;
    const char = pattern[at];
    let plain = false;
    if (char === '\\') {
      plain = at + 1 < pattern.length && !/[a-zA-Z0-9]/.test(pattern[at + 1]);
      at += 2;
    } else if (char === '(') at = closing(pattern, at);
    else if (char === '[') at = endOfClass(pattern, at);
    else {
      plain = !META.test(char);
      at += String.fromCodePoint(/** @type {number} */ (pattern.codePointAt(at))).length;
    }
    const repeated = /^(?:[*+?]|\{\d+(?:,\d*)?\})[?]?/.exec(pattern.slice(at));
    if (repeated !== null && char !== '|' && char !== '^' && char !== '$') {
      at += repeated[0].length;
      plain = false;
    }
    found.push({ text: pattern.slice(start, at), plain });
  }
  return found;
}

/** @param {string} pattern @param {number} at */
function closing(pattern, at) {
  let depth = 0;
  while (at < pattern.length) {
    if (pattern[at] === '\\') at += 1;
    else if (pattern[at] === '[') at = endOfClass(pattern, at) - 1;
    else if (pattern[at] === '(') depth += 1;
    else if (pattern[at] === ')') {
      depth -= 1;
      if (depth === 0) return at + 1;
    }
    at += 1;
  }
  return at;
}

/** @param {string} pattern @param {number} at */
function endOfClass(pattern, at) {
  at += 1;
  if (pattern[at] === '^') at += 1;
  if (pattern[at] === ']') at += 1;
  while (at < pattern.length && pattern[at] !== ']') at += pattern[at] === '\\' ? 2 : 1;
  return at + 1;
}

/** The longest name that is marked, and how often a pattern may repeat: a link can bring any pattern, and RE2 is not here. */
const MOST_MARKED = 300;
const MOST_REPEATS = 3;
const LONGEST_MS = 20;

/**
 * A function from the full name of a topic to its marked parts, `[start, end, captured]`; the rest is as it is. RE2
 * decides on the server what matches; this colours what the server sent, so whatever is doubtful has no colour.
 * @param {string} full
 * @returns {(name: string) => [number, number, boolean][]}
 */
export function marker(full) {
  const none = () => [];
  const pattern = full.replace(/^\^/, '').replace(/\$$/, '');
  if (pattern === '') return none;
  const parts = atoms(pattern);
  if (parts.some((part) => part.text === '|')) return none;
  const repeats = pattern.match(/[*+]|\{\d+,/g) || [];
  if (repeats.length > MOST_REPEATS || parts.some((part) => /^\(.*[*+{].*\)[*+{]/s.test(part.text))) {
    // Only what comes before the first doubtful part is sure.
    const first = parts.findIndex((part) => !part.plain);
    return compiled(first < 0 ? parts : parts.slice(0, first), true) || none;
  }
  return compiled(parts, false) || none;
}

/** @param {{text: string, plain: boolean}[]} parts @param {boolean} open whether names go on after the last part */
function compiled(parts, open) {
  /** @type {{text: string, plain: boolean}[]} */
  const runs = [];
  for (const part of parts) {
    const last = runs.at(-1);
    if (part.plain && last?.plain) last.text += part.text;
    else runs.push({ ...part });
  }
  let expression;
  try {
    const body = runs.map((run) => `(${run.text.replaceAll('(?P<', '(?<')})`).join('');
    expression = new RegExp(`^${body}${open ? '' : '$'}`, 'ds');
  } catch {
    return null; // RE2 knows it, JavaScript does not
  }
  // A group of the pattern is numbered too: ours are found by counting the opening ones before them.
  const ours = [];
  let group = 1;
  for (const run of runs) {
    ours.push(group);
    group += 1 + (run.text.replace(/\\./g, '').replace(/\[[^\]]*\]/g, '').match(/\((?!\?)|\(\?P?</g) || []).length;
  }
  const withScheme = SCHEME.test(runs[0]?.text || '');
  let dear = false;
  return (name) => {
    const shift = withScheme ? 0 : (SCHEME.exec(name)?.[0].length ?? 0);
    if (dear || name.length - shift > MOST_MARKED) return [];
    const before = performance.now();
    const match = /** @type {any} */ (expression.exec(name.slice(shift).replace(PARTITION, '')));
    dear = performance.now() - before > LONGEST_MS;
    if (match === null) return [];
    /** @type {[number, number, boolean][]} */
    const marks = [];
    runs.forEach((run, index) => {
      const at = match.indices[ours[index]];
      if (at !== undefined && at[1] > at[0]) marks.push([at[0] + shift, at[1] + shift, !run.plain]);
    });
    return marks;
  };
}
