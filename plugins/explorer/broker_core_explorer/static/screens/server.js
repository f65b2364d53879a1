// What happens on the server: its state, plugins, topics that come and go.
import { ApiError, Fragment, ROOT, ago, anything, askAgain, clockTime, counted, date, duration, go, h, html, link, linkIn, may, milliseconds, number, ofNamespace, percent, size, time, useAsk, useEffect, useErrorBoundary, useGet, useMemo, usePage, useRef, useState, useVisible } from '../page.js';
import { Answer, Badge, Empty, Facts, Failure, Field, Fold, Pairs, Table, TextInput, Title, Waiting } from '../parts.js';
import { QuestionForm, isRefused, parametersOf, queryOf, questionOf } from '../question.js';
import { Head, Known, topicLink } from './topics.js';

const EVERY = { every: 10_000 };
const MONITOR = 'monitor in all namespaces';
/** What clients notice is first. @type {any[][]} */
const SERIES = [
  ['listings_per_s', 'Listings a second', anything],
  ['listing_ms', 'Time of a listing', milliseconds],
  ['listing_errors_per_s', 'Failed listings a second', anything],
  ['connections', 'Connections', number],
  ['http_per_s', 'HTTP requests a second', anything],
  ['kafka_per_s', 'Kafka requests a second', anything],
  ['loop_lag_ms', 'Lag of the event loop', milliseconds],
  ['cpu', 'Processor', percent],
  ['rss', 'Memory of the process', size],
  ['heap_used', 'Permits: heap', size],
  ['direct_used', 'Permits: direct', size],
  ['snapshots_used', 'Snapshots', size],
];

export function Server({ place }) {
  const { me } = usePage();
  const history = useGet('server/history', {}, EVERY);
  const server = me?.server;
  const denied = history.error?.status === 403;
  return html`<${Title} of="Server">
      <p class="muted">${server && html`broker-core ${server.version}, ${server.topics === 'upstream' ? 'before a cluster' : 'with a catalogue of its own'}`}</p><//>
    <section aria-label="The last hour"><h2>The last hour</h2>
      <${Answer} ask=${history} what=${denied ? 'the last hour, permits, caches and connections' : 'the last hour'} rights=${MONITOR}>${(data) => html`<${Hour} data=${data} />`}<//></section>
    ${denied ? null : html`<${Permits} />
    <${Caches} />
    <${Clients} order=${place.query.get('order') || 'age'} />`}
    ${server?.questions === false ? html`<section><h2>Questions</h2><p class="muted">Not counted: <code>[http] questions = true</code> in the settings counts them.</p></section>`
      : html`<${Questions} order=${place.query.get('questions') || 'count'} />`}
    ${denied ? null : html`<${Metrics} /><${Check} />`}`;
}

function Hour({ data }) {
  const until = date(data.until)?.getTime() ?? Date.now();
  const shown = SERIES.filter(([name]) => data.series[name]?.some((each) => each !== null));
  if (!shown.length) return html`<p class="muted">The first values come ${duration(data.interval_s)} after the start.</p>`;
  return html`<div class="charts">${shown.map(([name, title, format]) => html`<${Chart}
    key=${name} title=${title} values=${data.series[name]} until=${until} interval=${data.interval_s} format=${format} />`)}</div>
    <p class="muted small">A value each ${duration(data.interval_s)}, up to ${time(until)}.</p>`;
}

function Part({ title, path, query, what, every = EVERY, rights = MONITOR, tools, children }) {
  const ask = useGet(path, query, every);
  return html`<section aria-label=${title}><div class="bar"><h2>${title}</h2>${tools?.(ask)}</div>
    ${path === null ? null : html`<${Answer} ask=${ask} what=${what} rights=${rights}>${children}<//>`}</section>`;
}

const Choice = ({ label, name, value, options }) => html`<${Field} label=${label} class="inline"><select value=${value}
  onChange=${(event) => go(link(['server'], { [name]: event.target.value }), { replace: true })}>${options.map(([each, text]) => html`<option value=${each}>${text}</option>`)}</select><//>`;

const Caches = () => html`<${Part} title="Caches" path="server/caches" what="the caches">${(data) => html`<${Table} caption="Each cache" numeric=${[1, 2, 3]} head=${['cache', 'entries', 'memory', 'at most']}
  rows=${data.items.map((each) => [each.name, number(each.entries), size(each.bytes), each.limit_bytes === null ? 'no bound' : size(each.limit_bytes)])} />`}<//>`;

