// The form of a question: pattern, mode, properties with the values that there are, and whoever asks.
import { html, useState } from './html.js';
import { useAsk, usePage } from './ask.js';
import { ofNamespace, part } from './api.js';
import { Field, TextInput } from './parts.js';
import { fullPattern, isPlain, literal } from './patterns.js';
import { MODES, patternOf, queryOf } from './question.js';
import { go, link } from './address.js';
import { counted } from './format.js';

/**
 * @param {object} props
 * @param {string} props.screen whose address has the question
 * @param {import('./question.js').Question} props.question
 * @param {any} [props.error] of the listing
 * @param {Record<string, any>} [props.more] what else the address has
 * @param {boolean} [props.asks] whether the question may be somebody else's
 */
export function QuestionForm({ screen, question, error, more = {}, asks = true }) {
  const { me } = usePage();
  const { namespace, typed, mode, properties } = question;
  const set = (/** @type {Partial<import('./question.js').Question>} */ changed) => go(
    link([screen, ...namespace.split('/')], queryOf({ ...question, ...changed }, more)),
    { replace: true },
  );
  const known = (me?.server?.property_keys || []).slice(0, 8);
  const valueOf = (key) => properties.find(([name]) => name === key)?.[1] || '';
  const setProperty = (key, value) => {
    const others = properties.filter(([name]) => name !== key);
    set({ properties: value === '' ? others : [...others, [key, value]] });
  };
  const others = properties.filter(([key]) => !known.includes(key));
  const { full } = fullPattern(typed, namespace);
  const refused = error?.cause_ === 'PATTERN' ? error : null;
  return html`<form class="question" role="search" onSubmit=${(event) => event.preventDefault()}>
    <div class="line">
      <${Field} label="Pattern of names" class="grows" bad=${refused && html`<${Refused} error=${refused} question=${question} />`}
          hint=${typed === '' ? html`A regular expression, as a consumer subscribes with: <code>orders-.*</code>. Empty: all topics.`
            : html`Asked as <code class="full"><bdi>${full}</bdi></code>`}>
        <${TextInput} value=${typed} set=${(text) => set({ typed: text })} class="code" data-search
          placeholder="orders-.*" aria-invalid=${refused ? 'true' : undefined} />
      <//>
      <${Field} label="Topics">
        <select value=${mode} onChange=${(event) => set({ mode: event.target.value })}>
          ${MODES.map(([value, text]) => html`<option value=${value}>${text}</option>`)}
        </select>
      <//>
      ${known.map((key) => html`<${PropertyField} key=${key} name=${key} question=${question}
        value=${valueOf(key)} set=${(value) => setProperty(key, value)} />`)}
    </div>
    ${typed !== '' && isPlain(typed) && !refused ? html`<p class="hint">Only the topic with exactly this name matches.
      <button type="button" class="link" onClick=${() => set({ typed: `.*${literal(typed)}.*` })}>Names that contain it</button></p>` : null}
    ${others.length ? html`<p class="hint">Also asked with ${others.map(([key, value]) => html`<span class="pair"><bdi>${key}</bdi>=<bdi>${value}</bdi>
      <button type="button" class="quiet icon" aria-label=${`Take ${key} away`} onClick=${() => setProperty(key, '')}>✕</button></span> `)}</p>` : null}
    <${MoreOfQuestion} question=${question} set=${set} asks=${asks} />
  </form>`;
}

/** @param {{name: string, value: string, set: (value: string) => void, question: any}} props */
function PropertyField({ name, value, set, question }) {
  const { api } = usePage();
  const [wanted, want] = useState(false);
  const list = `values-of-${name}`;
  const found = useAsk(!wanted ? null : (signal) => api.get(
    `${ofNamespace(question.namespace)}/properties/${part(name)}`,
    { mode: question.mode, pattern: patternOf(question), limit: 50 }, signal,
  ), [wanted, question.namespace, name, question.mode, patternOf(question)]);
  const items = found.data?.items || [];
  return html`<${Field} label=${html`Property <bdi>${name}</bdi>`} class="property">
    <${TextInput} value=${value} set=${set} list=${list} placeholder="any" onFocus=${() => want(true)} onPointerEnter=${() => want(true)} />
    <datalist id=${list}>${items.map((each) => html`<option value=${each.value}>${counted(each.names, 'name')}</option>`)}</datalist>
  <//>`;
}

/** A property that selects nothing by itself, and somebody else as the one who asks. @param {any} props */
function MoreOfQuestion({ question, set, asks }) {
  const { me } = usePage();
  const { as, properties } = question;
  const [pair, setPair] = useState('');
  const may = me === null || me.super || me.rights?.namespace?.includes('admin') || me.rights?.everywhere?.includes('admin');
  const put = (name, value) => {
    const next = { ...(as || {}), [name]: value };
    if (value === '') delete next[name];
    set({ as: Object.keys(next).length ? next : null });
  };
  const add = () => {
    const at = pair.indexOf('=');
    if (at > 0) {
      set({ properties: [...properties.filter((each) => each[0] !== pair.slice(0, at)), [pair.slice(0, at), pair.slice(at + 1)]] });
      setPair('');
    }
  };
  return html`<details class="more" open=${as !== null || undefined}>
    <summary>${as === null ? (asks ? 'As somebody else, other properties' : 'Other properties') : html`Asked as <b><bdi>${as.role || 'nobody'}</bdi></b>`}</summary>
    ${asks ? html`<div class="line">${may ? html`
      <${Field} label="As the role"><${TextInput} value=${as?.role || ''} set=${(value) => put('role', value)} placeholder="team-a" /><//>
      <${Field} label="From the address"><${TextInput} value=${as?.address || ''} set=${(value) => put('address', value)} placeholder="192.0.2.7" /><//>
      <${Field} label="With the client"><${TextInput} value=${as?.client_version || ''} set=${(value) => put('client_version', value)} placeholder="Pulsar-Java-v4.2.4" /><//>
      ${as === null ? null : html`<button type="button" onClick=${() => set({ as: null })}>As myself</button>`}`
      : html`<p class="hint">To ask as somebody else you need the right <b>admin</b> in this namespace.</p>`}</div>` : null}
    <div class="line">
      <${Field} label="One more property" hint="As a consumer sends it. Those that select nothing go to plugins alone.">
        <${TextInput} value=${pair} set=${setPair} placeholder="key=value" onKeyDown=${(event) => event.key === 'Enter' && add()} />
      <//>
      <button type="button" disabled=${pair.indexOf('=') < 1} onClick=${add}>Add</button>
    </div>
  </details>`;
}

/** Where in the text RE2 refuses, and why. @param {{error: any, question: any}} props */
function Refused({ error, question }) {
  const { reason, offset, length } = error.problem.error || {};
  const { shift } = fullPattern(question.typed, question.namespace);
  const help = html`<a href="#/help/patterns">What RE2 takes</a>`;
  const symbols = [...question.typed];
  const start = typeof offset === 'number' ? offset - shift : -1;
  if (start < 0 || start >= symbols.length) return html`${reason || error.message} ${help}`;
  const end = start + Math.max(1, length || 1);
  return html`<span>${reason}, at character ${start + 1}: <code class="refused"><bdi>${symbols.slice(0, start).join('')}<mark class="wrong">${symbols.slice(start, end).join('')}</mark>${symbols.slice(end).join('')}</bdi></code> ${help}</span>`;
}
