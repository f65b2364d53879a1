// One topic, its history, and changes of it; topics as they come and go.
import { ago, anything, clockTime, counted, go, html, linkIn, number, ofNamespace, part, shortName, time, useAsk, useEffect, useGet, usePage, useRef, useSettled, useState, useVisible } from '../page.js';
import { Answer, Badge, Command, Copy, Dialog, Empty, Facts, Failure, Field, Pairs, Table, TextInput } from '../parts.js';
import { QuestionForm, commandOf, isRefused, parametersOf, queryOf, questionOf } from '../question.js';
import { Head, Known, STEPS, topicLink } from './topics.js';

export function Topic({ place }) {
  const { api, me } = usePage();
  const namespace = place.path.slice(0, 2).join('/');
  const name = place.path.slice(2).join('/');
  const path = `${ofNamespace(namespace)}/topics/${part(name)}`;
  const asked = queryOf(questionOf(place));
  const ask = useAsk(async (signal) => {
    const response = await api.request('GET', path, { signal });
    return { ...(await api.read(response)), etag: response.headers.get('ETag') };
  }, [path]);
  const history = useGet(`${path}/history`, { limit: 100 });
  const why = useAsk((signal) => api.post(`${path}:why`, { mode: 'all' }, signal), [path]);
  const hidden = why.data?.steps.some((each) => each.step === 'masks' && each.passes === false);
  const [doing, set] = useState('');
  const gone = ask.error?.status === 404 && !ask.loading;
  const rights = me?.rights?.namespace;
  const may = me === null || me.super || rights === null || rights === undefined || rights.includes('admin');
  const close = () => {
    set('');
    ask.again();
    history.again();
  };
  return html`<nav class="crumbs" aria-label="Where it is"><a href=${linkIn('topics', namespace, asked)}><bdi>${namespace}</bdi></a></nav>
    <div class="head"><h1 tabindex="-1"><bdi>${name}</bdi></h1>
      <div class="line"><${Copy} text=${() => ask.data?.name || `persistent://${namespace}/${name}`} label="Copy the full name" />
        <a class="button quiet" href=${linkIn('why', namespace, queryOf(questionOf(place), { topic: name, ...(/^non-/.test(name) && { mode: 'all' }) }))}>Why is it not listed?</a></div></div>
    ${gone ? html`<${Known} namespace=${namespace}><${Empty} title=${hidden ? 'This topic is hidden from you' : 'There is no such topic now'}><p>${hidden ? 'What hides it'
      : `It ${history.data?.items[0]?.operation === 'delete' ? 'was deleted.' : 'may have been deleted, or you may not see it.'} What is known of it`} stands below.</p><//><//>`
      : html`<${Answer} ask=${ask} what="this topic" rights="list">${(topic) => html`
        ${shortName(namespace, topic.name) === name ? null : html`<p class="notice">A partition of <a href=${topicLink(namespace, topic.name)}><bdi>${topic.name}</bdi></a>, shown here.</p>`}
        <div class="columns">
          <section class="panel"><h2>What it is</h2><${Facts} items=${[
            ['Full name', html`<code>${topic.name}</code>`],
            ['Partitions', topic.partitions ? number(topic.partitions) : 'none: it is not partitioned'],
            ['Id', topic.topic_id ? html`<code>${topic.topic_id}</code>` : 'none'],
            ['Made', topic.created ? html`<span title=${time(topic.created)}>${time(topic.created)} (${ago(topic.created)})</span>` : 'not known'],
            ...(topic.replication === null || topic.replication === undefined ? [] : [['Replicas asked for', number(topic.replication)]]),
          ]} /></section>
          <section class="panel"><h2>Properties</h2>
            ${Object.keys(topic.properties || {}).length ? html`<${Facts} items=${Object.entries(topic.properties)} />` : html`<p class="muted">None. Listings by a property do not have it.</p>`}
            <${Configs} path=${path} />
          </section>
        </div>
        <${Changing} may=${may} me=${me} set=${set} />
        ${doing ? html`<${doing === 'change' ? Change : Delete} topic=${topic} namespace=${namespace} name=${shortName(namespace, topic.name)} close=${close}
          done=${doing === 'change' ? close : () => go(linkIn('topics', namespace, asked))} />` : null}
      `}<//>`}
    ${gone && hidden ? null : html`<section aria-label="History"><h2>History</h2>
      ${history.error?.status === 409 ? html`<p class="muted">Not shown here: ${history.error.message}.</p>`
        : html`<${Answer} ask=${history} what="the history of this topic" rights="list">${(found) => html`<${History} found=${found} />`}<//>`}</section>`}
    <${Names} namespace=${namespace} name=${name} me=${me} why=${why} />`;
}

function Configs({ path }) {
  const ask = useGet(`${path}/configs`);
  const [all, showAll] = useState(false);
  const from = { topic: 'this topic', settings: 'the server’s settings', default: 'Kafka' };
  return html`<h2>Configs of Kafka</h2><${Answer} ask=${ask} what="the configs" rights="list">${({ items }) => {
    const shown = (items || []).filter((each) => all || each.source !== 'default');
    return html`${shown.length ? html`<${Table} caption="Configs of Kafka" head=${['config', 'value', 'from']}
        rows=${shown.map((each) => [html`<code>${each.name}</code>`, html`<bdi>${each.value}</bdi>`, from[each.source] || each.source])} />`
      : html`<p class="muted">${items === null ? 'Not known of this topic: the server does not hold it.' : 'None is set: Kafka’s own count.'}</p>`}
      ${items === null || all ? null : html`<p><button type="button" class="quiet" onClick=${() => showAll(true)}>Show Kafka’s own too</button></p>`}`;
  }}<//>`;
}

function Changing({ may, me, set }) {
  const server = me?.server;
  const reason = server?.topics === 'upstream' ? 'Brokers hold this topic: change it there.'
    : server?.writes === false ? 'This server takes no changes over HTTP ([http] writes = false).'
    : server?.page_changes === false ? 'Pages change nothing on this server: [plugins.explorer] writes = true allows it.'
    : !may ? 'To change it you need the right admin in this namespace.' : '';
  return html`<section class="line" aria-label="Change it">
    <button type="button" disabled=${reason !== ''} onClick=${() => set('change')}>Change…</button>
    <button type="button" disabled=${reason !== ''} class="danger" onClick=${() => set('delete')}>Delete…</button>
    ${reason ? html`<span class="muted">${reason}</span>` : null}</section>`;
}

function History({ found }) {
  if (!found.items.length) return html`<p class="muted">The change log knows nothing of this name${found.complete ? '' : ' since it begins'}.</p>`;
  const words = { create: ['Made', 'good'], update: ['Changed', 'plain'], delete: ['Deleted', 'bad'] };
  return html`<ol class="history">${found.items.map((each, index) => {
    const [word, kind] = words[each.operation] || [each.operation, 'plain'];
    const again = each.operation === 'create' && found.items.slice(index + 1).some((older) => older.operation === 'delete');
    return html`<li><div class="step"><${Badge} kind=${kind}>${again ? 'Made again' : word}<//>
      ${each.time ? html`<time datetime=${each.time}>${time(each.time)}</time> <span class="muted">${ago(each.time)}${each.version === null ? '' : `, version ${number(each.version)}`}</span>` : null}</div>
      <${Difference} before=${each.before} after=${each.after} />
      ${again ? html`<p class="muted">Another topic of the same name, with the id <code>${each.topic_id}</code>.</p>` : null}</li>`;
  })}</ol>${found.complete ? null : html`<p class="muted">Older changes are no longer in the log.</p>`}`;
}

/** A property may be named as a member of each object is. */
const own = (object, key) => (object && Object.hasOwn(object, key) ? object[key] : undefined);

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
  return html`<ul class="difference">${rows.map(([key, old, now]) => html`<li><bdi>${key}</bdi>: ${old === undefined ? html`<i>none</i>` : html`<del><bdi>${anything(old)}</bdi></del>`} → ${now === undefined ? html`<i>none</i>` : html`<ins><bdi>${anything(now)}</bdi></ins>`}</li>`)}</ul>`;
}