function Metrics() {
  const [asked, setAsked] = useState(false);
  const [find, setFind] = useState('');
  return html`<${Part} title="Metrics" path=${asked ? 'server/metrics' : null} what="the metrics" tools=${() => html`
      ${asked && html`<${Field} label="With" class="inline"><${TextInput} value=${find} set=${setFind} placeholder="listing" /><//>`}
      <button type="button" aria-expanded=${asked} onClick=${() => setAsked(!asked)}>All metrics</button>`}>${(data) => html`<${Values} data=${data} find=${find} />`}<//>`;
}

function Values({ data, find }) {
  const now = useMemo(() => ({
    at: Date.now(), values: new Map(data.items.map((each) => [[each.name.replace('broker_core_', ''), ...Object.values(each.labels)].join(' '), each])),
  }), [data]);
  const looks = useRef([now]);
  if (looks.current[0] !== now) looks.current = [now, looks.current[0]];
  const [, before] = looks.current;
  const measure = (name, value) => (/seconds/.test(name) ? duration(value) : /bytes/.test(name) ? size(value) : anything(value));
  const words = find.toLowerCase().split(/\s+/);
  const found = [...now.values].filter(([key, { value }]) => value && !/_(?:bucket|sum)\b/.test(key) && words.every((word) => key.toLowerCase().includes(word)));
  return html`<${Table} caption="Metrics that are not zero" numeric=${[1, 2, 3]} head=${['metric', 'value', 'a second', 'mean']} rows=${found.slice(0, 200).map(([key, { type, help, value }]) => {
      const sum = now.values.get(key.replace('_count', '_sum'));
      return [html`<span title=${help}>${key}</span>`, type === 'gauge' ? measure(key, value) : anything(value),
        before && type !== 'gauge' ? anything(((value - (before.values.get(key)?.value ?? value)) * 1000) / (now.at - before.at)) : '–',
        type === 'histogram' && sum ? measure(key, sum.value / value) : '–'];
    })} /><p class="muted small">${number(Math.min(200, found.length))} of ${number(found.length)}</p>`;
}

/** It looks at all of the server. */
function Check() {
  const [asked, setAsked] = useState(false);
  const kinds = { ok: 'good', warning: 'warn', error: 'bad' };
  return html`<${Part} title="Check" path=${asked ? 'server/check' : null} what="the check of files, ports and databases" every=${{}}
      tools=${(ask) => html`${asked ? null : html`<p class="muted">As <code>broker-core check</code> says it.</p>`}
        <button type="button" onClick=${() => (asked ? ask.again() : setAsked(true))}>Check the settings</button>`}>${(data) => html`<${Table} caption="What the check says" head=${['checked', 'result', 'says']}
        rows=${[...data.items].sort((one, other) => Number(one.level === 'ok') - Number(other.level === 'ok')).map((each) => [html`<code>${each.name}</code>`, html`<${Badge} kind=${kinds[each.level] || 'plain'}>${each.level}<//>`, each.text])} />
      <p class="muted small">Checked ${time(data.checked)}.</p>`}<//>`;
}

const Permits = () => html`<${Part} title="Memory under permits" path="server/permits" what="the permits">${(data) => html`<${Table} caption="Each permit" numeric=${[1, 2, 4]}
  head=${['permit', 'used', 'at most', 'part', 'waiting']} rows=${data.items.map(({ name, used_bytes: used, limit_bytes: limit, waiting }) => [name, size(used), limit ? size(limit) : 'no bound',
    limit ? html`<meter max=${limit} high=${limit * 0.85} value=${used} aria-label=${`${name}: used`}></meter>` : '', number(waiting)])} />`}<//>`;

