// Topics as they come and go, in the filter of a question.
import { html, useEffect, useRef, useState } from '../html.js';
import { usePage, useSettled, useVisible } from '../ask.js';
import { ofNamespace } from '../api.js';
import { Badge, Empty, Failure } from '../parts.js';
import { QuestionForm } from '../question_form.js';
import { parametersOf, queryOf, questionOf } from '../question.js';
import { Head, topicLink } from './topics.js';
import { clockTime, number } from '../format.js';

/** Changes that are kept and shown: older ones are counted alone. */
const KEPT = 500;
const SHOWN = 60;
const AGAIN_MS = 3000;

/** @param {{place: import('../address.js').Place}} props */
export function Live({ place }) {
  const { api, epoch } = usePage();
  const question = { ...questionOf(place), as: null };
  const key = useSettled(`${question.namespace}?${queryOf(question)}`, 250);
  const visible = useVisible();
  const [paused, pause] = useState(false);
  const [state, setState] = useState(/** @type {any} */ ({ connected: false, error: null, total: null }));
  const [events, setEvents] = useState(/** @type {{id: number, kind: string, name: string, at: number}[]} */ ([]));
  const [counts, setCounts] = useState({ added: 0, removed: 0 });
  const waiting = useRef(/** @type {any[]} */ ([]));
  const last = useRef({ key: '', id: '' });
  const serial = useRef(0);
  const held = useRef(paused);
  held.current = paused;

  useEffect(() => {
    setEvents([]);
    setCounts({ added: 0, removed: 0 });
    waiting.current = [];
  }, [key]);
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
        setCounts((before) => ({ ...before, [name]: before[/** @type {'added'} */ (name)] + items.length }));
        if (!held.current && !frame) frame = requestAnimationFrame(() => {
          frame = 0;
          flush();
        });
      } else if (name === 'error') {
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
        const failed = error;
        setState({ connected: false, error: failed });
        if (failed.status === 0 || failed.status >= 429) timer = setTimeout(run, AGAIN_MS);
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
  return html`<${Head} namespace=${question.namespace} now="live" />
    <${QuestionForm} screen="live" question=${question} error=${state.error} asks=${false} />
    <div class="bar">
      <p class="result" role="status">${state.error ? html`<${Badge} kind="bad">${state.error.status === 0 ? 'not connected, trying again' : 'stopped'}<//>`
        : !state.connected ? html`<${Badge} kind="plain">${state.reading ? `reading ${number(state.reading)} names` : 'connecting'}<//>`
        : paused ? html`<${Badge} kind="warn">paused<//>` : html`<${Badge} kind="good">live<//>`}
        ${' '}<span class="muted">${number(counts.added)} came, ${number(counts.removed)} went${paused && waiting.current.length ? `, ${number(waiting.current.length)} since the pause` : ''}</span></p>
      <button type="button" aria-pressed=${paused} onClick=${() => pause(!paused)}>${paused ? 'Go on' : 'Pause'}</button>
      <button type="button" disabled=${!events.length} onClick=${() => setEvents([])}>Clear</button>
    </div>
    ${state.error && state.error.status !== 0 && state.error.cause_ !== 'PATTERN' ? html`<${Failure} error=${state.error} what="the changes" rights="list" />` : null}
    ${shown.length ? html`<ol class="events" aria-label="Changes, newest first">${shown.map((each) => html`<li key=${each.id} class=${each.kind}>
      <time datetime=${new Date(each.at).toISOString()}>${clockTime(each.at)}</time>
      <span class="sign" aria-hidden="true">${each.kind === 'added' ? '+' : '−'}</span><span class="hidden-text">${each.kind === 'added' ? 'came' : 'went'}</span>
      <a href=${topicLink(question.namespace, each.name)}><bdi>${each.name}</bdi></a></li>`)}</ol>
      ${events.length > SHOWN ? html`<p class="muted">${number(events.length - SHOWN)} older changes are kept but not shown.</p>` : null}`
      : state.connected && !state.error ? html`<${Empty} title="Nothing has changed yet"><p>Topics that come and go in this filter show here at once. Leave the page open; a hidden tab closes the stream, and goes on where it was.</p><//>` : null}`;
}
