// The listing of a namespace: a question, what matches, and why a topic does not.
import { html, useMemo, useRef, useState } from '../html.js';
import { useAsk, usePage, useSettled } from '../ask.js';
import { go, link } from '../address.js';
import { ofNamespace, part } from '../api.js';
import { Answer, Badge, Command, Copy, Dialog, download, Empty, Facts, Field, NamespaceTabs, TextInput } from '../parts.js';
import { QuestionForm } from '../question_form.js';
import { bodyOf, formsOf, parametersOf, patternOf, queryOf, questionOf, save } from '../question.js';
import { marker } from '../patterns.js';
import { Rows } from '../rows.js';
import { counted, duration, number } from '../format.js';

const FIRST = 200;
const AS_NAMES = 1000;

/** @param {{place: import('../address.js').Place}} props */
export function Topics({ place }) {
  const { api } = usePage();
  const question = questionOf(place);
  const key = queryOf(question).toString();
  const [keeping, keep] = useState(false);
  const ask = useAsk(async (signal) => {
    const before = performance.now();
    const found = question.as === null ? await listing(api, question, signal) : await asSomebody(api, question, signal);
    return { ...found, key, question, took: (performance.now() - before) / 1000 };
  }, [question.namespace, key]);
  const { data, error, loading } = ask;
  const refused = error?.cause_ === 'PATTERN' && !loading;
  return html`<${Head} namespace=${question.namespace} now="topics" />
    <${QuestionForm} screen="topics" question=${question} error=${loading ? null : error} />
    <div class="split">
      <section class="main" aria-label="Topics that match">
        <div class="bar">
          <p class="result" role="status">${error && !loading ? '' : data === undefined ? 'Asking…' : html`<b>${number(data.total)}</b> ${data.total === 1 ? 'name' : 'names'}${
            data.plan?.looked_at > data.total ? html` <span class="muted">of ${number(data.plan.looked_at)}</span>` : null}${
            data.question.as ? html` <span class="muted">for <bdi>${data.question.as.role || 'somebody'}</bdi></span>` : null}${
            loading ? html` <span class="muted">${ask.slow ? 'The server is slow…' : ''}</span>` : null}`}</p>
          <button type="button" onClick=${() => keep(true)}>Keep, copy, export</button>
        </div>
        ${(data?.warnings || []).map((text) => html`<p class="notice warn" role="status">${text}</p>`)}
        ${refused ? html`<${Empty} title="RE2 does not take this pattern"><p>What is wrong stands below the pattern. Clients filter by themselves then, at the price of all names.</p><//>`
          : html`<${Answer} ask=${ask} what="the topics" rights=${question.as ? 'admin' : 'list'}>${(found) => (found.total === 0
            ? html`<${NoTopics} question=${question} />`
            : html`<${Listing} found=${found} load=${found.question.as ? null : api} stale=${ask.old} />`)}<//>`}
      </section>
      <aside aria-label="About this question">
        <${WhyBox} question=${question} />
        ${data && !refused && !error ? html`<${Cost} data=${data} />` : null}
      </aside>
    </div>
    ${keeping ? html`<${Keep} question=${question} total=${data?.total} close=${() => keep(false)} />` : null}`;
}

/** @param {{namespace: string, now: string}} props */
export const Head = ({ namespace, now }) => html`<div class="head"><h1 tabindex="-1"><bdi>${namespace}</bdi></h1>
  <${NamespaceTabs} namespace=${namespace} now=${now} /></div>`;

/** @param {import('../api.js').Api} api @param {any} question @param {AbortSignal} signal */
async function listing(api, question, signal) {
  const found = await api.get(
    `${ofNamespace(question.namespace)}/topics`,
    { ...parametersOf(question), limit: FIRST, count: true, plan: true }, signal,
  );
  return { ...found, names: found.items };
}

/** @param {import('../api.js').Api} api @param {any} question @param {AbortSignal} signal */
async function asSomebody(api, question, signal) {
  const found = await api.post(`${ofNamespace(question.namespace)}/explain`, { ...bodyOf(question), names: AS_NAMES }, signal);
  if (found.error) {
    const { ApiError } = await import('../api.js');
    throw new ApiError(found.cause === 'DENIED' ? 403 : 400, { detail: found.error, cause: found.cause });
  }
  return { ...found, total: found.topics, plan: { how: found.plan, ms: found.ms }, explained: found };
}

/** @param {{found: any, load: import('../api.js').Api | null, stale: boolean}} props */
function Listing({ found, load, stale }) {
  const { question } = found;
  const marks = useMemo(() => marker(patternOf(question)), [patternOf(question)]);
  const version = useRef(found.version);
  version.current = found.version;
  const [moved, setMoved] = useState(null);
  const fetchPage = load === null ? null : async (offset, limit, signal) => {
    const page = await load.get(`${ofNamespace(question.namespace)}/topics`, { ...parametersOf(question), offset, limit, count: true }, signal);
    if (page.version !== version.current || page.total !== found.total) setMoved(found.key);
    return page.items;
  };
  const total = load === null ? found.names.length : found.total;
  return html`<div class=${stale ? 'stale' : ''}>
    ${moved === found.key ? html`<p class="notice">Topics have changed since: the rows below may be of two states.${' '}
      <button type="button" class="link" onClick=${() => dispatchEvent(new Event('ask-again'))}>Look again</button></p>` : null}
    ${total < found.total ? html`<p class="notice">These are the first ${number(total)} of ${number(found.total)}.</p>` : null}
    <${Rows} label=${`Topics of ${question.namespace}`} of=${`${question.namespace}?${found.key}`} total=${total} first=${found.names} load=${fetchPage}
      href=${(name) => topicLink(question.namespace, name)}
      row=${(name) => html`<${Name} name=${name} namespace=${question.namespace} marks=${marks} />`} />
  </div>`;
}

/** @param {string} namespace @param {string} name @returns {string} the page of a topic */
export function topicLink(namespace, name) {
  const short = name.startsWith(`persistent://${namespace}/`) ? name.slice(`persistent://${namespace}/`.length) : name;
  return link(['topic', ...namespace.split('/'), short]);
}