function Clients({ order }) {
  const [all, showAll] = useState(false);
  return html`<${Part} title="Connections" path="server/clients" query=${{ order, limit: 10_000 }} what="the connections" tools=${() => html`<${Choice} label="First those with"
      name="order" value=${order} options=${[['age', 'the longest time'], ['requests', 'most requests'], ['bytes', 'most bytes'], ['memory', 'most memory']]} />`}>${(data) => {
      const groups = Map.groupBy(data.items, (each) => `${each.transport} ${each.role ?? ''}`);
      const sum = (group, name) => group.reduce((before, each) => before + each[name], 0);
      const shown = data.items.slice(0, all ? 200 : 10);
      return html`<${Table} caption="Connections by role and transport" numeric=${[2, 3, 4]} head=${['role', 'transport', 'connections', 'requests a second', 'bytes a second']}
          rows=${[...groups.values()].sort((one, other) => other.length - one.length).slice(0, 50).map((group) => [
            group[0].role ? html`<bdi>${group[0].role}</bdi>` : html`<span class="muted">no role</span>`, group[0].transport, number(group.length), anything(sum(group, 'requests_per_second')), size(sum(group, 'bytes_per_second'))])} />
        <${Table} caption="Each connection" numeric=${[3, 4, 5]} head=${['address', 'client', 'asks', 'age', 'requests a second', 'memory']}
          rows=${shown.map((each) => [html`<code>${each.address || 'socket'}</code>`, html`<bdi class="cut" title=${each.client_version}>${each.client_version || '–'}</bdi>`,
            html`<bdi>${(each.asks || []).map((one) => `${one.operation} ${one.namespace}`.trim()).join(', ') || '–'}</bdi>`,
            duration(each.age_seconds), anything(each.requests_per_second), size(each.memory_bytes)])} />
        ${data.total > shown.length ? html`<${Fold} open=${all} set=${showAll} show="Show more" /><p class="muted">${number(shown.length)} of ${number(data.total)}</p>` : null}`;
    }}<//>`;
}

function Questions({ order }) {
  return html`<${Part} title="Questions" path="server/questions" query=${{ order, limit: 25 }} what="the questions" tools=${() => html`<${Choice} label="First"
      name="questions" value=${order} options=${[['count', 'the most frequent'], ['seconds', 'those that took longest']]} />`}>${(data) => (data.items.length === 0 ? html`<p class="muted">No client has asked yet.</p>`
      : html`<${Table} caption="Each question" numeric=${[2, 3, 4]} head=${['namespace', 'question', 'asked', 'mean', 'in all', 'last']}
        rows=${data.items.map((each) => [html`<bdi>${each.namespace}</bdi>`,
          html`<${QuestionLink} of=${each} />`,
          number(each.count), milliseconds(each.mean_ms), duration(each.seconds), time(each.last_asked)])} />`)}<//>`;
}

const WIDTH = 600;
const HEIGHT = 120;
const SAMPLES = 360;

function Chart({ title, values, until, interval, format }) {
  const svg = useRef(/** @type {any} */ (null));
  const [at, setAt] = useState(-1);
  const known = values.filter((each) => each !== null);
  const most = Math.max(...known.map(Number), 0) || 1;
  const x = (index) => ((SAMPLES - values.length + index) / (SAMPLES - 1)) * WIDTH;
  const y = (value) => HEIGHT - 4 - (value / most) * (HEIGHT - 12);
  let line = '';
  let pen = false;
  values.forEach((value, index) => {
    if (value === null) pen = false;
    else {
      // A lone value is seen too.
      line += `${pen ? 'L' : 'M'}${x(index).toFixed(1)} ${y(value).toFixed(1)}${pen ? '' : 'h-4'}`;
      pen = true;
    }
  });
  const last = values.length - 1;
  const index = at >= 0 && at <= last ? at : last;
  const value = values[index];
  const when = (of) => clockTime(until - (last - of) * interval * 1000);
  const moved = (event) => {
    const box = svg.current?.getBoundingClientRect();
    if (box) setAt(Math.round(((event.clientX - box.left) / box.width) * (SAMPLES - 1)) - (SAMPLES - values.length));
  };
  return html`<figure class="chart">
    <figcaption><span>${title}</span> <b>${value === null || value === undefined ? '–' : format(value)}</b>
      <span class="muted small">${at >= 0 && at <= last ? when(index) : `most ${known.length ? format(Math.max(...known.map(Number))) : '–'}`}</span></figcaption>
    <svg ref=${svg} aria-hidden="true" viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none"
        onPointerMove=${moved} onPointerLeave=${() => setAt(-1)}>
      <path class="grid" d=${`M0 ${HEIGHT - 4}H${WIDTH}M0 ${HEIGHT / 2}H${WIDTH}`} />
      <path class="curve" d=${line} />
      ${at >= 0 && at <= last && html`<path class="cursor" d=${`M${x(index)} 0V${HEIGHT}`} />`}
    </svg>
  </figure>`;
}

