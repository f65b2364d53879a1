// The listing of a namespace: a question, what matches, and why a topic does not.
import { ApiError, counted, duration, go, html, link, linkIn, number, ofNamespace, part, shortName, useAsk, useEffect, useLayoutEffect, useMemo, usePage, useRef, useSettled, useState } from '../page.js';
import { Answer, Badge, Command, Copy, Dialog, Empty, Facts, Field, TextInput, download } from '../parts.js';
import { QuestionForm, SPACE, bodyOf, commandOf, formsOf, isRefused, literal, marker, parametersOf, patternOf, queryOf, questionOf, save, useValues } from '../question.js';

/** Rows of a request, and what is said of each besides its name. */
const PAGE = 200;
const DETAIL = 'partitions,properties';
const RENEWED_MS = 5000;
const AS_NAMES = 1000;

export function Topics({ place }) {
  const { api } = usePage();
  const question = questionOf(place);
  const key = queryOf(question).toString();
  const [keeping, keep] = useState(false);
  const shown = { renew: place.query.get('renew') || '', order: place.query.get('order') || '' };
  const renewed = shown.renew !== '';
  const ask = useAsk(async (signal) => {
    const before = performance.now();
    const known = data?.key === key ? data : undefined;
    const found = question.as === null ? await listing(api, question, signal, known) : await asSomebody(api, question, signal);
    return found === known ? known : { ...found, key, question, took: (performance.now() - before) / 1000 };
  }, [question.namespace, key], { every: renewed ? RENEWED_MS : 0 });
  const { data, error, loading } = ask;
  const view = (changed) => go(linkIn('topics', question.namespace, queryOf(question, { ...shown, ...changed })), { replace: true });
  const refused = isRefused(error) && !loading;
  return html`<${Head} question=${question} now="topics" />
    <${QuestionForm} screen="topics" question=${question} more=${shown} error=${loading ? null : error} />
    <div class="split">
      <section class="main" aria-label="Topics that match">
        <div class="bar">
          <p class="result" role="status">${refused ? html`<span class="hidden-text">The pattern is refused: ${error.problem.error.reason}</span>` : error && !loading ? '' : data === undefined ? 'Asking…' : html`<b>${number(data.total)}</b> ${data.total === 1 ? 'name' : 'names'}${
            data.plan?.looked_at > data.total ? html` <span class="muted">of ${number(data.plan.looked_at)}</span>` : null}${
            data.question.as ? html` <span class="muted">for <bdi>${data.question.as.role || 'somebody'}</bdi></span>` : null}${
            loading ? html` <span class="muted">${ask.slow ? 'The server is slow…' : ''}</span>` : null}`}</p>
          <label class="radio"><input type="checkbox" checked=${renewed} onChange=${() => view({ renew: renewed ? '' : 1 })} /> Refresh every 5 s</label>
          <button type="button" onClick=${() => keep(true)}>Keep, copy, export</button>
        </div>
        ${(data?.warnings || []).map((text) => html`<p class="notice warn" role="status">${text}</p>`)}
        ${refused ? html`<${NotTaken} />`
          : html`<${Answer} ask=${ask} what="the topics" rights=${question.as && !error?.problem?.as ? 'admin' : 'list'}>${(found) => (found.total === 0
            ? html`<${NoTopics} question=${question} />`
            : html`<${Listing} found=${found} load=${found.question.as ? null : api} stale=${ask.old} last=${shown.order === 'last'}
              turn=${() => view({ order: shown.order ? '' : 'last' })} />`)}<//>`}
      </section>
      <aside aria-label="About this question">
        <${WhyBox} question=${question} />
        ${data && !refused && !error ? html`<${Cost} data=${data} />` : null}
      </aside>
    </div>
    ${keeping ? html`<${Keep} question=${question} total=${data?.total} refused=${refused} close=${() => keep(false)} />` : null}`;
}

export const Head = ({ question, now }) => html`<div class="head"><h1 tabindex="-1"><bdi>${question.namespace}</bdi></h1>
  <nav class="tabs" aria-label="Of this namespace">${[['topics', 'Topics'], ['why', 'Why not?'], ['live', 'Live']].map(([screen, text]) => html`<a
    href=${linkIn(screen, question.namespace, queryOf(question))} aria-current=${now === screen ? 'page' : undefined}>${text}</a>`)}</nav></div>`;

async function listing(api, question, signal, known) {
  const response = await api.request('GET', `${ofNamespace(question.namespace)}/topics`, {
    query: { ...parametersOf(question), limit: PAGE, count: true, plan: true, detail: DETAIL }, headers: known?.etag ? { 'If-None-Match': known.etag } : {}, signal,
  });
  return response.status === 304 ? known : { ...(await api.read(response)), etag: response.headers.get('ETag') };
}

async function asSomebody(api, question, signal, names = AS_NAMES) {
  const found = await api.post(`${ofNamespace(question.namespace)}/explain`, { ...bodyOf(question), names }, signal);
  if (found.error) {
    throw /denied/i.test(found.cause) ? new ApiError(403, { detail: found.error, as: question.as.role || 'none' })
      : new ApiError(502, { detail: found.error, cause: found.cause.toUpperCase() });
  }
  return { ...found, items: found.names, total: found.topics, plan: { how: found.plan, ms: found.ms }, explained: found };
}

function Listing({ found, load, stale, last, turn }) {
  const { question } = found;
  const marks = useMemo(() => marker(patternOf(question)), [patternOf(question)]);
  const latest = useRef(found);
  latest.current = found;
  const [moved, setMoved] = useState(null);
  const fetchPage = load === null ? null : async (offset, limit, signal) => {
    const page = await load.get(`${ofNamespace(question.namespace)}/topics`, { ...parametersOf(question), offset, limit, count: true, detail: DETAIL }, signal);
    if (page.topics_hash !== latest.current.topics_hash) setMoved(latest.current);
    return page.items;
  };
  const total = load === null ? found.items.length : found.total;
  return html`<div class=${stale ? 'stale' : ''} aria-busy=${stale} data-shown=${question.typed}>
    ${moved === found ? html`<p class="notice">Topics have changed since: the rows below may be of two states.${' '}
      <button type="button" class="link" onClick=${() => dispatchEvent(new Event('ask-again'))}>Look again</button></p>` : null}
    ${total < found.total ? html`<p class="notice">These are the first ${number(total)} of ${number(found.total)}.</p>` : null}
    <div class="row columns"><button type="button" class="link" aria-label=${`Name, ${last ? 'descending' : 'ascending'}`} onClick=${turn}>Name ${last ? '▼' : '▲'}</button>${load ? html`<span aria-hidden="true" class="number">Partitions</span><span aria-hidden="true">Properties</span>` : null}</div>
    <p class="hint narrow">Properties: on the page of a topic, or a wider screen.</p>
    <${Rows} label=${`Topics of ${question.namespace}`} of=${`${question.namespace}?${found.key} ${last}`} state=${found.topics_hash} last=${last} total=${total} first=${found.items} load=${fetchPage}
      href=${(item) => topicLink(question.namespace, item.name || item)}
      row=${(item) => html`<${Name} name=${item.name || item} namespace=${question.namespace} marks=${marks} />${item.partitions ? html`<span class="number"><span class="hidden-text">, partitions: </span>${number(item.partitions)}</span>` : null}${
        Object.keys(item.properties || {}).length ? html`<span class="muted"><span class="hidden-text">, </span><bdi>${Object.entries(item.properties).map((pair) => pair.join('=')).join(', ')}</bdi></span>` : null}`} />
  </div>`;
}

/** @type {F.inNamespace} */
export function topicLink(namespace, name) {
  return link(['topic', ...namespace.split('/'), shortName(namespace, name)]);
}

/** A name with its literal and captured parts. */
function Name({ name, namespace, marks }) {
  const shown = name.length - shortName(namespace, name).length;
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

function NoTopics({ question }) {
  const narrowed = question.typed || question.properties.length || question.mode !== 'persistent' || question.as;
  const all = linkIn('topics', question.namespace, { mode: 'all' });
  return html`<${Known} namespace=${question.namespace}>${narrowed ? html`<${Empty} title="No topic matches">
      ${question.as ? null : question.properties.map(([key, value]) => html`<${ValuesOf} key=${key} name=${key} value=${value} question=${question} />`)}
      <p>Is there one that should be here? Type its name under “Why not?”, and the server says which step takes it away.</p>
      <p><a href=${all}>Show all topics of the namespace</a></p><//>`
    : html`<${Empty} title="No persistent topics here"><p><a href=${all}>Show non-persistent ones too</a></p><//>`}<//>`;
}

