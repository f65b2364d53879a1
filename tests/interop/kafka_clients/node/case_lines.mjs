// Cases of a client: each one's name and result as a line of JSON, ids as <id>.

const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const CHANGES = /^(create|delete|alter|partitions)/;

/** Where to connect to and as whom: the JSON of the only argument. */
export const server = JSON.parse(process.argv[2]);

function normal(value, key = "") {
  if (typeof value === "bigint") return Number(value);
  if (typeof value === "string") return ID.test(value) ? "<id>" : value;
  if (Array.isArray(value)) return value.map((each) => normal(each, key));
  if (value instanceof Map) return normal(Object.fromEntries(value), key);
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, normal(each, name)]));
  }
  if (key === "port") return "<port>";
  return value === undefined ? null : value;
}

function shown(error) {
  const inner = (error.errors || []).map(shown);
  const found = { raised: error.name || error.constructor.name, message: error.message };
  if (error.type) found.type = error.type;
  if (error.code !== undefined) found.code = error.code;
  if (error.apiId || error.apiCode) found.api = error.apiId ?? error.apiCode;
  if (error.cause instanceof Error) inner.push(shown(error.cause));
  return inner.length ? { ...found, errors: inner } : found;
}

/** Do one case, and print its line. */
export async function run(name, what) {
  const started = performance.now();
  let result;
  try {
    result = normal((await what()) ?? null);
  } catch (error) {
    result = normal(shown(error));
  }
  const text = JSON.stringify({ case: name, result, seconds: (performance.now() - started) / 1000 });
  process.stdout.write(text + "\n");
  if (CHANGES.test(name)) await new Promise((done) => setTimeout(done, server.settle * 1000));
}
