// The page, the list of namespaces, and help.
import { Api, PageContext, ROOT, ago, clockTime, counted, date, go, html, isSeen, link, linkIn, may, number, plain, render, time, unchangeable, useAsk, useCallback, useEffect, useErrorBoundary, useEvent, useGet, useId, useLayoutEffect, useMemo, usePage, usePlace, useRef, useState } from './page.js';
import { Answer, Command, Dialog, Empty, Facts, Failure, Field, Rows, Said, Table, TextInput, Title, Way, barred } from './parts.js';
import { commandOf, questionOf, save, savedQuestions, stored } from './question.js';
import { Edit, Topic, Topics, Why } from './screens/topics.js';
import { Live, PluginScreen, Plugins, Server } from './screens/server.js';

const SCREENS = {
  __proto__: null, // `#/constructor` is no screen
  namespaces: { screen: Namespaces, title: () => 'Namespaces' },
  topics: { screen: Topics, title: (path) => path.join('/'), named: true },
  why: { screen: Why, title: (path) => `Why not? ${path.join('/')}`, named: true },
  live: { screen: Live, title: (path) => `Live ${path.join('/')}`, named: true },
  topic: { screen: Topic, title: (path) => path.slice(2).join('/'), named: true },
  plugins: { screen: Plugins, title: () => 'Plugins' },
  server: { screen: Server, title: () => 'Server' },
  help: { screen: Help, title: () => 'Help' },
  screen: { screen: PluginScreen, title: () => '' },
};
const AGAIN_MS = 2000;
const SILENT = { text: '', href: '' };
const THEMES = ['auto', 'light', 'dark'];

/** The field, its text, and the scheme of a 401. */
const SIGNS = [['token', 'By a token', 'bearer'], ['password', 'By a password', 'basic']];
const MOST_WORDS = 8;

const api = new Api();
// Voices type them unasked.
let lone = stored('keys') !== 'off';

const wordsOf = (text) => [...new Set(text.split(/\s+/).filter(Boolean))];

function App() {
  const place = usePlace();
  const [epoch, setEpoch] = useState(0);
  const [asker, setAsker] = useState(0);
  const [signing, sign] = useState(/** @type {any} */ (null));
  const [away, setAway] = useState(false);
  const [said, setSaid] = useState(SILENT);
  const dismissed = useRef(false);
  const again = useCallback(() => {
    dismissed.current = false;
    setEpoch((before) => before + 1);
  }, []);
  const saying = useRef(0);
  const say = useCallback((text, href = '') => {
    clearTimeout(saying.current);
    setSaid({ text, href });
    saying.current = setTimeout(() => setSaid(SILENT), href ? 20_000 : 6000);
  }, []);
  useEffect(() => {
    // More of them come when the dialog is closed.
    api.onUnauthenticated = (error) => dismissed.current || sign((before) => before || { error, first: !api.signedIn });
    api.onLost = () => setAway(true);
  }, []);
  useEvent(window, 'ask-again', again);
  useEffect(() => {
    if (!away) return undefined;
    const timer = setInterval(async () => {
      if (!isSeen()) return;
      try {
        await api.get('me');
      } catch (error) {
        if (error.status !== 401) return;
      }
      // Nothing else asks again.
      setAway(false);
      again();
    }, AGAIN_MS);
    return () => clearInterval(timer);
  }, [away]);
  const shared = useMemo(() => ({ api, me: null, epoch, say, said, screens: [], brought: null }), [epoch, said]);
  return html`<${PageContext.Provider} value=${shared}>
    <${Shell} key=${asker} first=${!asker} renew=${() => {
      again();
      setAsker(asker + 1);
    }} dismiss=${() => sign((before) => {
      dismissed.current ||= before !== null;
      return null;
    })} place=${place} away=${away} signing=${signing} sign=${sign} again=${again} />
  <//>`;
}

