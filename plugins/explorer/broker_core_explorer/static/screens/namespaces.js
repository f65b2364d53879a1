// All namespaces that this client may list: one of them is found as its name is typed.
import { html, useState } from '../html.js';
import { useAsk, usePage, useSettled } from '../ask.js';
import { go, link } from '../address.js';
import { Answer, Command, Empty, Field, TextInput } from '../parts.js';
import { ago, number, time, counted } from '../format.js';
import { save, savedQuestions } from '../question.js';
import { ROOT } from '../api.js';

const PAGE = 100;

/** @param {{place: import('../address.js').Place}} props */
export function Namespaces({ place }) {
  const { api, me } = usePage();
  const find = place.query.get('find') || '';
  const settled = useSettled(find, 60);
  const [limit, setLimit] = useState(PAGE);
  const words = settled.split(/\s+/).filter(Boolean);
  const ask = useAsk(
    (signal) => api.get('namespaces', { contains: words, count: true, limit }, signal), [settled, limit],
  );
  const behind = ask.error?.status === 501; // brokers hold the topics
  return html`<div class="head"><h1 tabindex="-1">Namespaces</h1>
    <form role="search" class="line" onSubmit=${(event) => {
      event.preventDefault();
      const [only] = ask.data?.items || [];
      if (/^[^/\s]+\/[^/\s]+$/.test(find) && (behind || !only)) go(link(['topics', ...find.split('/')]));
      else if (only) go(link(['topics', ...only.namespace.split('/')]));
    }}>
      <${Field} label=${behind ? 'A namespace of the brokers' : 'Find a namespace'} class="grows"
          hint=${behind ? 'Brokers hold the topics: type tenant/namespace and press Enter.' : 'Parts of its name, in any order. Enter opens the first.'}>
        <${TextInput} value=${find} data-search placeholder=${behind ? 'public/default' : 'default'} set=${(text) => {
          setLimit(PAGE);
          go(link(['namespaces'], { find: text }), { replace: true });
        }} />
      <//>
    </form></div>
  <${Saved} />
  ${behind ? null : html`<${Answer} ask=${ask} what="the namespaces" rights="list">${(data) => (data.items.length === 0
    ? html`<${None} find=${find} writes=${me?.server?.writes} />`
    : html`<p class="muted" role="status">${data.total === null || data.total === undefined ? counted(data.items.length, 'namespace') : counted(data.total, 'namespace')}</p>
      <ul class="cards">${data.items.map((each) => html`<li key=${each.namespace}>
        <a class="card" href=${link(['topics', ...each.namespace.split('/')])}>
          <span class="name"><bdi>${each.namespace}</bdi></span>
          <span class="figure">${each.counts ? counted(each.counts.all, 'topic') : html`<small>not counted</small>`}</span>
          <span class="muted small">${[
            each.counts?.non_persistent ? `${number(each.counts.non_persistent)} non-persistent` : '',
            each.source && each.source !== 'catalog' ? `from ${each.source}` : each.source ? 'from the catalogue' : '',
          ].filter(Boolean).join(', ')}${each.changed ? html`<span title=${time(each.changed)}>, changed ${ago(each.changed)}</span>` : null}</span>
        </a></li>`)}</ul>
      ${data.next ? html`<p><button type="button" onClick=${() => setLimit(Math.min(10_000, limit * 5))}>Show more</button></p>` : null}`)}<//>`}`;
}

/** @param {{find: string, writes: boolean | undefined}} props */
function None({ find, writes }) {
  if (find) return html`<${Empty} title="No namespace has this in its name"><p>Only namespaces that hold topics, and that you may list, are here.</p><//>`;
  const url = new URL('v1/namespaces/public/default/topics/orders', ROOT).href;
  return html`<${Empty} title="This server has no topics yet">
    <p>Make the first one${writes === false ? ', on the machine of the server' : ''}:</p>
    <${Command} text=${writes === false ? 'broker-core topics create public/default orders'
      : `curl -sS -X PUT -H 'Content-Type: application/json' -d '{"partitions": 3}' \\\n  ${url}`} />
    <p class="muted">It shows here as soon as you look again. Many topics at once: <code>broker-core topics import</code>.</p><//>`;
}

/** Questions that were kept in this browser. */
function Saved() {
  const [items, set] = useState(savedQuestions);
  if (!items.length) return null;
  return html`<section class="saved" aria-label="Kept questions"><h2>Kept</h2><ul class="chips">${items.map((each) => html`<li key=${each.name}>
    <a href=${each.hash}><bdi>${each.name}</bdi></a><button type="button" class="quiet icon" aria-label=${`Forget ${each.name}`} onClick=${() => {
      save(each.name, null);
      set(savedQuestions());
    }}>✕</button></li>`)}</ul></section>`;
}
