// Screens of what the server has besides listings: Kafka, followed questions, held listings. Brought as those of plugins are.
import { html, linkIn, ofNamespace, useGet, usePage } from '../page.js';
import { Answer, Badge, Empty, Facts, QuestionLink, Table } from '../parts.js';
import { ago, counted, duration, number } from '../format.js';

const EVERY = { every: 10_000 };
const MONITOR = 'monitor in all namespaces';
const of = (namespace) => html`<a href=${linkIn('topics', namespace)}><bdi>${namespace}</bdi></a>`;

function Kafka() {
  const ask = useGet('server/metrics', { name: 'broker_core_kafka_' }, EVERY);
  return html`<${Answer} ask=${ask} what="the state of Kafka" rights=${MONITOR}>${(data) => {
    const named = (name) => data.items.filter((each) => each.name === `broker_core_kafka_${name}`);
    const apis = new Map();
    for (const { labels, value } of named('requests_total').filter((each) => each.value)) {
      const row = apis.get(labels.api) || { asked: 0, errors: new Map() };
      apis.set(labels.api, row);
      row.asked += value;
      if (!/^(none|)$/i.test(labels.error)) row.errors.set(labels.error, value);
    }
    const seconds = (part, name) => named(`request_seconds_${part}`).find((each) => each.labels.api === name)?.value;
    const hidden = named('names_left_out').filter((each) => each.value);
    return html`${hidden.map((each) => html`<p class="notice warn">${of(each.labels.namespace)}: ${counted(each.value, 'topic')} hidden from Kafka clients, since Kafka cannot have such names.</p>`)}
      <${Facts} items=${[['Connections', number(named('connections')[0]?.value ?? 0)]]} />
      ${apis.size ? html`<${Table} caption="Requests of Kafka clients since the start" numeric=${[1, 2]} head=${['request', 'asked', 'mean', 'errors']}
        rows=${[...apis].sort(([, one], [, other]) => other.asked - one.asked).map(([name, row]) => [name, number(row.asked), duration(seconds('sum', name) / seconds('count', name)),
          [...row.errors].map(([error, count]) => `${error} ${number(count)}`).join(', ') || 'none'])} />`
        : html`<${Empty} title="No Kafka client has asked"><p>Kafka is served at the address of <code>[kafka] listen</code> in the settings.</p><//>`}`;
  }}<//>`;
}

function Watchers() {
  const ask = useGet('server/watchers', { limit: 200 }, EVERY);
  return html`<${Answer} ask=${ask} what="the followed questions" rights=${MONITOR}>${(data) => html`
    ${data.enabled ? null : html`<p class="notice warn">Pulsar clients may not watch topics here: they list instead, again and again.</p>`}
    ${data.watchers > 0.9 * data.most_watchers ? html`<p class="notice bad">Almost no more watchers have a place: the bound is ${number(data.most_watchers)}.</p>` : null}
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
  return html`<${Answer} ask=${ask} what="held listings" rights="admin in a namespace">${(data) => (data.items.length === 0
    ? html`<${Empty} title="No listing is held"><p>A listing is held if many topics are missing in it at once, of namespaces that you may administer.</p><//>`
    : html`<p class="muted">Many topics are missing at once: clients get an error in place of a list that would have them unsubscribe.</p>
      <${Table} caption="Held listings" numeric=${[2, 3]} head=${['namespace', 'question', 'topics before', 'missing', 'held', 'passes by itself', 'or now']} rows=${data.items.map((each) => [
        of(each.namespace), html`<bdi>${each.question}</bdi>`, number(each.before), number(each.missing), ago(each.since), ago(each.until), me?.server.page_changes === false ? html`<code>broker-core shrink-guard accept</code>` : html`<button type="button" onClick=${() => accept(each.namespace)}>Let it pass</button>`])} />`)}<//>`;
}

const SCREENS = { kafka: Kafka, watchers: Watchers, held: Held };

/** @param {{screen: {id: string}}} page */
export default ({ screen }) => SCREENS[screen.id];