export function Plugins() {
  const { screens } = usePage();
  const ask = useGet('server/plugins', {}, { every: 5000 });
  return html`<${Title} of="Plugins" />
    <${Answer} ask=${ask} what="the plugins" rights=${MONITOR}>${(data) => (data.items.length === 0
      ? html`<${Empty} title="No plugin is enabled"><p>Plugins are named in <code>[plugins] enabled</code> of the settings.</p><//>`
      : html`<p class="muted">In the order in which they are asked: the first that answers ends it.</p>
        <ol class="plugins">${data.items.map((each) => html`<${Plugin} key=${each.name} plugin=${each} brought=${screens.filter((one) => one.plugin === each.name && one.allowed)} />`)}</ol>`)}<//>`;
}

function Plugin({ plugin, brought }) {
  const calls = Object.entries(plugin.calls || {});
  const good = plugin.state === 'enabled' || plugin.state === 'ok';
  return html`<li class="panel">
    <div class="step"><h2><bdi>${plugin.name}</bdi></h2> <${Badge} kind=${good ? 'good' : /half/.test(plugin.state) ? 'warn' : 'bad'}>${plugin.state}<//>
      <span class="muted"><bdi>${[plugin.distribution, plugin.version].filter(Boolean).join(' ')}</bdi></span>
      ${brought.map((each) => html`<a href=${link(['screen', each.id])}><bdi>${each.title}</bdi></a>`)}</div>
    ${[...(plugin.problems || []), ...(plugin.warnings || [])].map((one) => html`<p class="notice bad">${String(one)}</p>`)}
    <${Facts} items=${[
      ['Hooks', (plugin.hooks || []).map((hook) => hook.replace(/^broker_core_/, '')).join(', ') || 'none'],
      ['Deadline', duration(plugin.deadline)],
      ['If it fails', plugin.on_failure || '–'],
      ['Namespaces', plugin.namespaces?.join(', ').replace(/^\*$/, 'all') || 'all'],
      ...(plugin.depends_on?.length ? [['Depends on', plugin.depends_on.join(', ')]] : []),
      ...(plugin.abandoned_calls ? [['Calls past their deadline that still run', number(plugin.abandoned_calls)]] : []),
    ]} />
    ${calls.length ? html`<${Table} caption=${`Calls of ${plugin.name}`} numeric=${[1, 2, 3, 4]} head=${['hook', 'calls', 'failures', 'median', '99 %', 'breaker', 'last error']}
      rows=${calls.map(([hook, each]) => [hook.replace(/^broker_core_/, ''), number(each.calls), number(Object.values(each.failures || {}).reduce((sum, one) => Number(sum) + Number(one), 0)),
        milliseconds(each.p50_ms), milliseconds(each.p99_ms), each.breaker, each.last_error || ''])} />` : null}
    ${(plugin.tasks || []).length ? html`<${Table} caption=${`Tasks of ${plugin.name}`} head=${['task', 'state', 'last error']}
      rows=${plugin.tasks.map((each) => [each.name, each.state ?? (each.running ? 'runs' : 'ended'), each.last_error || ''])} />` : null}
  </li>`;
}

