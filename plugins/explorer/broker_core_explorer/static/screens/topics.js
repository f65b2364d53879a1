// The topics that a question matches, why one is missing, and one topic.
import { ApiError, DOTS, ago, anything, askAgain, counted, cut, duration, go, html, link, linkIn, may, milliseconds, number, ofNamespace, part, plain, shortName, time, unchangeable, useAsk, useGet, useMemo, usePage, useRef, useState } from '../page.js';
import { Answer, Badge, Command, Copy, Dialog, Empty, Facts, Failure, Field, Fold, PAGE, Pairs, Rows, Table, TextInput, Title, Way } from '../parts.js';
import { DETAIL, Keep, QuestionForm, SPACE, bodyOf, commandOf, isRefused, literal, marker, parametersOf, patternOf, queryOf, questionOf, useValues } from '../question.js';

const RENEWED_MS = 5000;
const AS_NAMES = 1000;

/** Properties that a screen shows before more are asked for, and partitions that are no mistake. */
const MOST_SHOWN = 50;
const MANY = 100;

export function Topics({ place }) {
  const { api, edit, me } = usePage();
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
            data.plan?.looked_at > data.total && html` <span class="muted">of ${number(data.plan.looked_at)}</span>`}${
            data.question.as && html` <span class="muted">for <bdi>${data.question.as.role || 'somebody'}</bdi></span>`}${
            ask.slow && ' The server is slow…'}`}</p>
          <label class="radio"><input type="checkbox" checked=${renewed} onChange=${() => view({ renew: renewed ? '' : 1 })} /> Refresh every 5 s</label>
          <button type="button" onClick=${() => keep(true)}>Keep, copy, export</button>
          ${unchangeable(me) ? null : html`<button type="button" onClick=${() => edit()}>Make a topic…</button>`}
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
        ${data && !refused && !error && html`<${Cost} data=${data} />`}
      </aside>
    </div>
    ${keeping && html`<${Keep} question=${question} total=${data?.total} refused=${refused} close=${() => keep(false)} />`}`;
}

export function Head({ question, now }) {
  const { me } = usePage();
  return html`<${Title} of=${question.namespace}>
    <nav class="tabs" aria-label="Of this namespace">${[['topics', 'Topics'], ['why', 'Why not?', 'admin'], ['live', 'Live']].map(([screen, text, needs]) => html`<${Way}
      to=${linkIn(screen, question.namespace, queryOf(question))} here=${now === screen} needs=${needs && !may(me, needs) && needs}>${text}<//>`)}</nav><//>`;
}

async function listing(api, question, signal, known) {
  const response = await api.request('GET', `${ofNamespace(question.namespace)}/topics`, {
    query: { ...parametersOf(question), limit: PAGE, count: true, plan: true, detail: DETAIL }, headers: known?.etag ? { 'If-None-Match': known.etag } : {}, signal,
  });
  return response.status === 304 ? known : { ...(await api.read(response)), etag: response.headers.get('ETag') };
}

