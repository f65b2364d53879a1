// One topic: what it is, what the change log knows of it, and changes of it.
import { html, useState } from '../html.js';
import { useAsk, usePage } from '../ask.js';
import { go, link } from '../address.js';
import { ofNamespace, part, ROOT } from '../api.js';
import { Answer, Badge, Command, Copy, Dialog, Empty, Facts, Failure, Field, Pairs, Table, TextInput } from '../parts.js';
import { ago, anything, counted, number, quoted, time } from '../format.js';

/** @param {{place: import('../address.js').Place}} props */
export function Topic({ place }) {
  const { api, me } = usePage();
  const namespace = place.path.slice(0, 2).join('/');
  const name = place.path.slice(2).join('/');
  const path = `${ofNamespace(namespace)}/topics/${part(name)}`;
  const ask = useAsk(async (signal) => {
    const response = await api.request('GET', path, { signal });
    return { ...(await response.json()), etag: response.headers.get('ETag') };
  }, [path]);
  const history = useAsk((signal) => api.get(`${path}/history`, { limit: 100 }, signal), [path, ask.data?.etag]);
  const [doing, set] = useState('');
  const gone = ask.error?.status === 404 && !ask.loading;
  const rights = me?.rights?.namespace;
  const may = me === null || me.super || rights === null || rights === undefined || rights.includes('admin');
  const done = () => {
    set('');
    ask.again();
  };
  return html`<nav class="crumbs" aria-label="Where it is"><a href=${link(['topics', ...namespace.split('/')])}><bdi>${namespace}</bdi></a></nav>
    <div class="head"><h1 tabindex="-1"><bdi class="breaks">${name}</bdi></h1>
      <div class="line"><${Copy} text=${() => ask.data?.name || `persistent://${namespace}/${name}`} label="Copy the full name" />
        <a class="button quiet" href=${link(['why', ...namespace.split('/')], { topic: name })}>Why is it not listed?</a></div></div>
    ${gone ? html`<${Empty} title="There is no such topic now"><p>It may have been deleted, or you may not see it. What is known of it stands below.</p><//>`
      : html`<${Answer} ask=${ask} what="this topic" rights="list">${(topic) => html`
        <div class="columns">
          <section class="panel"><h2>What it is</h2><${Facts} items=${[
            ['Full name', html`<code class="breaks">${topic.name}</code>`],
            ['Partitions', topic.partitions ? number(topic.partitions) : 'none: it is not partitioned'],
            ['Id', topic.topic_id ? html`<code>${topic.topic_id}</code>` : 'none'],
            ['Made', topic.created ? html`<span title=${time(topic.created)}>${time(topic.created)} (${ago(topic.created)})</span>` : 'not known'],
            ...(topic.replication === null || topic.replication === undefined ? [] : [['Replicas asked for', number(topic.replication)]]),
          ]} /></section>
          <section class="panel"><h2>Properties</h2>
            ${Object.keys(topic.properties || {}).length ? html`<${Facts} items=${Object.entries(topic.properties)} />` : html`<p class="muted">None. Listings by a property do not have it.</p>`}
            <h2>Configs of Kafka</h2>
            ${Object.keys(topic.configs || {}).length ? html`<${Table} caption="Configs of Kafka" head=${['config', 'value', 'from']}
              rows=${Object.entries(topic.configs).map(([key, value]) => [html`<code>${key}</code>`, html`<bdi>${value}</bdi>`, 'this topic'])} />`
              : html`<p class="muted">None is set for the topic: those of the server count.</p>`}
          </section>
        </div>
        <${Changing} may=${may} me=${me} set=${set} />
        ${doing === 'change' ? html`<${Change} topic=${topic} path=${path} namespace=${namespace} close=${() => set('')} done=${done} />` : null}
        ${doing === 'delete' ? html`<${Delete} topic=${topic} path=${path} namespace=${namespace} close=${() => set('')} done=${() => go(link(['topics', ...namespace.split('/')]))} />` : null}
      `}<//>`}
    <section aria-label="History"><h2>History</h2>
      ${history.error?.status === 409 ? html`<p class="muted">Not shown here: ${history.error.message}.</p>`
        : html`<${Answer} ask=${history} what="the history of this topic" rights="list">${(found) => html`<${History} found=${found} />`}<//>`}</section>
    <${Names} namespace=${namespace} name=${name} me=${me} />`;
}

/** @param {{may: boolean, me: any, set: (what: string) => void}} props */
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

/** @param {{found: any}} props */
function History({ found }) {
  if (!found.items.length) return html`<p class="muted">The change log knows nothing of this name${found.complete ? '' : ' since it begins'}.</p>`;
  const words = /** @type {Record<string, [string, string]>} */ ({ create: ['Made', 'good'], update: ['Changed', 'plain'], delete: ['Deleted', 'bad'] });
  return html`<ol class="history">${found.items.map((each, index) => {
    const [word, kind] = words[each.operation] || [each.operation, 'plain'];
    const again = each.operation === 'create' && found.items.slice(index + 1).some((older) => older.operation === 'delete');
    return html`<li><div class="step"><${Badge} kind=${kind}>${again ? 'Made again' : word}<//>
      ${each.time ? html`<time datetime=${each.time}>${time(each.time)}</time> <span class="muted">${ago(each.time)}, version ${number(each.version)}</span>` : html`<span class="muted">version ${number(each.version)}</span>`}</div>
      <${Difference} before=${each.before} after=${each.after} />
      ${again ? html`<p class="muted">Another topic of the same name, with the id <code>${each.topic_id}</code>.</p>` : null}</li>`;
  })}</ol>${found.complete ? null : html`<p class="muted">Older changes are no longer in the log.</p>`}`;
}

/** What changed. @param {{before: any, after: any}} props */
function Difference({ before, after }) {
  if (!before || !after) {
    const state = after || before;
    return state ? html`<p class="small">${counted(state.names, 'name')}, properties <${Pairs} of=${state.properties} /></p>` : null;
  }
  /** @type {[string, any, any][]} */
  const rows = [];
  if (before.names !== after.names) rows.push(['listed names', before.names, after.names]);
  for (const part_ of ['properties', 'configs']) {
    const keys = new Set([...Object.keys(before[part_] || {}), ...Object.keys(after[part_] || {})]);
    for (const key of keys) if (before[part_]?.[key] !== after[part_]?.[key]) rows.push([key, before[part_]?.[key], after[part_]?.[key]]);
  }
  if (!rows.length) return html`<p class="small muted">No difference that a topic shows.</p>`;
  return html`<ul class="difference">${rows.map(([key, old, now]) => html`<li><bdi>${key}</bdi>: ${old === undefined ? html`<i>none</i>` : html`<del><bdi>${anything(old)}</bdi></del>`} → ${now === undefined ? html`<i>none</i>` : html`<ins><bdi>${anything(now)}</bdi></ins>`}</li>`)}</ul>`;
}

/** Which rules, masks and access control lists are about it. @param {{namespace: string, name: string, me: any}} props */
function Names({ namespace, name, me }) {
  const { api } = usePage();
  const why = useAsk((signal) => api.post(`${ofNamespace(namespace)}/topics/${part(name)}:why`, { mode: 'all' }, signal), [namespace, name]);
  const acls = useAsk(me?.super && me?.authentication?.length
    ? (signal) => api.get(`access/kafka/acls/${namespace.split('/').map(part).join('/')}`, { resource_type: 'TOPIC', name, pattern: 'MATCH' }, signal) : null, [namespace, name, me?.super]);
  const steps = (why.data?.steps || []).filter((each) => ['rules', 'gates', 'masks', 'held'].includes(each.step) && each.passes !== null);
  return html`<section aria-label="Rights"><h2>What decides who sees it</h2>
    ${why.error && !why.loading ? (why.error.status === 403 ? html`<p class="muted">To see rules and masks you need the right admin in this namespace.</p>`
      : why.error.status === 404 ? html`<p class="muted">Not known of this topic.</p>` : html`<${Failure} error=${why.error} what="the rules" />`)
      : html`<ul class="plain">${steps.map((each) => html`<li><b>${each.by || each.step}</b>: ${each.says}</li>`)}</ul>`}
    ${acls.data?.items?.length ? html`<${Table} caption="Access control lists of Kafka" head=${['principal', 'may', 'operation', 'host', 'pattern']}
      rows=${acls.data.items.map((each) => [each.principal, each.permission, each.operation, each.host, `${each.pattern} ${each.name}`])} />`
      : acls.data ? html`<p class="muted">No access control list of Kafka is about it.</p>` : null}</section>`;
}

/** @param {any} props */
function Change({ topic, path, namespace, close, done }) {
  const { api, say } = usePage();
  const [pairs, setPairs] = useState(/** @type {[string, string][]} */ (Object.entries(topic.properties || {})));
  const [partitions, setPartitions] = useState(String(topic.partitions));
  const [error, setError] = useState('');
  /** @type {Record<string, string | null>} */
  const properties = {};
  for (const [key, value] of pairs) if (key && topic.properties?.[key] !== value) properties[key] = value;
  for (const key of Object.keys(topic.properties || {})) if (!pairs.some(([each]) => each === key)) properties[key] = null;
  const more = Number(partitions) > topic.partitions;
  const body = { ...(Object.keys(properties).length ? { properties } : {}), ...(more ? { partitions: Number(partitions) } : {}) };
  const changed = Object.keys(body).length > 0;
  const set = (index, pair) => setPairs(pairs.map((each, at) => (at === index ? pair : each)));
  const local = topic.name.startsWith('persistent://') ? topic.name.slice(`persistent://${namespace}/`.length) : topic.name;
  const command = Object.keys(properties).length && !more
    ? `broker-core topics set-properties ${quoted(topic.name)} ${Object.entries(properties).map(([key, value]) => quoted(`${key}=${value ?? ''}`)).join(' ')}`
    : `curl -sS -X PATCH -H 'Content-Type: application/merge-patch+json' -d ${quoted(JSON.stringify(body))} \\\n  ${new URL(`v1/${path}`, ROOT).href}`;
  const send = async () => {
    try {
      await api.request('PATCH', path, { body, type: 'application/merge-patch+json', headers: topic.etag ? { 'If-Match': topic.etag } : {} });
      say(`${local} is changed`);
      done();
    } catch (failed) {
      const status = failed.status;
      setError(status === 412 ? 'Somebody changed the topic meanwhile: close this, and look at it again.' : failed.message);
    }
  };
  return html`<${Dialog} title=${`Change ${local}`} close=${close} wide><form onSubmit=${(event) => {
    event.preventDefault();
    send();
  }}>
    <fieldset><legend>Properties</legend>${pairs.map(([key, value], index) => html`<div class="line" key=${index}>
      <${Field} label="Name"><${TextInput} value=${key} set=${(text) => set(index, [text, value])} /><//>
      <${Field} label="Value" class="grows"><${TextInput} value=${value} set=${(text) => set(index, [key, text])} /><//>
      <button type="button" class="quiet" aria-label=${`Take ${key || 'it'} away`} onClick=${() => setPairs(pairs.filter((_, at) => at !== index))}>✕</button></div>`)}
      <button type="button" class="quiet" onClick=${() => setPairs([...pairs, ['', '']])}>Add a property</button></fieldset>
    <${Field} label="Partitions" hint="They only grow."><input type="number" min=${topic.partitions} max="1000000" value=${partitions} onInput=${(event) => setPartitions(event.target.value)} /><//>
    ${changed ? html`<h3>As a command</h3><${Command} text=${command} />` : null}
    ${error ? html`<p class="notice bad" role="alert">${error}</p>` : null}
    <div class="line end"><button type="button" onClick=${close}>Cancel</button><button type="submit" class="primary" disabled=${!changed}>Change the topic</button></div>
  </form><//>`;
}