/** A name with its literal and captured parts. @param {{name: string, namespace: string, marks: (name: string) => any[]}} props */
function Name({ name, namespace, marks }) {
  const shown = name.startsWith('persistent://') ? `persistent://${namespace}/`.length : 0;
  const found = marks(name);
  const pieces = [];
  let at = shown;
  for (const [start, end, captured] of found) {
    if (end <= at) continue;
    if (start > at) pieces.push(name.slice(at, start));
    const text = name.slice(Math.max(start, at), end);
    pieces.push(captured ? html`<mark class="captured">${text}</mark>` : html`<mark class="literal">${text}</mark>`);
    at = end;
  }
  pieces.push(name.slice(at));
  return html`<bdi class="topic" title=${name}>${pieces}</bdi>`;
}

/** @param {{question: any}} props */
function NoTopics({ question }) {
  const narrowed = question.typed || question.properties.length || question.mode !== 'persistent' || question.as;
  const all = link(['topics', ...question.namespace.split('/')], { mode: 'all' });
  return narrowed ? html`<${Empty} title="No topic matches">
      <p>Is there one that should be here? Type its name under “Why not?”, and the server says which step takes it away.</p>
      <p><a href=${all}>Show all topics of the namespace</a></p><//>`
    : html`<${Empty} title="No persistent topics here"><p>The namespace holds none that you may see. <a href=${all}>Show non-persistent ones too</a></p><//>`;
}

/** @param {{question: any}} props */
function WhyBox({ question }) {
  const [name, set] = useState('');
  return html`<form class="panel" onSubmit=${(event) => {
    event.preventDefault();
    if (name) go(link(['why', ...question.namespace.split('/')], queryOf(question, { topic: name })));
  }}><h2>Is a topic missing?</h2>
    <div class="line"><${Field} label="Its name" class="grows"><${TextInput} value=${name} set=${set} placeholder="orders-7" /><//>
    <button type="submit" class="primary">Why not?</button></div></form>`;
}

const HOW = /** @type {Record<string, string>} */ ({
  none: 'No name can match: nothing was looked at.',
  all: 'All names: there is no pattern to run.',
  literal: 'One name, looked up.',
  range: 'A range of names with the same beginning.',
  scan: 'The pattern was run over all names.',
  unsupported: 'RE2 does not take the pattern.',
  lister: 'A plugin selected the topics.',
});

/** @param {{data: any}} props */
function Cost({ data }) {
  const { plan, explained } = data;
  return html`<section class="panel"><h2>How it was found</h2>
    <p>${HOW[plan?.how === 'none' && data.total ? 'all' : plan?.how] || plan?.how || ''}</p>
    <${Facts} items=${/** @type {any} */ ([
      ['Server', duration(typeof plan?.ms === 'number' ? plan.ms / 1000 : undefined)],
      ['Until shown', duration(data.took)],
      ...(plan?.required?.length ? [['Must have', plan.required.map((each) => html`<code>${each}</code> `)]] : []),
      ...(explained ? [['Listed by', explained.lister || 'the catalogue']] : []),
      ...(data.topics_hash ? [['Hash', html`<code>${data.topics_hash}</code>`]] : []),
    ])} /></section>`;
}

