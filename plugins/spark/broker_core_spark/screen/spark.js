// The screen of the plugin in the explorer: the generation that is served, its share of the questions, and what is wrong.
const PREFIX = 'broker_core_spark_';

export default function ({ html, useAsk, parts, text, api }) {
  const { Answer, Badge, Empty, Facts, Table } = parts;
  const { duration, number, percent, size } = text;

  return function Spark({ params }) {
    const ask = useAsk(() => Promise.all([
      api.get('v1/server/metrics', { name: PREFIX }),
      api.get('v1/server/plugins'),
    ]), [params.epoch], { every: 10_000 });
    return html`<${Answer} ask=${ask} what="the state of Spark's generations" rights="monitor in all namespaces">${([metrics, plugins]) => {
      const all = metrics.items.map((each) => ({ ...each, name: each.name.slice(PREFIX.length) }));
      const value = (name, label) => all.find((each) => each.name === name && (!label || Object.values(each.labels).includes(label)))?.value;
      const served = all.find((each) => each.name === 'generation_info')?.labels;
      const problems = plugins.items.find((each) => each.name === 'spark')?.problems || [];
      const answered = value('last_hour_questions', 'answered') || 0;
      const questions = answered + (value('last_hour_questions', 'passed') || 0);
      const passed = all.filter((each) => each.name === 'passed_total' && each.value);
      return html`${problems.map((each) => html`<p class="notice bad">${String(each)}</p>`)}
        ${served ? html`<${Facts} items=${[
          ['Generation', html`<code>${served.generation}</code>, published as number ${served.number}`],
          ['Published', `${duration(value('generation_age_seconds'))} ago`],
          ['Follows', served.follows],
          ['Questions', number(value('questions'))],
          ['Topics', number(value('topics'))],
          ['Mapped files', size(value('mapped_bytes'))],
          ['Changed since, followed', `${number(value('overlay_names'))} in ${text.counted(value('overlay_namespaces') || 0, 'namespace')}`],
          ['Cannot be followed any more', value('overlays_ended') ? html`<${Badge} kind="warn">${number(value('overlays_ended'))} namespaces<//>` : 'none']]} />`
          : html`<${Empty} title="No generation is served"><p>Questions pass to the next lister. One is built by <code>broker-core spark build</code>.</p><//>`}
        <h2>The last hour</h2>
        <p>${questions ? `${number(answered)} of ${number(questions)} questions were answered from the generation: ${percent(answered / questions)}.` : 'Nobody has asked.'}</p>
        ${passed.length ? html`<${Table} caption="Questions passed on since the start, by reason" numeric=${[1]} head=${['passed on because', 'questions']}
          rows=${passed.map((each) => [Object.values(each.labels)[0], number(each.value)])} />` : null}`;
    }}<//>`;
  };
}