/** What stands for no topics, unless the server knows no such namespace. */
export function Known({ namespace, children }) {
  const { api } = usePage();
  const ask = useAsk(async (signal) => {
    const { counts } = await api.get(ofNamespace(namespace), {}, signal);
    if (counts.all) return true;
    const { items } = await api.get('namespaces', { prefix: namespace, limit: 1 }, signal).catch((error) => {
      if (error.status === 501) return { items: [{ namespace }] }; // brokers hold the topics
      throw error;
    });
    return items[0]?.namespace === namespace;
  }, [namespace], { keep: false });
  return html`<${Answer} ask=${ask} what="the namespace" rights="list">${(known) => known ? children : html`<${Empty} title="No such namespace is known"><p>A namespace is there while it has topics, and you may see none of <bdi>${namespace}</bdi>.${' '}
    <a href=${link(['namespaces'], { find: namespace.split('/')[0] })}>Namespaces like it</a></p><//>`}<//>`;
}

/** The values of a property, if no topic has the one that is asked. */
function ValuesOf({ name, value, question }) {
  const { data } = useValues(question, name, '');
  if (!data || data.items.some((each) => each.value === value)) return null;
  const others = question.properties.filter(([key]) => key !== name);
  return html`<p>${data.items.length ? html`No topic has <bdi>${name}=${value}</bdi>, but: ${data.items.map((each) => html`<a
    href=${linkIn('topics', question.namespace, queryOf({ ...question, properties: [...others, [name, each.value]] }))}><bdi>${each.value}</bdi></a> `)}`
    : html`No topic has a property <bdi>${name}</bdi>.`}</p>`;
}