function Names({ namespace, name, me, why }) {
  const acls = useGet(me?.super && me?.authentication?.length ? `access/kafka/acls/${namespace.split('/').map(part).join('/')}` : null,
    { resource_type: 'TOPIC', name, pattern: 'MATCH' });
  const steps = (why.data?.steps || []).filter((each) => ['rules', 'gates', 'masks', 'held'].includes(each.step) && each.passes !== null);
  return html`<section aria-label="Rights"><h2>What decides who sees it</h2>
    ${why.error && !why.loading ? (why.error.status === 403 ? html`<p class="muted">To see rules and masks you need the right admin in this namespace.</p>`
      : why.error.status === 404 ? html`<p class="muted">Not known of this topic.</p>` : html`<${Failure} error=${why.error} what="the rules" />`)
      : html`<ul class="plain">${steps.map((each) => html`<li><b>${each.by || STEPS[each.step]}</b>: ${each.says}</li>`)}</ul>
        ${why.data?.rules?.length ? html`<h3>Rules about it, of whatever role</h3><ul class="plain">${why.data.rules.map((each) => html`<li><bdi>${each}</bdi></li>`)}</ul>` : null}`}
    ${acls.data?.items?.length ? html`<${Table} caption="Access control lists of Kafka" head=${['principal', 'may', 'operation', 'host', 'pattern']}
      rows=${acls.data.items.map((each) => [each.principal, each.permission, each.operation, each.host, `${each.pattern} ${each.name}`])} />`
      : acls.data ? html`<p class="muted">No access control list of Kafka is about it.</p>` : null}</section>`;
}