/** @param {any} props */
function Delete({ topic, path, namespace, close, done }) {
  const { api, say } = usePage();
  const [typed, setTyped] = useState('');
  const [error, setError] = useState('');
  const local = topic.name.startsWith('persistent://') ? topic.name.slice(`persistent://${namespace}/`.length) : topic.name;
  const send = async () => {
    try {
      await api.request('DELETE', path, { headers: topic.etag ? { 'If-Match': topic.etag } : {} });
      say(`${local} is deleted`);
      done();
    } catch (failed) {
      setError(failed.message);
    }
  };
  return html`<${Dialog} title="Delete a topic" close=${close}><form onSubmit=${(event) => {
    event.preventDefault();
    if (typed === local) send();
  }}>
    <p><b><bdi class="breaks">${topic.name}</bdi></b> leaves the catalogue with ${topic.partitions ? `its ${number(topic.partitions)} partitions` : 'all that is known of it'}. Consumers by pattern unsubscribe from it. One that is made anew is another topic.</p>
    <${Field} label=${html`Type <b><bdi>${local}</bdi></b> to delete it`}><${TextInput} value=${typed} set=${setTyped} /><//>
    <h3>As a command</h3><${Command} text=${`broker-core topics delete ${quoted(topic.name)}`} />
    ${error ? html`<p class="notice bad" role="alert">${error}</p>` : null}
    <div class="line end"><button type="button" onClick=${close}>Cancel</button><button type="submit" class="danger" disabled=${typed !== local}>Delete the topic</button></div>
  </form><//>`;
}