/** What one asker sees; the next one begins with nothing of it. */
function Shell({ first, renew, dismiss, place, away, signing, sign, again }) {
  const page = usePage();
  const { say, said } = page;
  const namespace = SCREENS[place.screen]?.named ? place.path.slice(0, 2).join('/') : '';
  const me = useGet('me', { namespace });
  const brought = useAsk((signal) => api.get('screens', {}, signal), [namespace], { every: 10_000 });
  const [open, setOpen] = useState('');
  const [theme, setTheme] = useState(() => THEMES.find((each) => each === stored('theme')) || 'auto');
  const [edited, setEdited] = useState(/** @type {any} */ (null));
  const question = questionOf(place);
  const edit = (given = { name: place.query.get('topic'), properties: Object.fromEntries(question.properties.filter(([key]) => seen?.server.property_keys.includes(key))) }, topic = null) => setEdited({ given, topic });
  const main = useRef(/** @type {any} */ (null));
  const seen = me.error?.status === 401 ? undefined : me.data;
  const screens = brought.data?.items || [];
  // The addresses of files have a hash of all of them.
  const now = screens.find((each) => each.plugin === 'explorer')?.module;
  const renewed = now && new URL(now, ROOT).href !== new URL('screens/server.js', import.meta.url).href;
  const known = SCREENS[place.screen];
  const where = `${place.screen}/${place.path.join('/')}`;
  const title = !known ? 'Nothing here' : place.screen === 'screen' ? screens.find((each) => each.id === place.path[0])?.title : known.title(place.path);

  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    stored('theme', theme);
  }, [theme]);
  const before = useRef(first ? '' : 'another asker');
  useEffect(() => {
    document.title = plain(title ? `${title} · broker-core` : 'broker-core');
  }, [title]);
  useLayoutEffect(() => {
    // The heading has the focus, as of a new page; before a key is pressed.
    if (before.current) {
      setOpen('');
      setEdited(null);
      if (said.href) say('');
      main.current?.querySelector('h1')?.focus();
      main.current?.scrollTo?.(0, 0);
      scrollTo(0, 0);
    }
    before.current = where;
  }, [where]);
  useEffect(() => {
    const left = Number(date(seen?.until)?.getTime()) - Date.now();
    if (!(left < 2 ** 31)) return undefined; // no timer waits longer
    const timer = setTimeout(again, Math.max(0, left) + 500);
    return () => clearTimeout(timer);
  }, [seen?.until]);
  const led = useRef(0);
  useEvent(window, 'keydown', (event) => {
    const { key, ctrlKey, metaKey, altKey, target } = event;
    if ((ctrlKey || metaKey) && key.toLowerCase() === 'k') {
      event.preventDefault();
      setOpen('palette');
      return;
    }
    if (key === 'Escape') say('');
    if (target.matches?.('main [data-search]')) {
      if (key === 'Escape') {
        target.value = '';
        target.dispatchEvent(new InputEvent('input'));
      } else if (key === 'ArrowDown' || (key === 'Enter' && target.closest('.question'))) {
        // The list, or its only row; not while another one is awaited.
        const list = /** @type {any} */ (document.querySelector(':not(.stale) > .rows > .scroller'));
        const [only, other] = list?.querySelectorAll('.row') || [];
        event.preventDefault();
        if (key === 'Enter' && only && !other) only.click();
        else list?.focus();
      }
    }
    if (!lone || ctrlKey || metaKey || altKey || target.closest('input, textarea, select, dialog')) return;
    const letter = { n: 'namespaces', p: 'plugins', s: 'server' }[key];
    if (key === '/') {
      const search = /** @type {any} */ (document.querySelector('main [data-search]'));
      if (search) {
        event.preventDefault();
        search.focus();
        search.select();
      }
    } else if (key === '?') setOpen('help');
    else if (key === 'r') again();
    else if (key === 'g') led.current = performance.now();
    else if (letter && performance.now() - led.current < 1500) go(`#/${letter}`);
  });

  const nav = [
    { to: 'namespaces', text: 'Namespaces' }, ...['Plugins', 'Server'].map((text) => ({ to: text.toLowerCase(), text, needs: !may(seen, 'monitor', 'everywhere') && 'monitor' })),
    ...screens.map((each) => ({ to: `screen/${each.id}`, text: each.title, needs: each.id === 'held' ? !may(seen, 'admin', 'somewhere') && 'admin' : !each.allowed && each.needs })), { to: 'help', text: 'Help' },
  ];
  const commands = [
    ...nav.map(({ to, text, needs }) => ({ text, needs, run: () => go(`#/${to}`) })),
    ...(namespace ? [['topics', 'Topics of'], ['why', 'Why not? in', may(seen, 'admin') ? '' : 'admin'], ['live', 'Live in']].map(([to, text, needs]) => ({ needs, text: `${text} ${namespace}`, run: () => go(linkIn(to, namespace)) })) : []),
    ...(namespace && !unchangeable(seen) ? [{ text: `Make a topic in ${namespace}`, run: () => edit() }] : []),
    ...THEMES.map((each) => ({ text: `Colours: ${each}`, run: () => setTheme(each) })),
    ...(seen?.authentication.length === 0 ? [] : [{ text: api.signedIn ? 'Sign out' : 'Sign in', run: () => (api.signedIn ? signOut() : sign({})) }]),
    { text: 'Ask everything again', run: again },
  ];
  const signOut = () => {
    api.signIn(null);
    renew();
  };
  const current = known?.named ? 'namespaces' : place.screen === 'screen' ? `screen/${place.path[0]}` : place.screen;
  const value = useMemo(() => ({ ...page, me: me.data ?? null, screens, brought, edit }), [page, me.data, brought.data, brought.error, brought.loading, location.hash]);
  const Screen = known?.screen;
  const complete = known && (!known.named || (place.path.length >= (place.screen === 'topic' ? 3 : 2)));
  return html`<${PageContext.Provider} value=${value}>
    <a class="skip" href="#main" onClick=${(event) => {
      event.preventDefault();
      main.current?.querySelector('h1')?.focus();
    }}>To the content</a>
    <header class="top">
      <a class="brand" href="#/namespaces"><img src=${new URL('icon.svg', import.meta.url)} alt="" /><span>broker-core</span></a>
      <nav aria-label="Screens">${nav.map(({ to, text, needs }) => html`<${Way} to=${`#/${to}`} here=${current === to} needs=${needs}><bdi>${text}</bdi><//>`)}</nav>
      <div class="tools">
        <button type="button" class="quiet palette-button" onClick=${() => setOpen('palette')}>Go to… <kbd>Ctrl K</kbd></button>
        <button type="button" class="quiet" aria-label=${`Colours: ${theme}`} title=${`Colours: ${theme}`} onClick=${() => setTheme(THEMES[(THEMES.indexOf(theme) + 1) % 3])}>${{ auto: '◐', light: '☀', dark: '☾' }[theme]}</button>
        <${WhoAmI} me=${seen} refused=${me.error?.status === 401} open=${open === 'me'} set=${(shown) => setOpen(shown ? 'me' : '')} signIn=${() => sign({})} signOut=${signOut} />
      </div>
    </header>
    ${away && html`<p class="notice bad wide" role="alert">The server does not answer. The page asks again by itself; what you see may be old.</p>`}
    ${renewed && html`<p class="notice warn wide" role="status">The server has a newer page than this one. <button type="button" class="link" onClick=${() => location.reload()}>Load the new page</button></p>`}
    <main ref=${main} id="main"><${Guard} key=${known?.named ? where : current}>
      ${complete ? html`<${Screen} place=${place} />`
        : html`<${Title} of="Nothing is here" /><p>The address names no screen. <a href="#/namespaces">All namespaces</a></p>`}
    <//></main>
    <${Said} />
    ${open === 'palette' && html`<${Palette} commands=${commands} close=${() => setOpen('')} />`}
    ${open === 'help' && html`<${Dialog} title="Help" close=${() => setOpen('')} wide><${HelpOf} /><//>`}
    ${edited && html`<${Guard}><${Edit} ...${edited} question=${question} close=${() => setEdited(null)} /><//>`}
    ${signing && html`<${SignIn} why=${signing} me=${seen} until=${me.data?.until} close=${dismiss} done=${(role) => {
      sign(null);
      (me.data?.role === role ? again : renew)();
    }} />`}
  <//>`;
}