function Change({ topic, name, ...rest }) {
  const [pairs, setPairs] = useState(Object.entries(topic.properties || {}));
  const [partitions, setPartitions] = useState(String(topic.partitions));
  const keys = pairs.map(([key]) => key);
  const twice = keys.find((key, at) => key && keys.indexOf(key) < at);
  const properties = Object.create(null);
  for (const [key, value] of pairs) if (key && own(topic.properties, key) !== value) properties[key] = value;
  for (const key of Object.keys(topic.properties || {})) if (!keys.includes(key)) properties[key] = null;
  const more = Number(partitions) > topic.partitions;
  const body = { ...(Object.keys(properties).length ? { properties } : {}), ...(more ? { partitions: Number(partitions) } : {}) };
  const changed = Object.keys(body).length > 0;
  const set = (index, pair) => setPairs(pairs.map((each, at) => (at === index ? pair : each)));
  return html`<${Doing} title=${`Change ${name}`} button="Change the topic" kind="primary" ready=${changed && twice === undefined} said=${`${name} is changed`}
      topic=${topic} name=${name} ask=${['PATCH', { body }]} ...${rest}>
    <fieldset><legend>Properties</legend>${pairs.map(([key, value], index) => html`<div class="line" role="group" aria-label=${key || 'New'} key=${index}>
      <${Field} label="Name"><${TextInput} value=${key} set=${(text) => set(index, [text, value])} /><//>
      <${Field} label="Value" class="grows"><${TextInput} value=${value} set=${(text) => set(index, [key, text])} /><//>
      <button type="button" class="quiet" aria-label=${`Take ${key || 'it'} away`} onClick=${() => setPairs(pairs.filter((_, at) => at !== index))}>✕</button></div>`)}
      <button type="button" class="quiet" onClick=${() => setPairs([...pairs, ['', '']])}>Add a property</button></fieldset>
    ${twice === undefined ? null : html`<p class="notice bad" role="alert">The property <b><bdi>${twice}</bdi></b> stands here twice.</p>`}
    ${topic.partitions ? html`<${Field} label="Partitions" hint="They only grow."><input type="number" min=${topic.partitions} max="1000000" value=${partitions} onInput=${(event) => setPartitions(event.target.value)} /><//>`
      : html`<p class="muted">A topic that is not partitioned stays so.</p>`}
  <//>`;
}

