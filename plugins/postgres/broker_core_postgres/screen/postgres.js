// The screen of the plugin in the explorer: the database as it is now, the pools, and what is wrong with them.
export default function ({ html, useAsk, parts, text, api }) {
  const { Answer, Badge, Facts, Table } = parts;
  const { ago, counted, duration, number } = text;

  /** @param {{of: any}} props the state of the database; `null` if it cannot be asked */
  function Database({ of }) {
    const kind = of.replica ? 'replica' : of.read_only ? 'read-only' : 'primary';
    const items = [
      ['Server', `PostgreSQL ${of.server}, ${kind}`],
      ['Database', html`<bdi>${of.database}</bdi>, as <bdi>${of.user}</bdi>`],
    ];
    if (of.relation) items.push(['Listings read', html`<code>${of.relation}</code>, a relation of your own`]);
    else {
      items.push(['Schema', `${number(of.schema)} of ${number(of.schema_needed)}`], ['Roles', of.roles_of_user.join(', ') || 'member of none']);
      if (of.roles_missing.length) items.push(['Missing roles', of.roles_missing.join(', ')]);
      if (of.backup) items.push(['Backup', of.backup]);
      if (of.catalog_id) {
        items.push(['Index of trigrams', of.trigrams ? 'there is one' : 'none: infixes are looked for in all names'],
          ['Change log', `${of.retention_seconds === null ? 'all ages' : duration(of.retention_seconds)}, at most ${counted(of.retention_versions, 'version')} and ${counted(of.retention_rows, 'change')} of a namespace`]);
      }
    }
    return html`<${Facts} items=${items} />${of.mirrors.length ? html`<${Table} caption="Mirrors" head=${['mirror of', 'source', 'last success']}
      rows=${of.mirrors.map((each) => [html`<bdi>${each.scope}</bdi>`, html`<bdi>${each.source}</bdi>`, ago(each.succeeded)])} />` : null}`;
  }

  return function Postgres({ params }) {
    const ask = useAsk(() => api.get('postgres/status'), [params.epoch], { every: 10_000 });
    return html`<${Answer} ask=${ask} what="the state of PostgreSQL" rights="monitor in all namespaces">${(data) => html`
      ${data.problems.length ? data.problems.map((each) => html`<p class="notice bad">${each}</p>`)
        : html`<p><${Badge} kind="good">ok<//> Listings can be served from this database.</p>`}
      ${data.database ? html`<${Database} of=${data.database} />` : null}
      <h2>Connections</h2>
      <${Table} caption="Pools of connections" numeric=${[3, 4, 5, 6, 7]} head=${['pool', 'state', 'server', 'idle', 'in use', 'at most', 'waiting', 'refused']}
        rows=${data.pools.map((each) => [each.name, html`<${Badge} kind=${each.up ? 'good' : 'bad'}>${each.up ? 'up' : 'down'}<//>`, html`<code>${each.server || '–'}</code>`,
          number(each.idle), number(each.in_use), number(each.most), number(each.waiting), number(each.refused)])} />
      <${Facts} items=${[
        ['Changes are listened for', data.listening === null ? 'no: each question asks the version' : data.listening ? 'yes' : 'not now: the connection is lost'],
        ['Times that the database went back', number(data.history_breaks)],
        ['Listings asked once more', number(data.retries)]]} />`}<//>`;
  };
}