async function asSomebody(api, question, signal, names = AS_NAMES) {
  const found = await api.post(`${ofNamespace(question.namespace)}/explain`, { ...bodyOf(question), names }, signal);
  if (found.error) {
    throw /denied/i.test(found.cause) ? new ApiError(403, { detail: found.error, cause: 'DENIED', as: question.as.role || 'none' })
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
    ${moved === found && html`<p class="notice">Topics have changed since: the rows below may be of two states.${' '}
      <button type="button" class="link" onClick=${askAgain}>Look again</button></p>`}
    ${total < found.total && html`<p class="notice">These are the first ${number(total)} of ${number(found.total)}.</p>`}
    <div class="row columns"><button type="button" class="link" aria-label=${`Name, ${last ? 'descending' : 'ascending'}`} onClick=${turn}>Name ${last ? '▼' : '▲'}</button>${load && html`<span aria-hidden="true" class="number">Partitions</span><span aria-hidden="true">Properties</span>`}</div>
    ${load ? html`<p class="hint narrow">Properties: on the page of a topic, or a wider screen.</p>` : html`<p class="hint">As somebody else names alone are asked.</p>`}
    <${Rows} label=${`Topics of ${question.namespace}`} of=${`${question.namespace}?${found.key} ${last}`} state=${found.topics_hash} last=${last} total=${total} first=${found.items} load=${fetchPage}
      href=${(item) => topicLink(question, item.name || item)}
      row=${(item) => html`<${MarkedName} name=${item.name || item} namespace=${question.namespace} marks=${marks} />${item.partitions ? html`<span class="number"><span class="hidden-text">, partitions: </span>${number(item.partitions)}</span>` : null}${
        Object.keys(item.properties || {}).length ? html`<span class="muted"><span class="hidden-text">, </span><bdi>${cut(Object.entries(item.properties).slice(0, 20).map((pair) => pair.join('=')).join(', '))}</bdi></span>` : null}`} />
  </div>`;
}

/** @type {F.topicLink} */
export const topicLink = (question, name) => link(['topic', ...question.namespace.split('/'), shortName(question.namespace, name)], queryOf(question));

function MarkedName({ name, namespace, marks }) {
  const pieces = [];
  let at = name.length - shortName(namespace, name).length;
  for (const [start, end, captured] of marks(name)) {
    if (end <= at) continue;
    if (start > at) pieces.push(name.slice(at, start));
    const text = name.slice(Math.max(start, at), end);
    pieces.push(html`<mark class=${captured ? 'captured' : 'literal'}>${text}</mark>`);
    at = end;
  }
  pieces.push(name.slice(at));
  return html`<bdi class="topic" title=${plain(name)}>${pieces}</bdi>`;
}

function NoTopics({ question }) {
  const narrowed = question.typed || question.properties.length || question.mode !== 'persistent' || question.as;
  const all = linkIn('topics', question.namespace, { mode: 'all' });
  return html`<${Known} namespace=${question.namespace}>${narrowed ? html`<${Empty} title="No topic matches">
      ${question.as ? null : question.properties.map(([key, value]) => html`<${OtherValues} key=${key} name=${key} value=${value} question=${question} />`)}
      <p>Is one missing? “Why not?” says which step takes it away.</p>
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

function OtherValues({ name, value, question }) {
  const { data } = useValues(question, name, '');
  if (!data || data.items.some((each) => each.value === value)) return null;
  const others = question.properties.filter(([key]) => key !== name);
  const pair = html`<bdi>${name}=${value}</bdi>`;
  if (!data.listed) return html`<p>Without ${pair} no topic matches either.</p>`;
  return html`<p>No topic that matches without it (${counted(data.listed, 'name')}) has ${data.items.length ? html`${pair}, but: ${data.items.map((each) => html`<a
    href=${linkIn('topics', question.namespace, queryOf({ ...question, properties: [...others, [name, each.value]] }))}><bdi>${cut(each.value)}</bdi></a> `)}`
    : html`a property <bdi>${name}</bdi>.`}</p>`;
}

function WhyBox({ question }) {
  const { me } = usePage();
  const [name, set] = useState('');
  const asks = may(me, 'admin');
  return html`<form class="panel" onSubmit=${(event) => {
    event.preventDefault();
    if (name) go(linkIn('why', question.namespace, queryOf(question, { topic: name })));
  }}><h2>Is a topic missing?</h2>
    <div class="line"><${Field} label="Name of the missing topic" class="grows"><${TextInput} value=${name} set=${set} placeholder="orders-7" /><//>
    <button class="primary" disabled=${!asks}>Why not?</button></div>
    <p class="hint">${asks ? unchangeable(me) : 'To ask why, or to make topics, you need the right admin in this namespace.'}</p></form>`;
}

const HOW = {
  none: 'No name can match: nothing was looked at.',
  all: 'There is no pattern to run.',
  literal: 'One name, looked up.',
  range: 'A range of names with the same beginning.',
  scan: 'The pattern was run over all names.',
  lister: 'A plugin selected the topics.',
};

function Cost({ data }) {
  const { plan, explained } = data;
  return html`<section class="panel"><h2>How it was found</h2>
    <p>${HOW[plan?.how === 'none' && data.total ? 'all' : plan?.how] || plan?.how || ''}</p>
    <${Facts} items=${[
      ['Time of the server', milliseconds(plan?.ms)],
      ['Time until shown', duration(data.took)],
      ...(plan?.required?.length ? [['Names must have', plan.required.map((each) => html`<code>${each}</code> `)]] : []),
      ...(explained ? [['Listed by', explained.lister || 'the catalogue']] : []),
      ...(data.topics_hash ? [['Hash of the names', html`<code>${data.topics_hash}</code>`]] : []),
    ]} /></section>`;
}

export const STEPS = {
  rules: 'Rules', gates: 'Gates of plugins', exists: 'Existence', mode: 'Mode', properties: 'Properties', plugins: 'Plugins',
  pattern: 'Pattern', masks: 'Masks of plugins', held: 'Held listings', listing: 'The listing itself',
};

export function Why({ place }) {
  const { api, me } = usePage();
  const question = questionOf(place);
  const topic = place.query.get('topic') || '';
  const [, scheme = '', other = question.namespace, local = topic] = /^([\w-]+:\/\/)?([^/]+\/[^/]+)\/(.+)$/s.exec(topic) || [];
  const elsewhere = other !== question.namespace;
  const key = queryOf(question).toString();
  const ask = useAsk(topic === '' || elsewhere ? null : (signal) => api.post(
    `${ofNamespace(question.namespace)}/topics/${part(scheme ? topic : local)}:why`, bodyOf(question), signal,
  ), [question.namespace, key, topic], { keep: false, delay: 150 });
  return html`<${Head} question=${question} now="why" />
    <form class="line" onSubmit=${(event) => {
      event.preventDefault();
      ask.again();
    }}>
      <${Field} label="The topic that is missing" class="grows" hint=${topic.trim() !== topic && SPACE}>
        <${TextInput} value=${topic} placeholder="orders-7" data-search set=${(text) => go(
          linkIn('why', question.namespace, queryOf(question, { topic: text })), { replace: true },
        )} /><//>
      <button disabled=${!topic || !may(me, 'admin')}>Ask again</button>
    </form>
    <p class="hidden-text" role="status">${ask.data ? `${shortName(question.namespace, ask.data.topic)} ${verdictOf(ask.data)[1]}` : ''}</p>
    <${QuestionForm} screen="why" question=${question} more=${{ topic }} error=${ask.loading ? null : ask.error} />
    ${topic === '' ? html`<${Empty} title="Which topic?"><p>Type its name above: each step that could take it away is asked.</p><//>`
      : elsewhere ? html`<${Empty} title="It is of another namespace"><p><a href=${linkIn('why', other, { topic: scheme ? topic : local })}>Ask in <bdi>${other}</bdi></a></p><//>`
      : isRefused(ask.error) && !ask.loading ? html`<${NotTaken} />`
      : html`<${Answer} ask=${ask} what="why a topic is not listed" rights="admin in this namespace">${(found) => html`
        <${Verdict} found=${found} question=${question} />`}<//>`}`;
}

function NamesLike({ name, question }) {
  const { api } = usePage();
  const like = { ...question, typed: `(?i).*${literal(name)}.*`, properties: [] };
  const { data } = useAsk((signal) => like.as ? asSomebody(api, like, signal, 5)
    : api.get(`${ofNamespace(question.namespace)}/topics`, { ...parametersOf(like), limit: 5 }, signal), [queryOf(like).toString()]);
  return data?.items.length ? html`<p>Is it one of these?${data.items.map((each) => html` <a href=${linkIn('why', question.namespace, queryOf(question, { topic: shortName(question.namespace, each) }))}><bdi>${shortName(question.namespace, each)}</bdi></a>`)}</p>` : null;
}

const NotTaken = () => html`<${Empty} title="The server refuses this pattern"><p>What is wrong stands below the pattern.</p><//>`;

const verdictOf = ({ listed, steps }) => (listed === null ? ['bad', 'is in a listing that fails'] : !listed ? ['bad', 'is not listed']
  : steps.some((each) => each.step === 'pattern' && each.passes === null) ? ['warn', 'is sent'] : ['good', 'is listed']);

function Verdict({ found, question }) {
  const { api, me, say, edit } = usePage();
  const name = shortName(question.namespace, found.topic);
  const [kind, said] = verdictOf(found);
  const fails = found.listed === null;
  const failing = fails && found.steps.find((each) => each.step === found.blocked_by && each.passes === false);
  const changeOf = ({ change: { method, path, body } }) => html`<${Command} text=${commandOf(api, method, path, { body })} />
    <p>${unchangeable(me) ? html`<span class="muted">${unchangeable(me)}</span>` : html`<button type="button" class="primary" onClick=${async () => {
      try {
        edit(method === 'PUT' ? { ...body, name: decodeURIComponent(path.split('/').pop()) } : body, method === 'PUT' ? null : await topicOf(api, path));
      } catch (error) {
        say(error.message);
      }
    }}>${method === 'PUT' ? 'Make' : 'Change'} the topic…</button>`}</p>`;
  const asks = question.as?.role ? html`the role <b><bdi>${question.as.role}</bdi></b>` : question.as ? 'this client' : 'you';
  return html`<section aria-label="The answer">
    <div class=${`verdict ${kind}`}>
      <h2>${fails ? 'The listing fails' : html`<bdi>${name}</bdi> ${said}`} ${said === 'is sent' ? 'to' : 'for'} ${asks}</h2>
      <p>${said === 'is sent' ? 'The client decides whether its name matches.' : found.listed ? 'No step takes it away.' : html`${fails ? 'It fails at' : 'Taken away by'}: <b>${STEPS[found.blocked_by] || found.blocked_by || 'a step that is not known'}</b>${failing ? `, ${failing.says}` : ''}.`}
        ${found.steps.some((each) => each.step === 'exists' && each.passes) && html` <a href=${topicLink(question, found.topic)}>Look at the topic</a>`}</p>
      ${failing?.needs && html`<p><b>What it would take:</b> ${failing.needs}</p>`}
    </div>
    <ol class="steps">${found.steps.map((each) => {
      const [state, sign, says] = each.passes === null ? ['unknown', '·', 'unknown'] : each.passes ? ['good', '✓', 'passes'] : ['bad', '✕', each === failing ? 'fails' : 'takes it away'];
      return html`<li class=${state}>
      <div class="step"><span class="sign" aria-hidden="true">${sign}</span><b>${STEPS[each.step] || each.step}</b> <${Badge} kind=${state}>${says}<//>
        ${each.by && html`<span class="muted"><bdi>${each.by}</bdi></span>`}</div>
      <p>${each.says}</p>
      ${each.needs && each !== failing && html`<p class="needs"><b>What it would take:</b> ${each.needs}</p>`}
      ${each.step === 'exists' && each.passes === false && !fails && html`<${Known} namespace=${question.namespace}>${name.trim() && html`<${NamesLike} name=${name.trim()} question=${question} />`}<//>`}${each.change ? changeOf(each) : null}
    </li>`;
    })}</ol></section>`;
}

/** With its tag, by which a change is of this state of it. */
async function topicOf(api, path, signal) {
  const response = await api.request('GET', path, { signal });
  return { ...(await api.read(response)), etag: response.headers.get('ETag') };
}

export function Topic({ place }) {
  const { api, me, edit } = usePage();
  const namespace = place.path.slice(0, 2).join('/');
  const name = place.path.slice(2).join('/');
  const path = `${ofNamespace(namespace)}/topics/${part(name)}`;
  const question = questionOf(place);
  const asked = queryOf(question);
  const ask = useAsk((signal) => topicOf(api, path, signal), [path]);
  const history = useGet(`${path}/history`, { limit: 100 });
  const why = useAsk((signal) => api.post(`${path}:why`, { mode: 'all', ...(question.as && { as: question.as }) }, signal), [path, asked.toString()]);
  const hidden = why.data?.steps.some((each) => each.step === 'masks' && each.passes === false);
  const [deleting, setDeleting] = useState(false);
  const gone = ask.error?.status === 404 && !ask.loading;
  const denied = ask.error?.status === 403 && !ask.loading;
  const reason = unchangeable(me);
  const was = gone && history.data?.items.find((each) => each.operation === 'delete')?.before;
  const partition = ask.data && shortName(namespace, ask.data.name) !== name;
  return html`<nav class="crumbs" aria-label="Where it is"><a href=${linkIn('topics', namespace, asked)}><bdi>${namespace}</bdi></a></nav>
    <${Title} of=${name}>
      <div class="line"><${Copy} text=${/^[\w-]+:\/\//.test(name) ? name : `persistent://${namespace}/${name}`} label="Copy the full name" />
        <a class="button quiet" href=${linkIn('why', namespace, queryOf(question, { topic: name, ...(/^non-/.test(name) && { mode: 'all' }) }))}>Is it listed, and why?</a></div><//>
    ${gone ? html`<${Known} namespace=${namespace}><${Empty} title=${hidden ? 'This topic is hidden from you' : 'There is no such topic now'}><p>${hidden ? 'What hides it stands below.' : 'It was deleted, never made, or is hidden from you: its history stands below.'}</p>
      ${was && !reason && html`<button type="button" onClick=${() => edit({ name, properties: was.properties, partitions: was.names > 1 ? was.names : 0 })}>Make it again…</button>`}<//><//>`
      : html`<${Answer} ask=${ask} what="this topic" rights="list">${(topic) => html`
        ${partition && html`<p class="notice">A partition of <a href=${topicLink(question, topic.name)}><bdi>${topic.name}</bdi></a>, shown here.</p>`}
        <div class="columns">
          <section class="panel"><h2>What ${partition ? 'the topic' : 'it'} is</h2><${Facts} items=${[
            ['Full name', html`<code>${topic.name}</code>`],
            ['Partitions', topic.partitions ? number(topic.partitions) : 'none: it is not partitioned'],
            ['Id', topic.topic_id ? html`<code>${topic.topic_id}</code>` : 'none'],
            ['Made', topic.created ? `${time(topic.created)} (${ago(topic.created)})` : 'not known'],
            ...(topic.replication === null || topic.replication === undefined ? [] : [['Replicas asked for', number(topic.replication)]]),
          ]} /></section>
          <section class="panel"><h2>Properties</h2>
            <${Properties} of=${Object.entries(topic.properties || {})} />
          </section>
        </div>
        <section class="line" aria-label="Change it">
          <button type="button" disabled=${reason} onClick=${() => edit({}, topic)}>Change…</button>
          <button type="button" disabled=${reason} class="danger" onClick=${() => setDeleting(true)}>Delete${partition ? ' the whole topic' : ''}…</button>
          ${reason && html`<span class="muted">${reason}</span>`}</section>
        ${deleting && html`<${Delete} topic=${topic} question=${question} name=${shortName(namespace, topic.name)} close=${() => setDeleting(false)} done=${() => go(linkIn('topics', namespace, asked))} />`}
      `}<//>`}
    ${gone || denied ? null : html`<${Configs} path=${path} />`}
    ${denied || (gone && hidden) ? null : html`<section aria-label="History"><h2>History</h2>
      ${history.error?.status === 409 ? html`<p class="muted">Not shown here: ${history.error.message}.</p>`
        : html`<${Answer} ask=${history} what="the history of this topic" rights="list">${(found) => html`<${History} found=${found} />`}<//>`}</section>`}
    <${Names} namespace=${namespace} name=${name} me=${me} why=${why} as=${question.as} />`;
}

function Configs({ path }) {
  const ask = useGet(`${path}/configs`);
  const [all, showAll] = useState(false);
  return html`<section aria-label="Configs"><h2>Configs of Kafka</h2><${Answer} ask=${ask} what="the configs" rights="list">${({ items }) => {
    const shown = (items || []).filter((each) => all || each.source !== 'default');
    return html`${items && html`<${Fold} open=${all} set=${showAll} show="Show the defaults" />`}
      ${shown.length ? html`<${Table} caption="Configs of Kafka" head=${['config', 'value', 'from']}
        rows=${shown.map((each) => [html`<code>${each.name}</code>`, html`<bdi>${each.value}</bdi>`, each.source])} />`
      : html`<p class="muted">${items === null ? 'Not known of this topic: the server does not hold it.' : 'None is set: the defaults of Kafka count.'}</p>`}`;
  }}<//></section>`;
}

/** All of them may take 64 KB. */
function Properties({ of }) {
  const [all, showAll] = useState(false);
  if (!of.length) return html`<p class="muted">None. Listings by a property do not have it.</p>`;
  const shown = all ? of : of.slice(0, MOST_SHOWN).map(([key, value]) => [key, cut(value)]);
  return html`${all || shown.length < of.length || shown.some(([, value], at) => value !== of[at][1])
    ? html`<${Fold} open=${all} set=${showAll} show=${`Show all of ${counted(of.length, 'property', 'properties')}`} />` : null}<${Facts} items=${shown} />`;
}

function History({ found }) {
  if (!found.items.length) return html`<p class="muted">${found.says || 'The change log knows nothing of this name.'}</p>`;
  const words = { create: ['Made', 'good'], update: ['Changed', 'plain'], delete: ['Deleted', 'bad'] };
  return html`<ol class="history">${found.items.map((each, index) => {
    const [word, kind] = words[each.operation] || [each.operation, 'plain'];
    const again = each.operation === 'create' && found.items.slice(index + 1).some((older) => older.operation === 'delete');
    return html`<li><div class="step"><${Badge} kind=${kind}>${again ? 'Made again' : word}<//>
      ${each.time && html`<time datetime=${each.time}>${time(each.time)}</time> <span class="muted">${ago(each.time)}${each.version === null ? '' : `, version ${number(each.version)}`}</span>`}</div>
      <${Difference} before=${each.before} after=${each.after} />
      ${again && html`<p class="muted">Another topic of the same name, with the id <code>${each.topic_id}</code>.</p>`}</li>`;
  })}</ol>${found.says && html`<p class="muted">${found.says}</p>`}`;
}

/** A property may be named as a member of each object is. */
const own = (object, key) => (object && Object.hasOwn(object, key) ? object[key] : undefined);

const changed = ([key, old, now]) => html`<bdi>${key}</bdi>: ${old === undefined ? html`<i>none</i>` : html`<del><bdi>${cut(anything(old))}</bdi></del>`} → ${now === undefined ? html`<i>none</i>` : html`<ins><bdi>${cut(anything(now))}</bdi></ins>`}`;

function Difference({ before, after }) {
  if (!before || !after) {
    const state = after || before;
    return state ? html`<p class="small">${counted(state.names, 'name')}, properties <${Pairs} of=${state.properties} /></p>` : null;
  }
  const rows = [];
  if (before.names !== after.names) rows.push(['listed names', before.names, after.names]);
  for (const part_ of ['properties', 'configs']) {
    const keys = new Set([...Object.keys(before[part_] || {}), ...Object.keys(after[part_] || {})]);
    for (const key of keys) {
      const [old, now] = [before, after].map((state) => own(state[part_], key));
      if (old !== now) rows.push([key, old, now]);
    }
  }
  if (!rows.length) return html`<p class="small muted">No difference that a topic shows.</p>`;
  return html`<ul class="difference">${rows.map((row) => html`<li>${changed(row)}</li>`)}</ul>`;
}

function Names({ namespace, name, me, why, as }) {
  const acls = useGet(me?.super && me?.authentication?.length ? `access/kafka/acls/${namespace.split('/').map(part).join('/')}` : null,
    { resource_type: 'TOPIC', name, pattern: 'MATCH' });
  const steps = (why.data?.steps || []).filter((each) => ['rules', 'gates', 'masks', 'held'].includes(each.step) && each.passes !== null);
  return html`<section aria-label="Rights"><h2>What decides who sees it</h2>
    ${as && html`<p class="muted">Asked for ${as.role ? html`the role <bdi>${as.role}</bdi>` : 'somebody else'}, not for you.</p>`}
    ${why.error && !why.loading ? (why.error.status === 403 ? html`<p class="muted">To see rules and masks you need the right admin in this namespace.</p>`
      : why.error.status === 404 ? html`<p class="muted">Not known of this topic.</p>` : html`<${Failure} error=${why.error} what="the rules" />`)
      : html`<ul class="plain">${steps.map((each) => html`<li><b>${each.by || STEPS[each.step]}</b>: ${each.says}</li>`)}</ul>
        ${why.data?.rules?.length ? html`<h3>Rules about it, of whatever role</h3><ul class="plain">${why.data.rules.map((each) => html`<li><bdi>${each}</bdi></li>`)}</ul>` : null}`}
    ${acls.data?.items?.length ? html`<${Table} caption="Access control lists of Kafka" head=${['principal', 'may', 'operation', 'host', 'pattern']}
      rows=${acls.data.items.map((each) => [each.principal, each.permission, each.operation, each.host, `${each.pattern} ${each.name}`])} />`
      : acls.data ? html`<p class="muted">No access control list of Kafka is about it.</p>` : null}</section>`;
}

const focused = (node) => node?.focus();

/** Without `topic` one is made. */
export function Edit({ question, topic, given, ...rest }) {
  const was = topic?.properties || {};
  const before = topic?.partitions || 0;
  const [name, setName] = useState(topic ? shortName(question.namespace, topic.name) : given.name || '');
  const [first] = useState(Object.entries({ ...was, ...given.properties }));
  const [pairs, setPairs] = useState(first);
  const [partitions, setPartitions] = useState(Math.max(before, given.partitions || 0));
  const [most, setMost] = useState(MOST_SHOWN);
  const keys = pairs.map(([key]) => key);
  const twice = keys.find((key, at) => key && keys.indexOf(key) < at);
  const properties = Object.create(null);
  for (const [key, value] of pairs) if ((key || value) && own(was, key) !== value) properties[key] = value;
  for (const key of Object.keys(was)) if (!keys.includes(key)) properties[key] = null;
  const more = partitions > before;
  const body = { ...(Object.keys(properties).length ? { properties } : {}), ...(more ? { partitions } : {}) };
  // What takes something away, or cannot be taken back.
  const risks = Object.keys(properties).filter((key) => own(was, key) !== undefined).map((key) => [key, was[key], properties[key] ?? undefined]);
  if (more && partitions > MANY) risks.push(['partitions', topic?.partitions, partitions]);
  const set = (index, pair) => setPairs(pairs.map((each, at) => (at === index ? pair : each)));
  const verb = topic ? 'Change' : 'Make';
  return html`<${Doing} title=${topic ? `Change ${name}` : `Make a topic in ${question.namespace}`} button=${`${verb} the topic`} kind="primary" said=${`${name} is ${topic ? 'changed' : 'made'}`}
      ready=${twice === undefined && (topic ? Object.keys(body).length > 0 : name !== '' && !DOTS.test(name))} risks=${risks}
      topic=${topic} question=${question} name=${name} ask=${[topic ? 'PATCH' : 'PUT', { body }]} ...${rest}>
    ${topic ? null : html`<${Field} label="Name of the topic" hint=${name.trim() !== name && SPACE}><${TextInput} value=${name} set=${setName} autofocus /><//>`}
    ${topic && !before ? html`<p class="muted">A topic that is not partitioned stays so.</p>`
      : html`<${Field} label="Partitions" hint=${topic ? 'They only grow.' : '0: it is not partitioned, and stays so. Partitions only grow.'}><input type="number" min=${before} max="1000000" required value=${partitions} onInput=${(event) => setPartitions(event.target.valueAsNumber)} /><//>`}
    <fieldset><legend>Properties</legend>
      ${pairs.slice(0, most).map(([key, value], index) => html`<div class="line" role="group" aria-label=${key || 'New'} key=${index}>
      <${Field} label="Name"><${TextInput} value=${key} ref=${index < first.length ? null : focused} required=${value !== ''} set=${(text) => set(index, [text, value])} /><//>
      <${Field} label="Value" class="grows" hint=${key && !value && 'An empty value is kept: ✕ takes the property away.'}><${TextInput} value=${value} set=${(text) => set(index, [key, text])} /><//>
      <button type="button" class="quiet" aria-label=${`Take ${key || 'it'} away`} onClick=${({ currentTarget }) => {
        currentTarget.closest('fieldset').lastChild.focus();
        setPairs(pairs.filter((_, at) => at !== index));
      }}>✕</button></div>`)}
      ${most < pairs.length && html`<button type="button" class="quiet" onClick=${() => setMost(most + MOST_SHOWN)}>Show more of ${number(pairs.length)}</button>`}
      <button type="button" class="quiet" onClick=${() => {
        setMost(Math.max(most, pairs.length + 1));
        setPairs([...pairs, ['', '']]);
      }}>Add a property</button></fieldset>
    ${twice === undefined ? null : html`<p class="notice bad" role="alert">The property <b><bdi>${twice}</bdi></b> stands here twice.</p>`}
  <//>`;
}

function Delete({ topic, name, ...rest }) {
  const [typed, setTyped] = useState('');
  return html`<${Doing} title="Delete a topic" button="Delete the topic" kind="danger" ready=${plain(typed) === plain(name)}
      said=${`${name} is deleted`} topic=${topic} name=${name} ask=${['DELETE', {}]} ...${rest}>
    <p><b><bdi>${topic.name}</bdi></b> leaves the catalogue${topic.partitions ? ` with its ${number(topic.partitions)} partitions` : ''}; the change log has it still. Consumers by pattern unsubscribe from it.</p>
    <${Field} label=${html`Type <b><bdi>${name}</bdi></b> to delete it`}><${TextInput} value=${typed} set=${setTyped} /><//>
  <//>`;
}

/** A topic that was made or changed meanwhile stays. */
function Doing({ title, button, kind, ready, said, risks = [], topic, question, name, ask: [method, options], close, done = close, children }) {
  const { api, say } = usePage();
  const [error, setError] = useState('');
  const path = `${ofNamespace(question.namespace)}/topics/${part(name)}`; // the name of a partition would be about that alone
  const send = async (event) => {
    event.preventDefault();
    if (!ready) return;
    try {
      await api.request(method, path, { ...options, headers: !topic ? { 'If-None-Match': '*' } : topic.etag ? { 'If-Match': topic.etag } : {} });
      say(said, /^#.topic\//.test(location.hash) ? '' : topicLink(question, name));
      done();
    } catch (failed) {
      if (failed.status === 404) say(`Somebody deleted ${name} meanwhile`);
      setError(failed.status === 412 ? (topic ? 'Somebody changed the topic meanwhile: close this to see it.' : 'There is a topic of this name already.')
        : failed.status === 0 ? 'No answer came: it may be changed or not.' : failed.message);
    }
    askAgain();
  };
  return html`<${Dialog} title=${title} close=${close} wide><form onSubmit=${send} onInput=${() => setError('')}>${children}
    ${ready || !options.body ? html`<h3>As a command</h3><${Command} text=${commandOf(api, method, path, options)} />` : null}
    ${risks.length ? html`<label class="notice warn" key=${JSON.stringify(risks)}><input type="checkbox" required /> Confirm: ${risks.map((each, at) => html`${at ? ', ' : ''}${changed(each)}`)}</label>` : null}
    ${error && html`<p class="notice bad" role="alert">${error}</p>`}
    <div class="line end"><button type="button" onClick=${close}>Cancel</button><button class=${kind} disabled=${!ready}>${button}</button></div>
  </form><//>`;
}