function Palette({ commands, close }) {
  const [typed, set] = useState('');
  const [active, setActive] = useState(0);
  const list = useId();
  const words = wordsOf(typed.toLowerCase());
  const namespaces = useGet('namespaces', { contains: words.slice(0, MOST_WORDS), limit: 8 }, { delay: 40 });
  const found = [
    ...commands, ...savedQuestions().map((each) => ({ text: `Kept: ${each.name}`, run: () => go(each.hash) })),
  ].filter((each) => words.every((word) => each.text.toLowerCase().includes(word)));
  for (const each of namespaces.data?.items || []) found.push({ text: each.namespace, run: () => go(linkIn('topics', each.namespace)) });
  const index = Math.min(active, found.length - 1);
  const run = (at) => {
    if (!found[at]) return;
    close();
    found[at].run();
  };
  const key = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      setActive((index + step + found.length) % Math.max(1, found.length));
    } else if (event.key === 'Enter') {
      event.preventDefault();
      run(index);
    }
  };
  return html`<${Dialog} title="Go to, or do" close=${close} bare>
    <input type="text" class="palette" role="combobox" aria-expanded="true" aria-controls=${list} aria-label="A screen, a namespace or a command"
      aria-activedescendant=${index >= 0 ? `${list}-${index}` : undefined} placeholder="A screen, a namespace or a command" value=${typed} autofocus
      autocomplete="off" spellcheck=${false} onKeyDown=${key} onInput=${(event) => {
        set(event.target.value);
        setActive(0);
      }} />
    <ul id=${list} role="listbox" aria-label="What there is" class="options">${found.slice(0, 30).map((each, at) => html`<li key=${each.text} id=${`${list}-${at}`} role="option"
      aria-selected=${at === index} ...${barred(each.needs)} onClick=${() => run(at)} onPointerMove=${() => setActive(at)}><bdi>${each.text}</bdi></li>`)}</ul>
    <p class="muted" role="status">${found.length ? '' : 'Nothing has this in its name.'}</p>
  <//>`;
}

