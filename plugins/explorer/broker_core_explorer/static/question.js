// The question of a listing, its form, its pattern.
import { ROOT, address, counted, go, html, linkIn, may, number, ofNamespace, params, part, quoted, split, unseen, useGet, usePage, useState } from './page.js';
import { Command, Copy, Dialog, Field, TextInput, download } from './parts.js';

const MODES = [['persistent', 'Persistent'], ['non_persistent', 'Non-persistent'], ['all', 'All']];
const AS = /** @type {const} */ (['role', 'address', 'client_version']);

/** @type {F.questionOf} */
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
      const [key, value = ''] = split(pair, '=');
      return [key, value];
    }),
    as: Object.keys(as).length || query.has('as') ? as : null,
  };
}

/** @type {F.queryOf} */
export function queryOf(question, more = {}) {
  return params({
    q: question.typed,
    mode: question.mode === 'persistent' ? '' : question.mode,
    p: question.properties.map(([key, value]) => `${key}=${value}`),
    ...(question.as === null ? {} : { as: 1, ...question.as }),
    ...more,
  });
}

/** @type {F.pairs} */
const asked = (question) => question.properties.filter(([key, value]) => key !== '' && value !== '');

/** @type {F.patternOf} */
export const patternOf = (question) => fullPattern(question.typed, question.namespace).full;

/** What a listing is asked with by GET. @type {F.valuesOf} */
export function parametersOf(question) {
  return {
    pattern: patternOf(question),
    mode: question.mode === 'persistent' ? '' : question.mode,
    property: asked(question).map(([key, value]) => `${key}=${value}`),
  };
}

/** The body of `explain` and `:why`. @type {F.valuesOf} */
export function bodyOf(question) {
  return {
    pattern: patternOf(question) || null,
    mode: question.mode,
    properties: Object.fromEntries(asked(question)),
    ...(question.as === null ? {} : { as: question.as }),
  };
}

const curlCredentials = ({ signedIn, user }) => (user ? [`-u ${quoted(user)}`] : signedIn ? ['-H "Authorization: Bearer $TOKEN"'] : []);

/** @type {F.commandOf} */
export const commandOf = (api, method, path, { body }) => [`curl -sS -X ${method}`, ...curlCredentials(api),
  ...(body ? ["-H 'Content-Type: application/json'", `-d ${quoted(JSON.stringify(body))}`] : []), quoted(address(path).href)].join(' \\\n  ');

/** @type {F.formsOf} */
export function formsOf(question, { signedIn, user }) {
  const path = `${ofNamespace(question.namespace)}/topics`;
  const url = address(path).href;
  const pairs = [...new URL(address(path, parametersOf(question))).searchParams];
  const curl = ['curl -sS -G', '-H \'Accept: text/plain\'', ...curlCredentials({ signedIn, user }),
    ...pairs.map((pair) => `--data-urlencode ${quoted(pair.join('='))}`), quoted(url)];
  const option = question.namespace[0] === '-'; // the command would take it for one
  const command = [`broker-core list${option ? '' : ` ${quoted(question.namespace)}`}`];
  const { full } = fullPattern(question.typed, question.namespace);
  if (full) command.push(`--pattern ${quoted(full)}`);
  if (question.mode !== 'persistent') command.push(`--mode ${question.mode.replace('_', '-')}`);
  for (const [key, value] of asked(question)) command.push(`--property ${quoted(`${key}=${value}`)}`);
  if (signedIn) command.push(user ? `--user ${quoted(user)} --password-file FILE` : '--token-file FILE');
  command.push(`--url ${quoted(ROOT.href.replace(/\/$/, ''))}`);
  if (option) command.push(`-- ${quoted(question.namespace)}`);
  const python = [
    'import json', ...(signedIn ? ['import os'] : []), 'from urllib.parse import urlencode', 'from urllib.request import Request, urlopen', '',
    `question = [${pairs.map((pair) => `(${pair.map(pythonText).join(', ')})`).join(', ')}]`,
    `request = Request(${pythonText(url)} + "?" + urlencode(question))`,
    ...(signedIn ? ['request.add_header("Authorization", os.environ["AUTHORIZATION"])  # such as Bearer TOKEN'] : []),
    'with urlopen(request) as answer:', '    for topic in json.load(answer)["items"]:', '        print(topic)',
  ];
  return [['curl', curl.join(' \\\n  ')], ['broker-core list', command.join(' \\\n  ')], ['Python', python.join('\n')]];
}

const pythonText = (value) => unseen(JSON.stringify(value), (each) => `\\U${Number(each.codePointAt(0)).toString(16).padStart(8, '0')}`);

/** @type {F.stored} */
export function stored(name, value) {
  try {
    if (value !== undefined) localStorage.setItem(`broker-core.${name}`, value);
    return localStorage.getItem(`broker-core.${name}`);
  } catch {
    return undefined;
  }
}