export function PluginScreen({ place }) {
  const { api, brought, screens, epoch } = usePage();
  const [id] = place.path;
  const screen = screens.find((each) => each.id === id);
  const [loaded, set] = useState(/** @type {any} */ (null));
  const [crash, reset] = useErrorBoundary();
  const closing = useRef(new AbortController());
  useEffect(() => () => closing.current.abort(), []);
  useEffect(() => {
    if (!screen?.allowed || loaded?.Screen) return;
    const url = new URL(screen.plugin === 'explorer' ? import.meta.url : screen.module, ROOT); // the page's own are of its version
    // Browsers keep that a module did not come.
    if (loaded) url.search = `${epoch}`;
    // Only what a screen may lean on is given: this object is its contract.
    import(url.href).then((module) => {
      const Screen = module.default({
        screen, h, html, Fragment, useState, useEffect, useMemo, useRef, useAsk, text: { ago, anything, clockTime, counted, date, duration, number, percent, size, time },
        parts: { Answer, Badge, Empty, Facts, Table, Waiting, Failure },
        api: { get: (path, query) => api.get(`/${path.replace(/^\//, '')}`, query, closing.current.signal) },
      });
      if (!Screen) throw new TypeError('The module gives no screen.');
      set({ Screen });
    }).catch(async (error) => set({ error: await api.get('me').then(() => error, (away) => away) }));
  }, [screen?.module, screen?.allowed, epoch]);
  if (!screen) {
    return html`<${Title} of=${id} /><${Answer} ask=${brought} what="the screen">${() => html`
      <${Empty} title="No plugin brings this screen"><//>`}<//>`;
  }
  const title = html`<${Title} of=${screen.title}>${screen.plugin === 'explorer' ? null : html`<p class="muted">A screen of the plugin <bdi>${screen.plugin}</bdi></p>`}<//>`;
  if (!screen.allowed) return html`${title}<${Failure} error=${{ status: 403 }} what="this screen" rights=${screen.needs === 'monitor' ? MONITOR : screen.needs} />`;
  const failed = crash || loaded?.error;
  if (failed?.status !== undefined) return html`${title}<${Failure} error=${failed} what="the screen" />`;
  if (failed) return html`${title}<div class="state failed" role="alert"><h2>The screen of the plugin failed</h2><p>${String(failed.message || failed)}</p><button type="button" onClick=${() => {
    reset();
    askAgain();
  }}>Try again</button></div>`;
  if (!loaded?.Screen) return html`${title}<${Waiting} slow=${false} what="the screen" />`;
  return html`${title}<${loaded.Screen} params=${{ path: place.path.slice(1), query: place.query, epoch }} />`;
}

const of = (namespace) => html`<a href=${linkIn('topics', namespace)}><bdi>${namespace}</bdi></a>`;

function Kafka() {
  const ask = useGet('server/metrics', { name: 'broker_core_kafka_' }, EVERY);
  return html`<${Answer} ask=${ask} what="the state of Kafka" rights=${MONITOR}>${(data) => {
    const named = (name) => data.items.filter((each) => each.name === `broker_core_kafka_${name}`);
    const apis = Map.groupBy(named('requests_total').filter((each) => each.value), (each) => each.labels.api);
    const asked = (of) => of.reduce((sum, each) => sum + each.value, 0);
    const seconds = (part, name) => named(`request_seconds_${part}`).find((each) => each.labels.api === name)?.value;
    const hidden = named('names_left_out').filter((each) => each.value);
    return html`${hidden.map((each) => html`<p class="notice warn">${of(each.labels.namespace)}: ${counted(each.value, 'topic')} hidden from Kafka clients, since Kafka cannot have such names.</p>`)}
      <${Facts} items=${[['Connections', number(named('connections')[0]?.value ?? 0)]]} />
      ${apis.size ? html`<${Table} caption="Requests of Kafka clients since the start" numeric=${[1, 2]} head=${['request', 'asked', 'mean', 'errors']}
        rows=${[...apis].sort(([, one], [, other]) => asked(other) - asked(one)).map(([name, of]) => [name, number(asked(of)), duration(seconds('sum', name) / seconds('count', name)),
          of.filter(({ labels }) => !/^(none|)$/i.test(labels.error)).map(({ labels, value }) => `${labels.error} ${number(value)}`).join(', ') || 'none'])} />`
        : html`<${Empty} title="No Kafka client has asked"><p>Kafka is served if the settings have <code>[kafka] listen</code>.</p><//>`}`;
  }}<//>`;
}

function QuestionLink({ of }) {
  const pairs = Object.entries(of.properties || {});
  const mode = String(of.mode).toLowerCase();
  return html`<a href=${linkIn('topics', of.namespace, { q: of.pattern, mode: mode === 'persistent' ? '' : mode, p: pairs.map((pair) => pair.join('=')) })}><bdi class="cut">${of.pattern || 'all topics'}</bdi></a>
    ${' '}${mode === 'persistent' ? null : html`<${Badge} kind="plain">${mode.replace('_', '-')}<//> `}${pairs.length ? html`<${Pairs} of=${of.properties} />` : null}`;
}