function Delete({ topic, name, ...rest }) {
  const [typed, setTyped] = useState('');
  return html`<${Doing} title="Delete a topic" button="Delete the topic" kind="danger" ready=${typed === name}
      said=${`${name} is deleted`} topic=${topic} name=${name} ask=${['DELETE', {}]} ...${rest}>
    <p><b><bdi>${topic.name}</bdi></b> leaves the catalogue${topic.partitions ? ` with its ${number(topic.partitions)} partitions` : ''}; the change log has it still. Consumers by pattern unsubscribe from it. One that is made anew is another topic.</p>
    <${Field} label=${html`Type <b><bdi>${name}</bdi></b> to delete it`}><${TextInput} value=${typed} set=${setTyped} /><//>
  <//>`;
}

/** A change of the topic as it was seen, beside its command: one that was changed meanwhile stays. */
function Doing({ title, button, kind, ready, said, topic, namespace, name, ask: [method, options], close, done, children }) {
  const { api, say } = usePage();
  const [error, setError] = useState('');
  const path = `${ofNamespace(namespace)}/topics/${part(name)}`; // the name of a partition would be about that alone
  const send = async (event) => {
    event.preventDefault();
    if (!ready) return;
    try {
      await api.request(method, path, { ...options, headers: topic.etag ? { 'If-Match': topic.etag } : {} });
      say(said);
      done();
    } catch (failed) {
      setError(failed.status === 412 ? 'Somebody changed the topic meanwhile: close this to see it.'
        : failed.status === 0 ? 'No answer came: it may be changed or not. Close this, and look at it again.' : failed.message);
    }
  };
  return html`<${Dialog} title=${title} close=${close} wide><form onSubmit=${send}>${children}
    ${ready || !options.body ? html`<h3>As a command</h3><${Command} text=${commandOf(api, method, path, options)} />` : null}
    ${error ? html`<p class="notice bad" role="alert">${error}</p>` : null}
    <div class="line end"><button type="button" onClick=${close}>Cancel</button><button type="submit" class=${kind} disabled=${!ready}>${button}</button></div>
  </form><//>`;
}

const KEPT = 500;
const SHOWN = 60;
const AGAIN_MS = 3000;