/** A screen that fails leaves the others as they are. */
function Guard({ children }) {
  const [error, reset] = useErrorBoundary((found) => console.error(found));
  if (!error) return children;
  return html`<div class="state failed" role="alert"><h1 tabindex="-1">This screen failed</h1><p>${String(error.message || error)}</p><button type="button" onClick=${reset}>Draw it again</button></div>`;
}

function WhoAmI({ me, refused, open, set, signIn, signOut }) {
  const name = me === undefined ? 'Nobody yet' : me.role || (me.authentication.length ? 'Nobody' : 'Everybody');
  const list = (rights) => (me.super ? 'all of them' : rights.join(', ') || 'none');
  return html`<button type="button" class="who" aria-haspopup="dialog" onClick=${() => set(true)}>${me && html`<span class="dot" aria-hidden="true"></span>`}<bdi>${name}</bdi></button>
    ${open && html`<${Dialog} title="Who asks" close=${() => set(false)}>
      ${me === undefined ? html`<p class="muted">${refused ? 'Nobody has signed in.' : 'The server has not said yet.'}</p>` : html`<${Facts} items=${[
        ['Role', me.role || (me.authentication.length ? 'none' : 'none: this server asks nobody for credentials')],
        ...(me.original_principal ? [['For', me.original_principal]] : []),
        ['Address', html`<code>${me.address}</code>`],
        ['Rights in all namespaces', list(me.rights.everywhere)],
        ['Rights in some', list(me.rights.somewhere)],
        ...(me.rights.namespace ? [['Rights in this namespace', list(me.rights.namespace)]] : []),
        ...(me.role ? [['Signed in until', me.until ? `${time(me.until)} (${ago(me.until)})` : 'no end is known']] : []),
      ]} />`}
      <div class="line end">${api.signedIn && html`<button type="button" onClick=${() => { set(false); signOut(); }}>Sign out</button>`}
        ${me?.authentication.length === 0 ? null : html`<button type="button" class="primary" onClick=${() => { set(false); signIn(); }}>${api.signedIn ? 'Sign in as somebody else' : 'Sign in'}</button>`}</div>
    <//>`}`;
}

