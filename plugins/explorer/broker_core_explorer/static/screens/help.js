// Keys, and what RE2 takes: the page is for servers without the internet.
import { html } from '../html.js';
import { Table } from '../parts.js';

export const KEYS = [
  ['/', 'to the search of the screen'], ['Ctrl K', 'the palette: any screen, namespace or command'], ['?', 'this help'],
  ['↑ ↓ Page Up Page Down Home End', 'in a list, once it has the focus'], ['Enter', 'opens the row'], ['Esc', 'closes a dialog'],
  ['g n', 'namespaces'], ['g p', 'plugins'], ['g s', 'the server'],
];

const SYNTAX = [
  ['orders', 'the topic with exactly this name: a pattern matches a whole name'], ['orders-.*', 'names that begin with orders-'],
  ['.*-eu', 'names that end with -eu'], ['.*error.*', 'names that contain error'], ['sensor-[0-9]+', 'sensor- and one digit or more'],
  ['[a-c]x, [^a-c]x', 'one of these characters, or none of them'], ['orders-(eu|us)', 'one of several'], ['orders-?', 'one or none'],
  ['a{2,4}', 'two to four'], ['\\.', 'a dot, in place of any character'], ['(?i)ORDERS', 'large and small letters alike'], ['\\p{Greek}+', 'letters of a script'],
];

/** @param {{place: import('../address.js').Place}} props */
export function Help({ place }) {
  const patterns = html`<section><h2>Patterns</h2>
    <p>A topics pattern is a regular expression of RE2, whose time is bounded by the length of a name, whatever the pattern. It matches the whole of <code>tenant/namespace/topic</code>, without the suffix of a partition. This page puts <code>tenant/namespace/</code> before what you type.</p>
    <${Table} caption="What RE2 takes" head=${['pattern', 'matches']} rows=${SYNTAX.map(([text, means]) => [html`<code>${text}</code>`, means])} />
    <h3>What RE2 refuses</h3>
    <p>Whatever needs to go back over a name, and so may take forever: <code>(?!…)</code> and <code>(?=…)</code> (looking ahead), <code>(?${'<'}!…)</code> and <code>(?${'<'}=…)</code> (looking behind), <code>\\1</code> (what a group has matched), <code>(?${'>'}…)</code>, <code>a++</code>. Ask with two patterns in their place, or with a property.</p></section>`;
  const keys = html`<section><h2>Keys</h2><${Table} caption="Keys" head=${['key', 'does']} rows=${KEYS.map(([key, does]) => [html`<kbd>${key}</kbd>`, does])} /></section>`;
  return html`<div class="head"><h1 tabindex="-1">Help</h1></div>
    <div class="prose">${place.path[0] === 'patterns' ? html`${patterns}${keys}` : html`${keys}${patterns}`}
    <section><h2>What this page does</h2><p>It asks this server, by <code>/v1</code>, with your rights, and no other host. A token or password stays in the memory of the page: after a reload it asks again. What you ask is in the address after <code>#</code>, which reaches no server, so that a link shows the same question to others, with their rights.</p></section></div>`;
}