export function Live({ place }) {
  const { api, epoch } = usePage();
  const question = { ...questionOf(place), as: null };
  const key = useSettled(`${question.namespace}?${queryOf(question)}`, 250);
  const visible = useVisible();
  const [paused, pause] = useState(false);
  const [state, setState] = useState(/** @type {any} */ ({ connected: false, error: null, total: null }));
  const [events, setEvents] = useState(/** @type {any[]} */ ([]));
  const [counts, setCounts] = useState({ added: 0, removed: 0 });
  const waiting = useRef(/** @type {any[]} */ ([]));
  const last = useRef({ key: '', id: '' });
  const serial = useRef(0);
  const held = useRef(paused);
  held.current = paused;

  const clear = () => {
    setEvents([]);
    setCounts({ added: 0, removed: 0 });
    waiting.current = [];
  };
  useEffect(clear, [key]);
  const flush = () => {
    const fresh = waiting.current;
    waiting.current = [];
    if (fresh.length) setEvents((before) => [...fresh.reverse(), ...before].slice(0, KEPT));
  };
  useEffect(() => {
    if (!paused) flush();
  }, [paused]);
  useEffect(() => {
    if (!visible) return undefined; // a hidden tab costs the server nothing
    const controller = new AbortController();
    let timer = 0;
    let frame = 0;
    if (last.current.key !== key) last.current = { key, id: '' };
    const event = (name, data, id) => {
      if (id) last.current.id = id;
      if (name === 'snapshot') {
        // Names of a snapshot are not kept: only its end is read.
        const part = Number(/"part":(\d+),"last":/.exec(data.slice(-400))?.[1] || 0);
        setState((before) => ({ ...before, connected: /"last":true/.test(data.slice(-400)), reading: part * 1000 }));
      } else if (name === 'added' || name === 'removed') {
        const { items } = JSON.parse(data);
        const at = Date.now();
        for (const each of items) waiting.current.push({ id: (serial.current += 1), kind: name, name: each, at });
        if (waiting.current.length > KEPT) waiting.current.splice(0, waiting.current.length - KEPT);
        setCounts((before) => ({ ...before, [name]: before[name] + items.length }));
        if (!held.current && !frame) frame = requestAnimationFrame(() => {
          frame = 0;
          flush();
        });
      } else if (name === 'resumed') setState((before) => ({ ...before, connected: true }));
      else if (name === 'error') {
        const problem = JSON.parse(data);
        setState((before) => ({ ...before, error: { status: problem.status, message: problem.detail, cause_: problem.cause, problem } }));
      }
    };
    const run = async () => {
      setState((before) => ({ ...before, connected: last.current.id !== '' && before.connected, error: null }));
      try {
        await api.events(`${ofNamespace(question.namespace)}/topics`, parametersOf(question), {
          signal: controller.signal, last: last.current.id, event,
        });
      } catch (error) {
        if (controller.signal.aborted) return;
        setState({ connected: false, error });
        if (error.status === 0 || error.status >= 429) timer = setTimeout(run, AGAIN_MS);
      }
    };
    run();
    return () => {
      clearTimeout(timer);
      cancelAnimationFrame(frame);
      controller.abort();
    };
  }, [key, visible, epoch]);

  const shown = events.slice(0, SHOWN);
  return html`<${Head} question=${question} now="live" />
    <${QuestionForm} screen="live" question=${question} error=${state.error} asks=${false} />
    <div class="bar">
      <p class="result" role="status">${state.error ? html`<${Badge} kind="bad">${state.error.status === 0 ? 'not connected, trying again' : 'stopped'}<//>`
        : !state.connected ? html`<${Badge} kind="plain">${state.reading ? `reading ${number(state.reading)} names` : 'connecting'}<//>`
        : paused ? html`<${Badge} kind="warn">paused<//>` : html`<${Badge} kind="good">live<//>`}
        ${' '}<span class="muted">${number(counts.added)} came, ${number(counts.removed)} went${paused && waiting.current.length ? `, ${number(waiting.current.length)} since the pause` : ''}</span></p>
      <button type="button" aria-pressed=${paused} onClick=${() => pause(!paused)}>${paused ? 'Go on' : 'Pause'}</button>
      <button type="button" disabled=${!events.length} onClick=${clear}>Clear</button>
    </div>
    ${state.error && state.error.status !== 0 && !isRefused(state.error) ? html`<${Failure} error=${state.error} what="the changes" rights="list" />` : null}
    ${shown.length ? html`<ol class="events" aria-label="Changes, newest first">${shown.map((each) => html`<li key=${each.id} class=${each.kind}>
      <time datetime=${new Date(each.at).toISOString()}>${clockTime(each.at)}</time>
      <span class="sign" aria-hidden="true">${each.kind === 'added' ? '+' : '−'}</span><span class="hidden-text">${each.kind === 'added' ? 'came' : 'went'}</span>
      <a href=${topicLink(question.namespace, each.name)}><bdi>${each.name}</bdi></a></li>`)}</ol>
      ${events.length > SHOWN ? html`<p class="muted">${number(events.length - SHOWN)} older changes are kept but not shown.</p>` : null}`
      : state.connected && !state.error ? html`<${Known} namespace=${question.namespace}><${Empty} title="Nothing has changed yet"><p>Topics that come and go show here at once. A hidden tab closes the stream, and goes on where it was.</p><//><//>` : null}`;
}
