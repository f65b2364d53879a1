// The server: its last hour, permits, caches, connections, frequent and slow questions, what the check says.
import { html, useId, useRef, useState } from '../html.js';
import { useAsk, usePage } from '../ask.js';
import { Answer, Badge, Field, QuestionLink, Table } from '../parts.js';
import { go, link, params } from '../address.js';
import { anything, clockTime, date, duration, number, percent, size, time } from '../format.js';

const EVERY_MS = 10_000;
/** Titles of series in the order of the page: what clients notice is first. @type {[string, string, (value: number) => string][]} */
const SERIES = [
  ['listings_per_s', 'Listings a second', anything],
  ['listing_ms', 'Time of a listing', (value) => duration(value / 1000)],
  ['listing_errors_per_s', 'Failed listings a second', anything],
  ['connections', 'Connections', number],
  ['http_per_s', 'HTTP requests a second', anything],
  ['kafka_per_s', 'Kafka requests a second', anything],
  ['loop_lag_ms', 'Lag of the event loop', (value) => duration(value / 1000)],
  ['cpu', 'Processor', percent],
  ['rss', 'Memory of the process', size],
  ['heap_used', 'Permits: heap', size],
  ['direct_used', 'Permits: direct', size],
  ['snapshots_used', 'Snapshots', size],
];

/** @param {{place: import('../address.js').Place}} props */
export function Server({ place }) {
  const { api, me } = usePage();
  const history = useAsk((signal) => api.get('server/history', {}, signal), [], { every: EVERY_MS });
  const server = me?.server;
  const denied = history.error?.status === 403;
  return html`<div class="head"><h1 tabindex="-1">Server</h1>
      <p class="muted">${server ? html`broker-core ${server.version}, ${server.topics === 'upstream' ? 'before a cluster' : 'with a catalogue of its own'}` : null}</p></div>
    <section aria-label="The last hour"><h2>The last hour</h2>
      <${Answer} ask=${history} what=${denied ? 'the last hour, permits, caches and connections' : 'the last hour'} rights="monitor in all namespaces">${(data) => html`<${Hour} data=${data} />`}<//></section>
    ${denied ? null : html`<${Permits} />
    <${Caches} />
    <${Clients} order=${place.query.get('order') || 'age'} />`}
    ${server?.questions === false ? html`<section><h2>Questions</h2><p class="muted">Not counted: <code>[http] questions = true</code> in the settings counts them.</p></section>`
      : html`<${Questions} order=${place.query.get('questions') || 'count'} />`}
    ${denied ? null : html`<${Check} />`}`;
}

/** @param {{data: any}} props */
function Hour({ data }) {
  const until = date(data.until)?.getTime() ?? Date.now();
  const shown = SERIES.filter(([name]) => data.series[name]?.some((each) => each !== null));
  const others = Object.keys(data.series).filter((name) => !SERIES.some(([known]) => known === name));
  if (!shown.length) return html`<p class="muted">The first values come ${duration(data.interval_s)} after the start.</p>`;
  return html`<div class="charts">${[...shown, ...others.map((name) => /** @type {[string, string, any]} */ ([name, name, anything]))].map(([name, title, format]) => html`<${Chart}
    key=${name} title=${title} values=${data.series[name]} until=${until} interval=${data.interval_s} format=${format} />`)}</div>
    <p class="muted small">A value each ${duration(data.interval_s)}, up to ${time(until)}.</p>`;
}

function Caches() {
  const { api } = usePage();
  const ask = useAsk((signal) => api.get('server/caches', {}, signal), [], { every: EVERY_MS });
  return html`<section aria-label="Caches"><h2>Caches</h2>
    <${Answer} ask=${ask} what="the caches" rights="monitor in all namespaces">${(data) => html`<${Table} caption="Each cache" numeric=${[1, 2, 3]} head=${['cache', 'entries', 'memory', 'at most']}
      rows=${data.items.map((each) => [each.name, number(each.entries), size(each.bytes), each.limit_bytes === null ? 'no bound' : size(each.limit_bytes)])} />`}<//></section>`;
}