function Watchers() {
  const ask = useGet('server/watchers', { limit: 200 }, EVERY);
  return html`<${Answer} ask=${ask} what="the followed questions" rights=${MONITOR}>${(data) => html`
    ${data.enabled ? null : html`<p class="notice warn">Pulsar clients may not watch topics here: they list instead, again and again.</p>`}
    ${data.watchers > 0.9 * data.most_watchers && html`<p class="notice bad">Almost no more watchers have a place: the bound is ${number(data.most_watchers)}.</p>`}
    <${Facts} items=${[['Watchers of Pulsar clients', html`${number(data.watchers)} <span class="muted">of ${number(data.most_watchers)} at most</span>`],
      ['Streams over HTTP', number(data.streams)], ['Questions', number(data.total)]]} />
    ${data.items.length === 0 ? html`<${Empty} title="Nobody follows topics now"><p>Consumers by pattern do, and the screen Live.</p><//>`
      : html`<${Table} caption="Followed questions" numeric=${[2, 3, 4, 5]} head=${['namespace', 'question', 'watchers', 'streams', 'behind', 'topics', 'state']}
        rows=${data.items.map((each) => [of(each.namespace), html`<${QuestionLink} of=${each} />`, number(each.watchers), number(each.streams), number(each.behind), number(each.topics),
          each.problem ? html`<${Badge} kind="bad">fails<//> ${each.problem}` : each.period_s ? `asked each ${duration(each.period_s)}` : 'told of changes'])} />`}
    ${data.total > data.items.length ? html`<p class="muted">${number(data.items.length)} of ${number(data.total)}</p>` : null}`}<//>`;
}

function Held() {
  const { api, me, say } = usePage();
  const ask = useGet('held-listings', {}, EVERY);
  const accept = async (namespace) => {
    try {
      say(`${counted((await api.post(`${ofNamespace(namespace)}/held-listings/accept`, undefined)).accepted, 'listing')} let pass`);
    } catch (error) {
      say(error.message);
    }
    ask.again();
  };
  return html`<${Answer} ask=${may(me, 'admin', 'somewhere') ? ask : { error: { status: 403 } }} what="held listings" rights="admin in a namespace">${(data) => (data.items.length === 0
    ? html`<${Empty} title="No listing is held"><p>A listing is held if many topics are missing in it at once, of namespaces that you may administer.</p><//>`
    : html`<p class="muted">Many topics are missing at once: clients get an error in place of a list that would have them unsubscribe.</p>
      <${Table} caption="Held listings" numeric=${[2, 3]} head=${['namespace', 'question', 'topics before', 'missing', 'held', 'passes by itself', 'or now']} rows=${data.items.map((each) => [
        of(each.namespace), html`<bdi>${each.question}</bdi>`, number(each.before), number(each.missing), ago(each.since), ago(each.until), me?.server.page_changes === false ? html`<code>broker-core shrink-guard accept</code>` : html`<button type="button" onClick=${() => accept(each.namespace)}>Let it pass</button>`])} />`)}<//>`;
}

/** The screens that the plugin itself brings. @param {{screen: {id: string}}} page */
export default ({ screen }) => ({ kafka: Kafka, watchers: Watchers, held: Held })[screen.id];

const KEPT = 500;
const SHOWN = 60;
const AGAIN_MS = 3000;