/** Newest first. */
export function savedQuestions() {
  let found;
  try {
    found = JSON.parse(stored('saved') || '[]');
  } catch {
    // somebody else wrote it
  }
  return Array.isArray(found) ? found.filter((each) => typeof each?.name === 'string' && /^#\//.test(each?.hash)) : [];
}

/** The name, or one like it, that no other question is kept by. */
function freeName(name) {
  const others = savedQuestions().filter((each) => each.hash !== location.hash).map((each) => each.name);
  let free = name;
  for (let at = 2; others.includes(free); at += 1) free = `${name} (${at})`;
  return free;
}

/** @type {F.save} */
export function save(name, hash) {
  const others = savedQuestions().filter((each) => each.name !== name);
  return stored('saved', JSON.stringify(hash === null ? others : [{ name, hash }, ...others].slice(0, 50)));
}

export function Keep({ question, total, refused, close }) {
  const { api, say } = usePage();
  const [name, setName] = useState(() => freeName([question.typed || question.namespace, ...queryOf(question).getAll('p')].join(' ')));
  const replaces = freeName(name) !== name;
  const [progress, setProgress] = useState('');
  const here = location.href;
  const ask = (more) => api.get(`${ofNamespace(question.namespace)}/topics`, { ...parametersOf(question), limit: MOST_NAMES, ...more });
  const csv = async () => {
    // No cell begins as a formula does.
    const chunks = ['name,partitions,properties\r\n'];
    let cursor = '';
    let rows = 0;
    try {
      do {
        const page = await ask({ cursor, detail: DETAIL });
        chunks.push(page.items.map(({ name: of, partitions, properties }) => [of, partitions, JSON.stringify(properties)]
          .map((each) => (/[",\r\n]/.test(each) ? `"${each.replaceAll('"', '""')}"` : each)).join() + '\r\n').join(''));
        rows += page.items.length;
        cursor = page.next;
        setProgress(`${number(rows)} of ${number(total)}`);
      } while (cursor);
      download(`${question.namespace.replace('/', '-')}.csv`, chunks, 'text/csv');
      setProgress(`${counted(rows, 'name')} in the file`);
    } catch (error) {
      setProgress(`Stopped: ${error.message}`);
    }
  };
  return html`<${Dialog} title="Keep this question" close=${close} wide>
    <form class="line" onSubmit=${(event) => {
      event.preventDefault();
      say(save(name, location.hash) ? 'Kept: it is under Namespaces' : 'Not kept: this browser stores nothing for this page');
      close();
    }}>
      <${Field} label="Keep it in this browser as" class="grows" hint=${replaces && 'The question of this name would be lost.'}><${TextInput} value=${name} set=${setName} onFocus=${(event) => event.target.select()} /><//>
      <button class="primary" disabled=${!name}>${replaces ? 'Replace it' : 'Keep'}</button>
    </form>
    <div class="line"><${Copy} text=${here} label="Copy the link" />
      ${question.as || total === undefined ? null : html`${total <= MOST_NAMES && html`<${Copy} label="Copy the names" text=${async () => (await ask({})).items.join('\n')} />`}
      <button type="button" class="quiet" onClick=${csv}>CSV of all ${number(total)} names</button>`}
      <span class="muted" role="status">${progress}</span></div>
    ${question.as || refused ? html`<p class="muted">The commands below ${refused ? 'are refused too' : 'ask as yourself'}.</p>` : null}
    ${formsOf(question, api).map(([title, text]) => html`<h3>${title}</h3><${Command} text=${text} label=${`Copy ${title}`} />`)}
  <//>`;
}

const MOST_NAMES = 10_000;

export const DETAIL = 'partitions,properties';

/** @param {FormOf} props */
export function QuestionForm({ screen, question, error, more = {}, asks = true }) {
  const { me } = usePage();
  const { namespace, typed, mode, properties } = question;
  const set = (/** @type {Partial<Question>} */ changed) => go(
    linkIn(screen, namespace, queryOf({ ...question, ...changed }, more)),
    { replace: true },
  );
  const known = (me?.server?.property_keys || []).slice(0, 8);
  const valueOf = (key) => properties.find(([name]) => name === key)?.[1] || '';
  const setProperty = (key, value) => {
    const others = properties.filter(([name]) => name !== key);
    set({ properties: value === '' ? others : [...others, [key, value]] });
  };
  const others = properties.filter(([key]) => !known.includes(key));
  const { full } = fullPattern(typed, namespace);
  const refused = isRefused(error) ? error : null;
  const [, other] = /^\^?(?:(?:non-)?persistent:\/\/)?([\w=:.-]+\/[\w=:.-]+)\/[^|]*$/.exec(typed) || [];
  const doubt = DOUBTS.map(([found, better, says]) => [says, typed.replace(found, better)]).find(([, better]) => better !== typed);
  return html`<form class="question" role="search" onSubmit=${(event) => event.preventDefault()}>
    <div class="line">
      <${Field} label="Pattern of names" class="grows" bad=${refused && html`<${Refused} error=${refused} question=${question} />`}
          hint=${typed === '' ? html`A regular expression, as a consumer subscribes with: <code>orders-.*</code>. Empty: all topics.`
            : html`Asked as <code class="full"><bdi>${full}</bdi></code>`}>
        <${TextInput} value=${typed} set=${(text) => set({ typed: text })} class="code" data-search
          placeholder="orders-.*" aria-invalid=${refused ? 'true' : undefined} />
      <//>
      <${Field} label="Topics">
        <select value=${mode} onChange=${(event) => set({ mode: event.target.value })}>
          ${MODES.map(([value, text]) => html`<option value=${value}>${text}</option>`)}
        </select>
      <//>
      ${known.map((key) => html`<${PropertyField} key=${key} name=${key} question=${question}
        value=${valueOf(key)} set=${(value) => setProperty(key, value)} />`)}
    </div>
    ${other && other !== namespace && html`<p class="hint">It names another namespace. <a href=${linkIn(screen, other, queryOf(question, more))}>Ask in <bdi>${other}</bdi></a></p>`}
    ${doubt && !refused && html`<p class="hint">${doubt[0]} <button type="button" class="link" onClick=${() => set({ typed: doubt[1] })}><bdi>${doubt[1]}</bdi></button></p>`}
    ${others.length ? html`<p class="hint">Also asked with ${others.map(([key, value]) => html`<span class="pair"><bdi>${key}</bdi>=<bdi>${value}</bdi>
      <button type="button" class="quiet icon" aria-label=${`Take ${key} away`} onClick=${() => setProperty(key, '')}>✕</button></span> `)}</p>` : null}
    <${MoreOfQuestion} question=${question} set=${set} asks=${asks} />
  </form>`;
}

/** @type {F.useValues} */
export const useValues = (question, name, prefix) => useGet(prefix === null ? null : `${ofNamespace(question.namespace)}/properties/${part(name)}`,
  { ...parametersOf({ ...question, properties: question.properties.filter(([key]) => key !== name) }), prefix, limit: 50 });

function PropertyField({ name, value, set, question }) {
  const [wanted, want] = useState(false);
  const list = `values-of-${name}`;
  const found = useValues(question, name, wanted ? value : null);
  const items = found.data?.items || [];
  return html`<${Field} label=${html`Property <bdi>${name}</bdi>`} class="property">
    <${TextInput} value=${value} set=${set} list=${list} placeholder="any" onFocus=${() => want(true)} />
    <datalist id=${list}>${items.map((each) => html`<option value=${each.value}>${counted(each.names, 'name')}</option>`)}</datalist>
  <//>`;
}

/** A property that selects nothing by itself, and somebody else as the one who asks. */
function MoreOfQuestion({ question, set, asks }) {
  const { me } = usePage();
  const { properties } = question;
  const as = asks ? question.as : null;
  const [pair, setPair] = useState('');
  const put = (name, value) => {
    const next = { ...as, [name]: value };
    if (value === '') delete next[name];
    set({ as: Object.keys(next).length ? next : null });
  };
  const [key, value] = split(pair, '=');
  const whole = key !== '' && value !== undefined;
  const add = () => {
    if (!whole) return;
    set({ properties: [...properties.filter(([each]) => each !== key), [key, value]] });
    setPair('');
  };
  const asField = (name, label, placeholder) => html`<${Field} label=${label}><${TextInput} value=${as?.[name] || ''} set=${(text) => put(name, text)} placeholder=${placeholder} /><//>`;
  return html`<details class="more" open=${as !== null || undefined}>
    <summary>${as === null ? (asks ? 'As somebody else, other properties' : 'Other properties') : html`Asked as <b><bdi>${as.role || 'nobody'}</bdi></b>`}</summary>
    ${asks && html`<div class="line">${may(me, 'admin') ? html`
      ${asField('role', 'As the role', 'team-a')}${asField('address', 'From the address', '192.0.2.7')}${asField('client_version', 'With the client', 'Pulsar-Java-v4.2.4')}`
      : html`<p class="hint">To ask as somebody else you need the right <b>admin</b> in this namespace.</p>`}
      ${as === null ? null : html`<button type="button" onClick=${() => set({ as: null })}>As myself</button>`}</div>`}
    <div class="line">
      <${Field} label="One more property" hint=${pair && !whole ? 'A key, = and a value.' : 'As a consumer sends it: plugins may decide by it.'}>
        <${TextInput} value=${pair} set=${setPair} placeholder="key=value" onKeyDown=${(event) => event.key === 'Enter' && add()} />
      <//>
      <button type="button" disabled=${!whole} onClick=${add}>Add</button>
    </div>
  </details>`;
}

/** @type {F.isRefused} */
export const isRefused = (error) => error?.cause_ === 'PATTERN' && error.problem.error;

function Refused({ error, question }) {
  const { reason, offset, length } = error.problem.error;
  const { shift } = fullPattern(question.typed, question.namespace);
  const help = html`<a href="#/help/patterns">What RE2 takes</a>`;
  const symbols = [...question.typed];
  const start = typeof offset === 'number' ? offset - shift : -1;
  if (start < 0 || start >= symbols.length) return html`${reason} ${help}`;
  const end = start + Math.max(1, length || 1);
  return html`<span>${reason}, at character ${start + 1}: <code class="refused"><bdi>${symbols.slice(0, start).join('')}<mark class="wrong">${symbols.slice(start, end).join('')}</mark>${symbols.slice(end).join('')}</bdi></code> ${help}</span>`;
}

const META = /[\\^$.*+?()[\]{}|]/;
/** What a pattern is not asked of. */
const PARTITION = /-partition-\d+$/;
const SCHEME = /^(?:non-)?persistent:\/\//;

/** @type {F.text} */
export const literal = (text) => text.replace(RegExp(META, 'g'), '\\$&');

export const SPACE = 'It begins or ends with a space.';
/** Mistakes, what is meant, and why. @type {[RegExp, string, string][]} */
const DOUBTS = [
  [/^\s+|\s+$/g, '', `${SPACE} Without it:`],
  [/^non-persistent:\/\//, '', 'The domain in a pattern selects nothing, “Topics” does. Without it:'],
  [PARTITION, '', 'A pattern is asked of names without -partition-N:'],
  [/\|\^/g, '|', 'A ^ after | matches no name:'],
  [/(^|[^\\.)\]}*+?])\*/g, '$1.*', '* repeats what stands before it. Did you mean'],
  [/^[^\\^$.*+?()[\]{}|]+$/, '.*$&.*', 'Only the topic with exactly this name matches. Names that contain it:'],
];

/** @type {F.fullPattern} */
function fullPattern(typed, namespace) {
  if (typed === '') return { full: '', shift: 0 };
  const body = typed.replace(/^\^/, '').replace(SCHEME, '');
  const before = `${literal(namespace)}/`;
  if (SCHEME.test(typed) || body.startsWith(before) || body.startsWith(`${namespace}/`)) return { full: typed, shift: 0 };
  const open = atoms(body).some((atom) => atom.text[0] === '|') ? '(?:' : '';
  return { full: before + open + body + (open && ')'), shift: before.length + open.length - (typed.length - body.length) };
}

/** An escape, a class or a character, and what repeats it. */
const TOKEN = /(\\.|\[\^?\]?(?:\\.|[^\\\]])*\]?|.)((?:[*+?]|\{\d+(?:,\d*)?\})\??)?/gsu;

/** Literal text, groups, classes, dots, each with what repeats it. */
function atoms(pattern) {
  const found = [];
  let depth = 0;
  for (const [text, token, repeated] of pattern.matchAll(TOKEN)) {
    const plain = !repeated && (/^\\[^a-z\d]/i.test(token) || !META.test(token));
    const last = found.at(-1);
    if (depth || (plain && last?.plain)) last.text += text;
    else found.push({ text, plain });
    depth = Math.max(0, depth + Number(token === '(') - Number(token === ')'));
  }
  return found;
}

/** A link can bring any pattern, and RE2 is not here. */
const MOST_MARKED = 300;
const MOST_REPEATS = 3;
const LONGEST_MS = 20;

/** @type {F.marker} */
export function marker(full) {
  const none = () => [];
  const pattern = full.replace(/^\^/, '').replace(/\$$/, '');
  const runs = atoms(pattern);
  const repeats = pattern.match(/[*+]|\{\d+,/g) || [];
  if (repeats.length > MOST_REPEATS || runs.some((run) => /^(\||\(.*[*+{].*\)[*+{])/s.test(run.text))) return none;
  let expression;
  try {
    const body = runs.map((run, at) => `(?<run${at}>${run.text.replaceAll('(?P<', '(?<')})`).join('');
    expression = new RegExp(`^${body}$`, 'ds');
  } catch {
    return none; // RE2 knows it, JavaScript does not
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
    const marks = [];
    runs.forEach((run, index) => {
      const at = match.indices.groups[`run${index}`];
      if (at !== undefined && at[1] > at[0]) marks.push([at[0] + shift, at[1] + shift, !run.plain]);
    });
    return marks;
  };
}
