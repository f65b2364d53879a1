// Numbers and times in the language of the browser.

const whole = new Intl.NumberFormat();
const some = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 3 });
const moment = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' });
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto' });
const plurals = new Intl.PluralRules('en');

export const number = (value) => (typeof value === 'number' && Number.isFinite(value) ? whole.format(value) : '–');

/** @param {number} value @param {string} one @param {string} [many] the texts of the page are English */
export const counted = (value, one, many = `${one}s`) => `${number(value)} ${plurals.select(value) === 'one' ? one : many}`;

export function size(bytes) {
  if (typeof bytes !== 'number') return '–';
  const unit = Math.max(0, Math.min(4, Math.floor(Math.log2(bytes) / 10)));
  return `${unit ? some.format(bytes / 1024 ** unit) : whole.format(bytes)} ${['B', 'KiB', 'MiB', 'GiB', 'TiB'][unit]}`;
}

export function duration(seconds) {
  if (typeof seconds !== 'number' || !Number.isFinite(seconds)) return '–';
  if (seconds < 1e-3) return `${some.format(seconds * 1e6)} µs`;
  if (seconds < 1) return `${some.format(seconds * 1e3)} ms`;
  if (seconds < 120) return `${some.format(seconds)} s`;
  if (seconds < 7200) return `${whole.format(Math.round(seconds / 60))} min`;
  if (seconds < 172800) return `${whole.format(Math.round(seconds / 3600))} h`;
  return `${whole.format(Math.round(seconds / 86400))} d`;
}

/** @param {any} value milliseconds, or text of ISO 8601 @returns {Date | null} */
export function date(value) {
  const found = new Date(value ?? '');
  return Number.isNaN(found.getTime()) ? null : found;
}

const shown = (format) => (value) => {
  const found = date(value);
  return found === null ? '–' : format.format(found);
};
export const time = shown(moment);
export const clockTime = shown(clock);

export function ago(value) {
  const found = date(value);
  if (found === null) return '–';
  const seconds = (found.getTime() - Date.now()) / 1000;
  for (const [unit, length] of /** @type {const} */ ([['day', 86400], ['hour', 3600], ['minute', 60]])) {
    if (Math.abs(seconds) >= length) return relative.format(Math.round(seconds / length), unit);
  }
  return relative.format(Math.round(seconds), 'second');
}

export const percent = (value) => (typeof value === 'number' ? `${some.format(value * 100)} %` : '–');

/** A value whose type is not known before, as one line of text. */
export function anything(value) {
  if (value === null || value === undefined) return '–';
  if (typeof value === 'number') return Number.isInteger(value) ? whole.format(value) : some.format(value);
  if (typeof value === 'string') return value;
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  return JSON.stringify(value);
}

/** A name without its namespace; a topic that is not persistent keeps its full one. @param {string} namespace @param {string} name */
export function shortName(namespace, name) {
  const before = `persistent://${namespace}/`;
  return name.startsWith(before) ? name.slice(before.length) : name;
}

/** A text whose controls and the like are as `how` writes them. @param {string} text @param {(each: string) => string} how */
export const unseen = (text, how) => text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, how);

/** For a shell; a terminal may run what is not escaped. @param {string} text */
export function quoted(text) {
  if (/^[\w@%+=:,./-]+$/.test(text)) return text;
  const escaped = (each) => unseen(each, (one) => encodeURIComponent(one).replaceAll('%', '\\x'));
  return escaped(text) === text ? `'${text.replaceAll("'", `'\\''`)}'` : `$'${escaped(text.replace(/[\\']/g, '\\$&'))}'`;
}