function SignIn({ why, me, until, close, done }) {
  const said = me?.authentication || api.schemes;
  const taken = SIGNS.filter((each) => said.includes(each[0]) || said.includes(each[2]));
  const signs = taken.length ? taken : SIGNS;
  const [kind, setKind] = useState(signs[0][0]);
  const ended = Date.parse(until) < Date.now() && `Your sign-in ended at ${clockTime(until)}.`;
  const [error, setError] = useState(why.error && !why.first ? ended || why.error.message : '');
  const [busy, setBusy] = useState(false);
  const [bare, setBare] = useState(false);
  const send = async (event) => {
    event.preventDefault();
    const given = /** @type {any} */ (Object.fromEntries(new FormData(event.target)));
    if (kind === 'token') given.token = given.token.trim();
    const missing = event.target.querySelector('input:invalid');
    missing?.focus();
    if (missing || /[^!-~]/.test(given.token || '')) {
      setError(missing ? `${missing.labels[0].textContent} is missing.` : 'A token is one word of ASCII: copy it anew.');
      return;
    }
    setBusy(true);
    api.signIn(given);
    try {
      done((await api.get('me')).role);
    } catch (failed) {
      if (failed.status === 401) api.signIn(null);
      setError(failed.message);
      setBusy(false);
    }
  };
  return html`<${Dialog} title="Sign in" close=${close}><form noValidate onSubmit=${send}>
    ${signs.length > 1 && html`<div class="line" role="radiogroup" aria-label="By">${signs.map(([value, text]) => html`<label class="radio">
      <input type="radio" name="kind" checked=${kind === value} onChange=${() => { setKind(value); setError(''); }} /> ${text}</label>`)}</div>`}
    ${kind === 'token' ? html`<${Field} label="Token" hint="A JSON Web Token, as clients have."><input name="token" type=${bare ? 'text' : 'password'} required autofocus spellcheck=${false} autocomplete="off" class="code" /><//>
      <label class="radio"><input type="checkbox" checked=${bare} onChange=${() => setBare(!bare)} /> Show the token</label>`
      : html`<${Field} label="User"><input name="user" required autofocus autocomplete="username" /><//><${Field} label="Password"><input name="password" type="password" required autocomplete="current-password" /><//>`}
    ${error && html`<p class=${`notice ${error === ended ? 'warn' : 'bad'}`} role="alert">${error}</p>`}
    <p class="hint">It stays in this page until a reload, and goes to this server alone.</p>
    <div class="line end"><button type="button" onClick=${close}>Cancel</button><button class="primary" disabled=${busy}>${busy ? 'Asking…' : 'Sign in'}</button></div>
  </form><//>`;
}

const KEYS = [
  ['/', 'to the search of the screen; ↓ from there to the list'], ['Ctrl K', 'the palette: any screen, namespace or command'], ['?', 'this help'], ['r', 'asks again for all that is shown'],
  ['↑ ↓ Page Up Page Down Home End', 'in a list, once it has the focus'], ['Enter', 'opens the row'], ['Esc', 'closes a dialog, empties the search'],
  ['g n, g p, g s', 'namespaces, plugins, the server'],
];