function WhyBox({ question }) {
  const [name, set] = useState('');
  return html`<form class="panel" onSubmit=${(event) => {
    event.preventDefault();
    if (name) go(linkIn('why', question.namespace, queryOf(question, { topic: name })));
  }}><h2>Is a topic missing?</h2>
    <div class="line"><${Field} label="Its name" class="grows"><${TextInput} value=${name} set=${set} placeholder="orders-7" /><//>
    <button type="submit" class="primary">Why not?</button></div></form>`;
}

const HOW = {
  none: 'No name can match: nothing was looked at.',
  all: 'There is no pattern to run.',
  literal: 'One name, looked up.',
  range: 'A range of names with the same beginning.',
  scan: 'The pattern was run over all names.',
  unsupported: 'RE2 does not take the pattern.',
  lister: 'A plugin selected the topics.',
};

function Cost({ data }) {
  const { plan, explained } = data;
  return html`<section class="panel"><h2>How it was found</h2>
    <p>${HOW[plan?.how === 'none' && data.total ? 'all' : plan?.how] || plan?.how || ''}</p>
    <${Facts} items=${[
      ['Server', duration(typeof plan?.ms === 'number' ? plan.ms / 1000 : undefined)],
      ['Until shown', duration(data.took)],
      ...(plan?.required?.length ? [['Must have', plan.required.map((each) => html`<code>${each}</code> `)]] : []),
      ...(explained ? [['Listed by', explained.lister || 'the catalogue']] : []),
      ...(data.topics_hash ? [['Hash', html`<code>${data.topics_hash}</code>`]] : []),
    ]} /></section>`;
}