export function Live({ place }) {
  const { api, epoch } = usePage();
  const question = questionOf(place);
  const own = { ...question, as: null };
  const key = `${question.namespace}?${queryOf(own)}`;
  const visible = useVisible();
  const [paused, pause] = useState(false);
  const [from, setFrom] = useState(0);
  const [, draw] = useState(0);
  // What has come waits here for the next frame: a thousand changes a second are sixty drawings.
  const { current: live } = useRef(/** @type {any} */ ({ connected: false, error: null, id: '', events: [], waiting: [], added: 0, removed: 0, before: 0, frame: 0, begun: false }));
  live.paused = paused;
  const soon = (changed = {}) => {
    Object.assign(live, changed);
    live.frame ||= requestAnimationFrame(() => {
      live.frame = 0;
      if (!live.paused) live.events = [...live.waiting.splice(0).reverse(), ...live.events].slice(0, KEPT);
      draw((turn) => turn + 1);
    });
  };
  const clear = () => {
    setFrom(0);
    soon({ events: [], waiting: [], added: 0, removed: 0, before: 0 });
  };
  useEffect(() => {
    live.id = '';
    live.begun = false;
    clear();
  }, [key]);
  useEffect(() => {
    if (!visible) return undefined; // a hidden tab costs the server nothing
    const controller = new AbortController();
    const event = (name, data, id) => {
      if (id) live.id = id;
      if (name === 'snapshot') {
        // Names of a snapshot are not kept: only its end is read.
        const [, part, end] = /"part":(\d+),"last":(\w+)/.exec(data.slice(-400)) || [];
        soon({ connected: end === 'true', reading: Number(part) * 1000 });
      } else if (name === 'added' || name === 'removed') {
        const { items } = JSON.parse(data);
        const at = Date.now();
        for (const each of items) live.waiting.push({ kind: name, name: each, at });
        live.waiting.splice(0, live.waiting.length - KEPT);
        soon({ [name]: live[name] + items.length });
      } else if (name === 'resumed') soon({ connected: true });
      else if (name === 'error') {
        const problem = JSON.parse(data);
        soon({ error: new ApiError(problem.status, problem) });
      }
    };
    const run = async () => {
      soon({ connected: live.id && live.connected, error: null });
      try {
        await api.events(`${ofNamespace(question.namespace)}/topics`, parametersOf(question), {
          signal: controller.signal, last: live.id, event,
        });
      } catch (error) {
        if (controller.signal.aborted) return;
        soon({ connected: false, reading: 0, error });
        if (error.status === 0 || error.status >= 429) timer = setTimeout(run, AGAIN_MS);
      }
    };
    let timer = setTimeout(run, 150); // it may be typed
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [key, visible, epoch]);
  useEffect(() => () => cancelAnimationFrame(live.frame), []);

  const { connected, error, events, added, removed, reading } = live;
  live.begun ||= connected;
  const came = added + removed;
  const lost = came - events.length - live.waiting.length;
  const to = Math.min(from + SHOWN, events.length);
  const turn = (pausing, first) => {
    if (pausing !== paused) live.before = came;
    pause(pausing);
    setFrom(first);
    soon();
  };
  return html`<${Head} question=${question} now="live" />
    <${QuestionForm} screen="live" question=${question} error=${error} asks=${false} />
    ${question.as && html`<p class="notice warn">Live shows what you see, not what ${question.as.role ? html`the role <bdi>${question.as.role}</bdi>` : 'somebody else'} sees.</p>`}
    <div class="bar">
      <p class="result" role="status">${error ? html`<${Badge} kind="bad">${error.status === 0 ? 'not connected, trying again' : 'stopped'}<//>`
        : !connected ? html`<${Badge} kind="plain">${reading ? `reading ${number(reading)} names` : 'connecting'}<//>`
        : paused ? html`<${Badge} kind="warn">paused<//>` : html`<${Badge} kind="good">live<//>`}
        ${' '}<span class="muted">${number(added)} came, ${number(removed)} went${paused && came > live.before ? `, ${number(came - live.before)} since the pause` : ''}${lost ? `; no longer kept: ${counted(lost, 'change')}` : ''}</span></p>
      <button type="button" onClick=${() => turn(!paused, 0)}>${paused ? 'Go on' : 'Pause'}</button>
      <button type="button" disabled=${!events.length} onClick=${clear}>Clear</button>
    </div>
    ${error && error.status !== 0 && !isRefused(error) && html`<${Failure} error=${error} what="the changes" rights="list" />`}
    ${events.length ? html`<ol class="events" aria-label="Changes, newest first">${events.slice(from, to).map((each) => html`<li key=${each} class=${each.kind}>
      <time datetime=${new Date(each.at).toISOString()}>${clockTime(each.at)}</time>
      <span class="sign" aria-hidden="true">${each.kind === 'added' ? '+' : '−'}</span><span class="hidden-text">${each.kind === 'added' ? 'came' : 'went'}</span>
      <a href=${topicLink(question, each.name)}><bdi>${each.name}</bdi></a></li>`)}</ol>
      ${events.length > SHOWN && html`<div class="line"><button type="button" disabled=${!from} onClick=${() => turn(true, from - SHOWN)}>Newer</button>
        <button type="button" disabled=${to === events.length} onClick=${() => turn(true, to)}>Older</button> <span class="muted" role="status">${number(from + 1)} to ${number(to)} of ${number(events.length)}</span></div>`}`
      : live.begun && (!error || error.away) && !came ? html`<${Known} namespace=${question.namespace}><${Empty} title="Nothing has changed yet"><p>Topics that come and go show here at once.</p><//><//>` : null}`;
}