const SYNTAX = [
  ['orders', 'the topic with exactly this name: a pattern matches a whole name'], ['orders-.*', 'names that begin with orders-'],
  ['.*-eu', 'names that end with -eu'], ['.*error.*', 'names that contain error'], ['sensor-[0-9]+', 'sensor- and one digit or more'],
  ['[a-c]x, [^a-c]x', 'one of these characters, or none of them'], ['orders-(eu|us)', 'one of several'],
  ['a{2,4}, a?', 'two to four, one or none'], ['\\.', 'a dot, in place of any character'], ['(?i)ORDERS', 'large and small letters alike'], ['\\p{Greek}+', 'letters of a script'],
];

const REFUSED = [['(?=…), (?!…)', 'looking ahead'], ['(?<=…), (?<!…)', 'looking behind'], ['\\1', 'what a group has matched'], ['(?>…), a++', 'groups that give nothing back']];

function Help({ place }) {
  return html`<${Title} of="Help" /><${HelpOf} first=${place.path[0]} />`;
}

function HelpOf({ first }) {
  const [on, set] = useState(lone);
  const table = (caption, head, rows) => html`<${Table} caption=${caption} head=${head} rows=${rows.map(([text, means]) => [html`<code>${text}</code>`, means])} />`;
  const patterns = html`<section><h2>Patterns</h2>
    <p>A pattern is a regular expression of RE2. It matches the whole of <code>tenant/namespace/topic</code>, without the suffix of a partition; the page puts <code>tenant/namespace/</code> before what you type.</p>
    ${table('What RE2 takes', ['pattern', 'matches'], SYNTAX)}
    <h3>What RE2 refuses</h3><p>Whatever goes back over a name. Ask with two patterns in its place, or with a property.</p>
    ${table('What RE2 refuses', ['pattern', 'is'], REFUSED)}</section>`;
  const keys = html`<section><h2>Keys</h2><label class="radio"><input type="checkbox" checked=${on} onChange=${() => {
    stored('keys', (lone = !on) ? 'on' : 'off');
    set(lone);
  }} /> Keys of one character act</label>
    ${table('Keys', ['key', 'does'], KEYS)}</section>`;
  return html`<div class="prose">${first === 'patterns' ? html`${patterns}${keys}` : html`${keys}${patterns}`}
    <section><h2>What this page does</h2><p>It asks this server alone, by <code>/v1</code>, with your rights. A link asks the same with the rights of whoever opens it.</p></section></div>`;
}

const MOST_NAMESPACES = 1000;