/** What `broker-core check` says of the settings files of this server: asked for by a button, since it looks at all of it. */
function Check() {
  const { api } = usePage();
  const [asked, setAsked] = useState(false);
  const ask = useAsk(asked ? (signal) => api.get('server/check', {}, signal) : null, [asked]);
  const kinds = { ok: 'good', warning: 'warn', error: 'bad' };
  return html`<section aria-label="Check"><div class="bar"><h2>Check</h2>
      <button type="button" onClick=${() => (asked ? ask.again() : setAsked(true))}>Check the settings</button></div>
    ${asked ? html`<${Answer} ask=${ask} what="the check" rights="monitor in all namespaces">${(data) => html`<${Table} caption="What the check says" head=${['checked', 'result', 'says']}
        rows=${[...data.items].sort((one, other) => Number(one.level === 'ok') - Number(other.level === 'ok')).map((each) => [html`<code>${each.name}</code>`, html`<${Badge} kind=${kinds[each.level] || 'plain'}>${each.level}<//>`, each.text])} />
      <p class="muted small">Checked ${time(data.checked)}.</p>`}<//>`
      : html`<p class="muted">As <code>broker-core check</code> says it of the settings files of this server.</p>`}</section>`;
}

function Permits() {
  const { api } = usePage();
  const ask = useAsk((signal) => api.get('server/permits', {}, signal), [], { every: EVERY_MS });
  return html`<section aria-label="Permits"><h2>Memory under permits</h2>
    <${Answer} ask=${ask} what="the permits" rights="monitor in all namespaces">${(data) => html`<ul class="meters">${data.items.map((each) => html`<li>
      <span class="name">${each.name}</span>
      ${each.limit_bytes ? html`<meter min="0" max=${each.limit_bytes} high=${each.limit_bytes * 0.85} value=${each.used_bytes} aria-label=${`${each.name}: used`}></meter>` : html`<span class="muted">no bound</span>`}
      <span>${size(each.used_bytes)}${each.limit_bytes ? html` <span class="muted">of ${size(each.limit_bytes)}</span>` : null}</span>
      <span class="muted small">${each.waiting ? `${number(each.waiting)} waiting` : ''}</span></li>`)}</ul>`}<//></section>`;
}

/** @param {{order: string}} props */
function Clients({ order }) {
  const { api } = usePage();
  const [all, showAll] = useState(false);
  const ask = useAsk((signal) => api.get('server/clients', { order, limit: 10_000 }, signal), [order], { every: EVERY_MS });
  return html`<section aria-label="Connections"><div class="bar"><h2>Connections</h2>
      <${Field} label="First those with" class="inline"><select value=${order} onChange=${(event) => go(link(['server'], params({ order: event.target.value })), { replace: true })}>
        ${[['age', 'the longest time'], ['requests', 'most requests'], ['bytes', 'most bytes'], ['memory', 'most memory']].map(([value, text]) => html`<option value=${value}>${text}</option>`)}
      </select><//></div>
    <${Answer} ask=${ask} what="the connections" rights="monitor in all namespaces">${(data) => {
      /** @type {Map<string, {role: string, transport: string, count: number, requests: number, bytes: number}>} */
      const groups = new Map();
      for (const each of data.items) {
        const role = each.role ?? '';
        const key = `${each.transport} ${role}`;
        const group = groups.get(key) || { role, transport: each.transport, count: 0, requests: 0, bytes: 0 };
        group.count += 1;
        group.requests += each.requests_per_second;
        group.bytes += each.bytes_per_second;
        groups.set(key, group);
      }
      const shown = data.items.slice(0, all ? 200 : 10);
      return html`<${Table} caption="Connections by role and transport" numeric=${[2, 3, 4]} head=${['role', 'transport', 'connections', 'requests a second', 'bytes a second']}
          rows=${[...groups.values()].sort((one, other) => other.count - one.count).slice(0, 50).map((each) => [
            each.role ? html`<bdi>${each.role}</bdi>` : html`<span class="muted">no role</span>`, each.transport, number(each.count), anything(each.requests), size(each.bytes)])} />
        <${Table} caption="Each connection" numeric=${[3, 4, 5]} head=${['address', 'client', 'asks', 'age', 'requests a second', 'memory']}
          rows=${shown.map((each) => [html`<code>${each.address || 'socket'}</code>`, html`<bdi class="cut" title=${each.client_version}>${each.client_version || '–'}</bdi>`,
            html`<bdi>${(each.asks || []).map((one) => `${one.operation} ${one.namespace}`.trim()).join(', ') || '–'}</bdi>`,
            duration(each.age_seconds), anything(each.requests_per_second), size(each.memory_bytes)])} />
        ${data.total > shown.length ? html`<p><button type="button" class="quiet" onClick=${() => showAll(true)} hidden=${all}>Show more</button> <span class="muted">${number(shown.length)} of ${number(data.total)}</span></p>` : null}`;
    }}<//></section>`;
}