/** @param {{question: any, total: number | undefined, close: () => void}} props */
function Keep({ question, total, close }) {
  const { api, say } = usePage();
  const [name, setName] = useState(question.typed || question.namespace);
  const [progress, setProgress] = useState('');
  const here = location.href;
  const csv = async () => {
    const chunks = ['name\r\n'];
    /** @type {string | null} */
    let cursor = '';
    let rows = 0;
    try {
      do {
        const page = await api.get(`${ofNamespace(question.namespace)}/topics`, { ...parametersOf(question), limit: 10_000, cursor });
        chunks.push(page.items.map((each) => (/[",\r\n]/.test(each) ? `"${each.replaceAll('"', '""')}"` : each) + '\r\n').join(''));
        rows += page.items.length;
        cursor = page.next;
        setProgress(`${number(rows)} of ${number(total)}`);
      } while (cursor);
      download(`${question.namespace.replace('/', '-')}.csv`, chunks, 'text/csv');
      setProgress(`${counted(rows, 'name')} in the file`);
    } catch (error) {
      setProgress(`Stopped: ${error.message} No file was made.`);
    }
  };
  return html`<${Dialog} title="Keep this question" close=${close} wide>
    <div class="line">
      <${Field} label="Keep it in this browser as" class="grows"><${TextInput} value=${name} set=${setName} /><//>
      <button type="button" class="primary" disabled=${!name} onClick=${() => {
        say(save(name, location.hash) ? 'Kept: it stands on the page of namespaces' : 'This browser stores nothing for this page');
        close();
      }}>Keep</button>
    </div>
    <div class="line"><${Copy} text=${here} label="Copy the link" />
      ${question.as ? null : html`<button type="button" class="quiet" onClick=${csv}>CSV of all ${number(total)} names</button>`}
      <span class="muted" role="status">${progress}</span></div>
    ${question.as ? html`<p class="muted">The commands below ask as yourself.</p>` : null}
    ${formsOf(question, api.signedIn).map(([title, text]) => html`<h3>${title}</h3><${Command} text=${text} label=${`Copy ${title}`} />`)}
  <//>`;
}

// Why a topic is not in a listing: each step that could take it away, and what it would take.

const STEPS = /** @type {Record<string, string>} */ ({
  rules: 'Rules', gates: 'Gates of plugins', exists: 'Existence', mode: 'Mode', properties: 'Properties', plugins: 'Plugins',
  pattern: 'Pattern', masks: 'Masks of plugins', held: 'Held listings',
});

/** @param {{place: import('../address.js').Place}} props */
export function Why({ place }) {
  const { api } = usePage();
  const question = questionOf(place);
  const topic = place.query.get('topic') || '';
  const settled = useSettled(topic, 150);
  const key = queryOf(question).toString();
  const ask = useAsk(settled === '' ? null : (signal) => api.post(
    `${ofNamespace(question.namespace)}/topics/${part(settled)}:why`, bodyOf(question), signal,
  ), [question.namespace, key, settled], { keep: false, delay: 60 });
  return html`<${Head} namespace=${question.namespace} now="why" />
    <form class="line" onSubmit=${(event) => event.preventDefault()}>
      <${Field} label="The topic that is missing" class="grows" hint="Its name, without tenant/namespace; the question stands below.">
        <${TextInput} value=${topic} placeholder="orders-7" data-search set=${(text) => go(
          link(['why', ...question.namespace.split('/')], queryOf(question, { topic: text })), { replace: true },
        )} /><//>
    </form>
    <${QuestionForm} screen="why" question=${question} more=${{ topic }} error=${ask.loading ? null : ask.error} />
    ${topic === '' ? html`<${Empty} title="Which topic?"><p>Type its name above. The server asks each step that could take it away, with the question as it stands.</p><//>`
      : html`<${Answer} ask=${ask} what="why a topic is not listed" rights="admin in this namespace">${(found) => html`
        <${Verdict} found=${found} question=${question} />`}<//>`}`;
}

/** @param {{found: any, question: any}} props */
function Verdict({ found, question }) {
  const asks = question.as?.role ? html`the role <b><bdi>${question.as.role}</bdi></b>` : question.as ? 'this client' : 'you';
  return html`<section aria-label="The answer">
    <div class=${`verdict ${found.listed ? 'good' : 'bad'}`} role="status">
      <h2>${found.listed ? html`<bdi>${short(found.topic, question)}</bdi> is listed for ${asks}` : html`<bdi>${short(found.topic, question)}</bdi> is not listed for ${asks}`}</h2>
      <p>${found.listed ? 'No step takes it away.' : html`Taken away by: <b>${STEPS[found.blocked_by] || found.blocked_by || 'a step that is not known'}</b>.`}
        ${found.steps.some((each) => each.step === 'exists' && each.passes) ? html` <a href=${topicLink(question.namespace, found.topic)}>Look at the topic</a>` : null}</p>
    </div>
    <ol class="steps">${found.steps.map((each) => html`<li class=${each.passes === false ? 'bad' : each.passes ? 'good' : 'unknown'}>
      <div class="step"><span class="sign" aria-hidden="true">${each.passes === false ? '✕' : each.passes ? '✓' : '·'}</span>
        <b>${STEPS[each.step] || each.step}</b>
        <${Badge} kind=${each.passes === false ? 'bad' : each.passes ? 'good' : 'plain'}>${each.passes === false ? 'takes it away' : each.passes ? 'passes' : 'not asked'}<//>
        ${each.by ? html`<span class="muted"><bdi>${each.by}</bdi></span>` : null}</div>
      <p>${each.says}</p>
      ${each.needs ? html`<p class="needs"><b>What it would take:</b> ${each.needs}</p>` : null}
    </li>`)}</ol></section>`;
}

/** @param {string} topic @param {any} question */
const short = (topic, question) => (topic.startsWith(`persistent://${question.namespace}/`) ? topic.slice(14 + question.namespace.length) : topic);