function Namespaces({ place }) {
  const find = place.query.get('find') || '';
  const words = wordsOf(find);
  const many = words.length > MOST_WORDS;
  const ask = useGet('namespaces', { contains: words.slice(0, MOST_WORDS), count: true, limit: MOST_NAMESPACES }, { delay: 60 });
  const behind = ask.error?.status === 501; // brokers hold the topics
  return html`<${Title} of="Namespaces">
    <form role="search" class="line" onSubmit=${(event) => {
      event.preventDefault();
      const [only] = ask.data?.items || [];
      if (/^[^/\s]+\/[^/\s]+$/.test(find) && (behind || !only)) go(linkIn('topics', find));
      else if (only) go(linkIn('topics', only.namespace));
    }}>
      <${Field} label=${behind ? 'A namespace of the brokers' : 'Find a namespace'} class="grows" bad=${many && `Only the first ${MOST_WORDS} words count.`}
          hint=${behind ? 'Brokers hold the topics: type tenant/namespace and press Enter.' : 'Parts of its name, in any order. Enter opens the first.'}>
        <${TextInput} value=${find} data-search placeholder=${behind ? 'public/default' : 'default'} set=${(text) => go(link(['namespaces'], { find: text }), { replace: true })} />
      <//>
    </form><//>
  <${KeptQuestions} />
  ${behind ? null : html`<p class="muted" role="status">${ask.data && !ask.error && (find || ask.data.items.length) ? counted(ask.data.total ?? ask.data.items.length, 'namespace') : ''}</p>
    <${Answer} ask=${ask} what="the namespaces" rights="list">${(data) => (data.items.length === 0
    ? html`<${None} find=${find} gated=${data.total === null} />`
    : html`<${Rows} label="Namespaces" of=${find} total=${data.items.length} first=${data.items} load=${null} href=${(each) => linkIn('topics', each.namespace)}
        row=${({ namespace, counts, changed, source }) => html`<bdi>${namespace}</bdi><span class="number">${counts ? counted(counts.all, 'name') : 'not counted'}</span><span class="muted">${[
          source === 'catalog' ? 'the catalogue' : source, changed && `changed ${ago(changed)}`, counts?.non_persistent && `${number(counts.non_persistent)} not persistent`].filter(Boolean).join(', ')}</span>`} />
      <p class="hint narrow">Sources and times: on a wider screen.</p>
      ${data.next && html`<p class="muted">No more are shown: find the others by their names.</p>`}`)}<//>`}`;
}

function None({ find, gated }) {
  const { me } = usePage();
  if (!may(me, 'list', 'somewhere')) return html`<${Failure} error=${{ status: 403 }} what="the topics of any namespace" rights="list" />`;
  if (find) return html`<${Empty} title="No namespace has this in its name"><p>Only those with topics that you may list are here.</p><//>`;
  if (gated || !may(me, 'list', 'everywhere')) return html`<${Empty} title="No topics that you may see"><p>There may be others: ${gated ? 'plugins decide about each namespace.' : 'you may list some namespaces alone.'}</p><//>`;
  const local = me?.server?.writes === false || !may(me, 'admin', 'somewhere');
  return html`<${Empty} title="This server has no topics yet">
    <p>Make the first one${local ? ', on the machine of the server' : ''}:</p>
    <${Command} text=${local ? 'broker-core topics create public/default orders' : commandOf(api, 'PUT', 'namespaces/public/default/topics/orders', { body: { partitions: 3 } })} />
    <p class="muted">Many topics at once: <code>broker-core topics import</code>.</p><//>`;
}

function KeptQuestions() {
  const { say } = usePage();
  const [items, set] = useState(savedQuestions);
  if (!items.length) return null;
  return html`<section class="saved" aria-label="Kept questions"><h2>Kept</h2><ul class="chips">${items.map((each) => html`<li key=${each.name}>
    <a href=${each.hash}><bdi>${each.name}</bdi></a><button type="button" class="quiet icon" aria-label=${`Forget ${each.name}`} onClick=${() => {
      save(each.name, null);
      set(savedQuestions());
      say(`Forgotten: ${each.name}`, each.hash);
    }}>✕</button></li>`)}</ul></section>`;
}

// What goes leaves the focus to the heading or the list around it.
let focused = /** @type {any[]} */ ([]);
addEventListener('focusin', ({ target }) => {
  focused = [];
  for (let at = /** @type {any} */ (target); at; at = at.parentElement) focused.push(at);
});
new MutationObserver(() => {
  const [last, ...around] = focused;
  if (!last || (last.isConnected && !last.disabled) || ![document.body, last].includes(document.activeElement)) return;
  const place = around.find((each) => each.isConnected && each.matches('section, main, dialog, #app'));
  const heir = place?.querySelector('h1, h2, [tabindex="0"]') || place;
  if (heir?.tabIndex < 0) heir.tabIndex = -1;
  heir?.focus({ preventScroll: true });
}).observe(document, { subtree: true, childList: true, attributeFilter: ['disabled'] });

const root = document.getElementById('app');
if (root) render(html`<${App} />`, root);
