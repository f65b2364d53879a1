// The plugins in the order in which they are asked, what is wrong with them, and the screens that they bring.
import { Fragment, h, html, useEffect, useErrorBoundary, useMemo, useRef, useState } from '../html.js';
import { ROOT } from '../api.js';
import { useAsk, usePage } from '../ask.js';
import { Answer, Badge, Empty, Facts, Failure, Table, Waiting } from '../parts.js';
import { link } from '../address.js';
import * as text from '../format.js';

const { duration, number } = text;

export function Plugins() {
  const { api, screens } = usePage();
  const ask = useAsk((signal) => api.get('server/plugins', {}, signal), [], { every: 5000 });
  return html`<div class="head"><h1 tabindex="-1">Plugins</h1></div>
    <${Answer} ask=${ask} what="the plugins" rights="monitor">${(data) => (data.items.length === 0
      ? html`<${Empty} title="No plugin is enabled"><p>The catalogue answers all listings. Plugins are named in <code>[plugins] enabled</code> of the settings.</p><//>`
      : html`<p class="muted">In the order in which they are asked: the first that answers ends it.</p>
        <ol class="plugins">${data.items.map((each) => html`<${Plugin} key=${each.name} plugin=${each} brought=${screens.filter((one) => one.plugin === each.name && one.allowed)} />`)}</ol>`)}<//>`;
}

/** @param {{plugin: any, brought: any[]}} props */
function Plugin({ plugin, brought }) {
  const calls = Object.entries(plugin.calls || {});
  const good = plugin.state === 'enabled' || plugin.state === 'ok';
  const milliseconds = (value) => (typeof value === 'number' ? duration(value / 1000) : '–');
  return html`<li class="panel">
    <div class="step"><h2><bdi>${plugin.name}</bdi></h2> <${Badge} kind=${good ? 'good' : /half/.test(plugin.state) ? 'warn' : 'bad'}>${plugin.state}<//>
      <span class="muted"><bdi>${[plugin.distribution, plugin.version].filter(Boolean).join(' ')}</bdi></span>
      ${brought.map((each) => html`<a href=${link(['screen', each.id])}><bdi>${each.title}</bdi></a>`)}</div>
    ${[...(plugin.problems || []), ...(plugin.warnings || [])].map((one) => html`<p class="notice bad">${String(one)}</p>`)}
    <${Facts} items=${[
      ['Hooks', (plugin.hooks || []).map((hook) => hook.replace(/^broker_core_/, '')).join(', ') || 'none'],
      ['Deadline', duration(plugin.deadline)],
      ['If it fails', plugin.on_failure || '–'],
      ['Namespaces', plugin.namespaces?.length ? plugin.namespaces.join(', ') : 'all'],
      ...(plugin.depends_on?.length ? [['Depends on', plugin.depends_on.join(', ')]] : []),
      ...(plugin.abandoned_calls ? [['Calls past their deadline that still run', number(plugin.abandoned_calls)]] : []),
    ]} />
    ${calls.length ? html`<${Table} caption=${`Calls of ${plugin.name}`} numeric=${[1, 2, 3, 4]} head=${['hook', 'calls', 'failures', 'median', '99 %', 'breaker', 'last error']}
      rows=${calls.map(([hook, each]) => [hook.replace(/^broker_core_/, ''), number(each.calls), number(Object.values(each.failures || {}).reduce((sum, one) => Number(sum) + Number(one), 0)),
        milliseconds(each.p50_ms), milliseconds(each.p99_ms), each.breaker, each.last_error || ''])} />` : null}
    ${(plugin.tasks || []).length ? html`<${Table} caption=${`Tasks of ${plugin.name}`} head=${['task', 'state', 'last error']}
      rows=${plugin.tasks.map((each) => [each.name, each.state ?? (each.running ? 'runs' : 'ended'), each.last_error || ''])} />` : null}
  </li>`;
}

/** A screen that a plugin brings: an ES module, which gets the framework and the API of this page. @param {{place: import('../address.js').Place}} props */
export function PluginScreen({ place }) {
  const { api, screens, epoch } = usePage();
  const [id] = place.path;
  const screen = screens.find((each) => each.id === id);
  const [loaded, set] = useState(/** @type {any} */ (null));
  const [crash, reset] = useErrorBoundary();
  const closing = useRef(new AbortController());
  useEffect(() => () => closing.current.abort(), []);
  useEffect(() => {
    if (!screen?.allowed) return;
    import(new URL(screen.module, ROOT).href).then((module) => set({ module }), (error) => set({ error }));
  }, [screen?.module, screen?.allowed]);
  const Screen = useMemo(() => {
    if (!loaded?.module) return null;
    // Only what a screen may lean on is given: this object is its contract.
    return loaded.module.default({
      screen, h, html, Fragment, useState, useEffect, useMemo, useRef, useAsk, text,
      parts: { Answer, Badge, Empty, Facts, Table, Waiting, Failure },
      api: { get: (path, query) => api.get(`/${path.replace(/^\//, '')}`, query, closing.current.signal) },
    });
  }, [loaded]);
  if (!screen) return html`<${Empty} title="No plugin brings this screen"><p>The plugin may have been disabled since.</p><//>`;
  const title = html`<div class="head"><h1 tabindex="-1"><bdi>${screen.title}</bdi></h1>${screen.plugin === 'explorer' ? null : html`<p class="muted">A screen of the plugin <bdi>${screen.plugin}</bdi></p>`}</div>`;
  if (!screen.allowed) return html`${title}<div class="state denied"><h2>You may not see this screen</h2><p>It needs <b>${screen.needs}</b>.</p></div>`;
  const failed = crash || loaded?.error;
  if (failed) return html`${title}<div class="state failed" role="alert"><h2>The screen of the plugin failed</h2><p>${String(failed.message || failed)}</p><button type="button" onClick=${reset}>Try again</button></div>`;
  if (!Screen) return html`${title}<${Waiting} slow=${false} what="the screen" />`;
  return html`${title}<${Screen} params=${{ path: place.path.slice(1), query: place.query, epoch }} />`;
}