function Keep({ question, total, refused, close }) {
  const { api, say } = usePage();
  const [name, setName] = useState([question.typed || question.namespace, ...queryOf(question).getAll('p')].join(' '));
  const [progress, setProgress] = useState('');
  const here = location.href;
  const csv = async () => {
    // No cell begins as a formula does.
    const chunks = ['name,partitions,properties\r\n'];
    let cursor = '';
    let rows = 0;
    try {
      do {
        const page = await api.get(`${ofNamespace(question.namespace)}/topics`, { ...parametersOf(question), limit: 10_000, cursor, detail: DETAIL });
        chunks.push(page.items.map(({ name: of, partitions, properties }) => [of, partitions, JSON.stringify(properties)]
          .map((each) => (/[",\r\n]/.test(each) ? `"${each.replaceAll('"', '""')}"` : each)).join() + '\r\n').join(''));
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
      ${question.as || total === undefined ? null : html`<button type="button" class="quiet" onClick=${csv}>CSV of all ${number(total)} names</button>`}
      <span class="muted" role="status">${progress}</span></div>
    ${question.as || refused ? html`<p class="muted">The commands below ${refused ? 'are refused too' : 'ask as yourself'}.</p>` : null}
    ${formsOf(question, api).map(([title, text]) => html`<h3>${title}</h3><${Command} text=${text} label=${`Copy ${title}`} />`)}
  <//>`;
}

export const STEPS = {
  rules: 'Rules', gates: 'Gates of plugins', exists: 'Existence', mode: 'Mode', properties: 'Properties', plugins: 'Plugins',
  pattern: 'Pattern', masks: 'Masks of plugins', held: 'Held listings', listing: 'The listing itself',
};

export function Why({ place }) {
  const { api } = usePage();
  const question = questionOf(place);
  const topic = place.query.get('topic') || '';
  const settled = useSettled(topic, 150);
  const [, scheme = '', other = question.namespace, local = settled] = /^([\w-]+:\/\/)?([^/]+\/[^/]+)\/(.+)$/s.exec(settled) || [];
  const elsewhere = other !== question.namespace;
  const key = queryOf(question).toString();
  const ask = useAsk(settled === '' || elsewhere ? null : (signal) => api.post(
    `${ofNamespace(question.namespace)}/topics/${part(scheme ? settled : local)}:why`, bodyOf(question), signal,
  ), [question.namespace, key, settled], { keep: false, delay: 60 });
  return html`<${Head} question=${question} now="why" />
    <form class="line" onSubmit=${(event) => {
      event.preventDefault();
      ask.again();
    }}>
      <${Field} label="The topic that is missing" class="grows" hint=${topic.trim() !== topic && SPACE}>
        <${TextInput} value=${topic} placeholder="orders-7" data-search set=${(text) => go(
          linkIn('why', question.namespace, queryOf(question, { topic: text })), { replace: true },
        )} /><//>
      <button disabled=${!topic}>Ask again</button>
    </form>
    <p class="hidden-text" role="status">${ask.data ? `${shortName(question.namespace, ask.data.topic)} ${verdictOf(ask.data)[1]}` : ''}</p>
    <${QuestionForm} screen="why" question=${question} more=${{ topic }} error=${ask.loading ? null : ask.error} />
    ${topic === '' ? html`<${Empty} title="Which topic?"><p>Type its name above: each step that could take it away is asked. One that is not there can be made here.</p><//>`
      : elsewhere ? html`<${Empty} title="It is of another namespace"><p><a href=${linkIn('why', other, { topic: scheme ? settled : local })}>Ask in <bdi>${other}</bdi></a></p><//>`
      : isRefused(ask.error) && !ask.loading ? html`<${NotTaken} />`
      : html`<${Answer} ask=${ask} what="why a topic is not listed" rights="admin in this namespace">${(found) => html`
        <${Verdict} found=${found} question=${question} again=${ask.again} />`}<//>`}`;
}

/** Names that contain one that is not there, in whatever case. */
function Alike({ name, question }) {
  const { api } = usePage();
  const like = { ...question, typed: `(?i).*${literal(name)}.*`, properties: [] };
  const { data } = useAsk((signal) => like.as ? asSomebody(api, like, signal, 5)
    : api.get(`${ofNamespace(question.namespace)}/topics`, { ...parametersOf(like), limit: 5 }, signal), [queryOf(like).toString()]);
  return data?.items.length ? html`<p>Is it one of these?${data.items.map((each) => html` <a href=${linkIn('why', question.namespace, queryOf(question, { topic: shortName(question.namespace, each) }))}><bdi>${shortName(question.namespace, each)}</bdi></a>`)}</p>` : null;
}

const NotTaken = () => html`<${Empty} title="The server refuses this pattern"><p>What is wrong stands below the pattern.</p><//>`;

const verdictOf = ({ listed, steps }) => (listed === null ? ['warn', 'is in a listing that fails'] : !listed ? ['bad', 'is not listed']
  : steps.some((each) => each.step === 'pattern' && each.passes === null) ? ['warn', 'is sent'] : ['good', 'is listed']);

function Verdict({ found, question, again }) {
  const { api, me, say } = usePage();
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  // What had the focus goes when it is asked anew.
  useLayoutEffect(() => () => box.current?.contains(document.activeElement) && document.querySelector('h1')?.focus(), []);
  const name = shortName(question.namespace, found.topic);
  const [kind, said] = verdictOf(found);
  const changeOf = ({ change }) => change && html`<${Command} text=${commandOf(api, change.method, change.path, change)} />${
    me?.server?.page_changes ? html`<p><button type="button" class="primary" onClick=${() => api.request(change.method, change.path, change).catch((error) => say(error.message)).then(again)}>${change.method === 'PUT' ? 'Make' : 'Change'} the topic</button></p>` : null}`;
  const asks = question.as?.role ? html`the role <b><bdi>${question.as.role}</bdi></b>` : question.as ? 'this client' : 'you';
  return html`<section ref=${box} aria-label="The answer">
    <div class=${`verdict ${kind}`}>
      <h2><bdi>${name}</bdi> ${said} ${said === 'is sent' ? 'to' : 'for'} ${asks}</h2>
      <p>${said === 'is sent' ? 'The client decides whether its name matches.' : found.listed ? 'No step takes it away.' : html`${found.listed === null ? 'It fails at' : 'Taken away by'}: <b>${STEPS[found.blocked_by] || found.blocked_by || 'a step that is not known'}</b>.`}
        ${found.steps.some((each) => each.step === 'exists' && each.passes) ? html` <a href=${`${topicLink(question.namespace, found.topic)}?${queryOf(question)}`}>Look at the topic</a>` : null}</p>
    </div>
    <ol class="steps">${found.steps.map((each) => html`<li class=${each.passes === false ? 'bad' : each.passes ? 'good' : 'unknown'}>
      <div class="step"><span class="sign" aria-hidden="true">${each.passes === false ? '✕' : each.passes ? '✓' : '·'}</span>
        <b>${STEPS[each.step] || each.step}</b>
        <${Badge} kind=${each.passes === false ? 'bad' : each.passes ? 'good' : 'plain'}>${each.passes === false ? (found.listed === null ? 'fails' : 'takes it away') : each.passes ? 'passes' : 'unknown'}<//>
        ${each.by ? html`<span class="muted"><bdi>${each.by}</bdi></span>` : null}</div>
      <p>${each.says}</p>
      ${each.needs ? html`<p class="needs"><b>What it would take:</b> ${each.needs}</p>` : null}
      ${each.step === 'exists' && each.passes === false ? html`<${Known} namespace=${question.namespace}>${name.trim() ? html`<${Alike} name=${name.trim()} question=${question} />` : null}<//>` : null}${changeOf(each)}
    </li>`)}</ol></section>`;
}

// A list of any length: what is seen of it is fetched and drawn.

const ROW = 30; // pixels, as in app.css
const MOST_PAGES = 40;
const BEYOND = 6; // rows around what is seen
const PAUSE_MS = 30; // a page that is scrolled past is not asked

/** Pixels that a list may be high: Firefox stops at 17 million, others at 33. */
const TALLEST = CSS.supports('-moz-appearance', 'none') ? 15e6 : 32e6;
let left = { of: '', top: 0, active: -1 };

function Rows({ label, of, state, last, total, first, load, row, href }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  const [active, setActive] = useState(-1);
  const [, draw] = useState(0);
  const [failed, setFailed] = useState(/** @type {any} */ (null));
  const pages = useRef(/** @type {Map<number, any[]>} */ (new Map()));
  const running = useRef(/** @type {Map<number, AbortController>} */ (new Map()));

  const content = `${of} ${state}`;
  const before = useRef(content);
  if (before.current !== content) {
    before.current = content;
    pages.current = new Map();
    running.current.forEach((each) => each.abort());
    running.current.clear();
  }
  for (let page = 0; page * PAGE < first.length; page += 1) {
    const items = first.slice(page * PAGE, (page + 1) * PAGE);
    if (items.length === PAGE || first.length === total) pages.current.set(page, items);
  }

  useLayoutEffect(() => {
    if (left.of !== of) left = { of, top: 0, active: -1 };
    if (box.current) box.current.scrollTop = left.top;
    setTop(left.top);
    setActive(left.active);
    setFailed(null);
  }, [of]);
  useLayoutEffect(() => {
    const watcher = new ResizeObserver(() => box.current && setHeight(box.current.clientHeight));
    if (box.current) watcher.observe(box.current);
    return () => watcher.disconnect();
  }, []);
  useEffect(() => () => running.current.forEach((each) => each.abort()), []);

  const whole = total * ROW;
  const tall = Math.min(whole, TALLEST);
  const ratio = tall > height && whole > tall ? (whole - height) / (tall - height) : 1;
  const at = top * ratio;
  const from = Math.max(0, Math.floor(at / ROW) - BEYOND);
  const to = Math.min(total, Math.ceil((at + height) / ROW) + BEYOND);
  const place = (index) => (last ? total - 1 - index : index);
  const ends = [place(from), place(Math.max(from, to - 1))].sort((one, other) => one - other);
  const [firstPage, lastPage] = ends.map((each) => Math.floor(each / PAGE));

  useEffect(() => {
    running.current.forEach((controller, page) => {
      if (page < firstPage || page > lastPage) {
        controller.abort();
        running.current.delete(page);
      }
    });
    if (load === null) return;
    for (let page = firstPage; page <= lastPage; page += 1) {
      if (pages.current.has(page) || running.current.has(page) || page * PAGE >= total) continue;
      const controller = new AbortController();
      running.current.set(page, controller);
      setTimeout(async () => {
        if (controller.signal.aborted) return;
        try {
          const items = await load(page * PAGE, PAGE, controller.signal);
          if (controller.signal.aborted) return;
          pages.current.set(page, items);
          const [oldest] = pages.current.keys();
          if (pages.current.size > MOST_PAGES && oldest !== page) pages.current.delete(oldest);
          setFailed(null);
        } catch (error) {
          if (!controller.signal.aborted) setFailed(error);
        } finally {
          if (running.current.get(page) === controller) running.current.delete(page);
          draw((turn) => turn + 1);
        }
      }, PAUSE_MS);
    }
  }, [firstPage, lastPage, content, total, failed === null]);

  const item = (index) => pages.current.get(Math.floor(place(index) / PAGE))?.[place(index) % PAGE];
  const choose = (index) => {
    left.active = index;
    setActive(index);
  };
  const show = (index) => {
    const node = box.current;
    if (!node) return;
    choose(index);
    const y = index * ROW;
    if (y < at) node.scrollTop = y / ratio;
    else if (y + ROW > at + height) node.scrollTop = Math.ceil((y + ROW - height) / ratio);
  };
  const key = (event) => {
    const seen = Math.max(1, Math.floor(height / ROW) - 1);
    const now = active < 0 ? Math.floor(at / ROW) - 1 : active;
    const moves = { ArrowDown: now + 1, ArrowUp: now - 1, PageDown: now + seen, PageUp: now - seen, Home: 0, End: total - 1 };
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key in moves) {
      event.preventDefault();
      show(Math.max(0, Math.min(total - 1, moves[event.key])));
    } else if (event.key === 'Enter' && active >= 0 && item(active) !== undefined) {
      event.preventDefault();
      location.hash = href(item(active));
    }
  };

  const rows = [];
  for (let index = from; index < to; index += 1) {
    const found = item(index);
    rows.push(html`<a key=${index} id=${`row-${index}`} role="option" tabindex="-1" class="row"
      aria-posinset=${index + 1} aria-setsize=${total} aria-selected=${index === active}
      onClick=${() => choose(index)} href=${found === undefined ? undefined : href(found)}>${found === undefined
        ? html`<span class="ghost">${failed === null ? '…' : 'not loaded'}</span>` : row(found)}</a>`);
  }
  return html`<div class="rows">
    ${failed === null ? null : html`<p class="notice bad" role="alert">Rows are missing: ${failed.message}
      <button type="button" onClick=${() => setFailed(null)}>Try again</button></p>`}
    <div ref=${box} class="scroller" style=${{ '--rows': total }} role="listbox" tabindex="0" aria-label=${label}
        aria-activedescendant=${active >= from && active < to ? `row-${active}` : undefined}
        onScroll=${(event) => setTop(left.top = event.currentTarget.scrollTop)} onKeyDown=${key}>
      <div class="tall" role="presentation" style=${{ height: `${tall}px` }}>
        <div class="window" role="presentation" style=${{ transform: `translateY(${from * ROW - at + top}px)` }}>${rows}</div>
      </div>
    </div>
    ${total * ROW > height ? html`<p class="where muted" aria-hidden="true">${number(Math.min(total, Math.floor(at / ROW) + 1))} to ${number(Math.min(total, Math.floor((at + height) / ROW)))} of ${number(total)}</p>` : null}
  </div>`;
}