/** @param {{order: string}} props */
function Questions({ order }) {
  const { api } = usePage();
  const ask = useAsk((signal) => api.get('server/questions', { order, limit: 25 }, signal), [order], { every: 3 * EVERY_MS });
  return html`<section aria-label="Questions"><div class="bar"><h2>Questions</h2>
      <${Field} label="First" class="inline"><select value=${order} onChange=${(event) => go(link(['server'], params({ questions: event.target.value })), { replace: true })}>
        <option value="count">the most frequent</option><option value="seconds">those that took longest</option></select><//></div>
    <${Answer} ask=${ask} what="the questions" rights="monitor">${(data) => (data.items.length === 0 ? html`<p class="muted">Nobody has asked yet.</p>`
      : html`<${Table} caption="Each question" numeric=${[2, 3, 4]} head=${['namespace', 'question', 'asked', 'mean', 'in all', 'last']}
        rows=${data.items.map((each) => [html`<bdi>${each.namespace}</bdi>`,
          html`<${QuestionLink} of=${each} />`,
          number(each.count), duration(typeof each.mean_ms === 'number' ? each.mean_ms / 1000 : undefined), duration(each.seconds), time(each.last_asked)])} />`)}<//></section>`;
}

// Lines over time, as SVG: one series, its greatest value, and the value under the pointer.

const WIDTH = 600;
const HEIGHT = 120;

/**
 * @param {object} props
 * @param {string} props.title
 * @param {(number | null)[]} props.values the oldest is first
 * @param {number} props.until milliseconds of the last one
 * @param {number} props.interval seconds between two
 * @param {(value: number) => string} props.format
 * @param {number} [props.samples] that the width is for
 */
function Chart({ title, values, until, interval, format, samples = 360 }) {
  const id = useId();
  const svg = useRef(/** @type {SVGElement | null} */ (null));
  const [at, setAt] = useState(-1);
  const known = values.filter((each) => each !== null);
  const most = Math.max(...known.map(Number), 0) || 1;
  const x = (index) => ((samples - values.length + index) / (samples - 1)) * WIDTH;
  const y = (value) => HEIGHT - 4 - (value / most) * (HEIGHT - 12);
  let line = '';
  let pen = false;
  values.forEach((value, index) => {
    if (value === null) pen = false;
    else {
      // The stroke of a lone value is its dot.
      line += `${pen ? 'L' : 'M'}${x(index).toFixed(1)} ${y(value).toFixed(1)}${pen ? '' : 'h.1'}`;
      pen = true;
    }
  });
  const last = values.length - 1;
  const index = at >= 0 && at <= last ? at : last;
  const value = values[index];
  const when = (of) => clockTime(until - (last - of) * interval * 1000);
  const moved = (event) => {
    const box = svg.current?.getBoundingClientRect();
    if (box) setAt(Math.round(((event.clientX - box.left) / box.width) * (samples - 1)) - (samples - values.length));
  };
  return html`<figure class="chart">
    <figcaption id=${id}><span>${title}</span> <b>${value === null || value === undefined ? '–' : format(value)}</b>
      <span class="muted small">${at >= 0 && at <= last ? when(index) : `most ${known.length ? format(Math.max(...known.map(Number))) : '–'}`}</span></figcaption>
    <svg ref=${svg} role="img" aria-labelledby=${id} viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none"
        onPointerMove=${moved} onPointerLeave=${() => setAt(-1)}>
      <path class="grid" d=${`M0 ${HEIGHT - 4}H${WIDTH}M0 ${HEIGHT / 2}H${WIDTH}`} />
      <path class="curve" d=${line} />
      ${at >= 0 && at <= last ? html`<path class="cursor" d=${`M${x(index)} 0V${HEIGHT}`} />` : null}
    </svg>
  </figure>`;
}
