// What @platformatic/kafka makes of the answers.
import { readFileSync } from "node:fs";
import { Admin, Consumer, Producer, stringDeserializers, stringSerializers } from "@platformatic/kafka";
import { run, server } from "./case_lines.mjs";

const options = {
  clientId: "platformatic",
  bootstrapBrokers: [server.bootstrap],
  retries: 1,
  ...(server.ca ? { tls: { ca: readFileSync(server.ca, "utf-8") } } : {}),
  ...(server.mechanism
    ? { sasl: { mechanism: server.mechanism, username: server.user, password: server.password } }
    : {}),
};

async function admin() {
  const client = new Admin(options);
  const create = (name, more = {}) => client.createTopics({ topics: [name], ...more });
  const listed = async () => (await client.listTopics({ includeInternals: true })).filter((name) => /^(pl-|__)/.test(name)).sort();
  const described = async (...topics) => {
    const found = await client.metadata({ topics, forceUpdate: true });
    return [...found.topics].map(([name, each]) => [name, each.id, each.partitionsCount]);
  };
  await run("create_with_configs", () =>
    create("pl-orders", { partitions: 3, replicas: 1, configs: [{ name: "retention.ms", value: "3600000" }] }));
  await run("create_plain", () => create("pl-plain", { partitions: 1, replicas: 1 }));
  await run("create_duplicate", () => create("pl-orders", { partitions: 1, replicas: 1 }));
  await run("create_invalid_name", () => create("pl bad/name", { partitions: 1, replicas: 1 }));
  await run("create_partitions_0", () => create("pl-p", { partitions: 0, replicas: 1 }));
  await run("create_rf_2_on_one_broker", () => create("pl-p", { partitions: 1, replicas: 2 }));
  await run("list", listed);
  await run("describe", () => described("pl-orders", "pl-plain"));
  await run("describe_unknown", () => described("pl-none"));
  const topic = (resourceName) => ({ resourceType: 2, resourceName });
  const configs = async (name) => {
    const found = await client.describeConfigs({ resources: [{ ...topic(name), configurationKeys: null }] });
    return found.map((each) => each.configs.filter((row) => row.configSource === 1));
  };
  await run("configs", () => configs("pl-orders"));
  await run("configs_unknown_topic", () => configs("pl-none"));
  const alter = { name: "retention.ms", configOperation: 0, value: "1000" };
  await run("alter", () => client.incrementalAlterConfigs({ resources: [{ ...topic("pl-plain"), configs: [alter] }] }));
  await run("configs_of_altered", () => configs("pl-plain"));
  const grow = (count) => client.createPartitions({ topics: [{ name: "pl-plain", count, assignments: null }] });
  await run("partitions_grow", () => grow(4));
  await run("partitions_fewer", () => grow(2));
  await run("describe_grown", () => described("pl-plain"));
  await run("delete_by_name", () => client.deleteTopics({ topics: ["pl-orders", "pl-plain"] }));
  await run("delete_by_name_again", () => client.deleteTopics({ topics: ["pl-orders"] }));
  await run("list_at_the_end", listed);
  await client.close();
}

async function data() {
  await run("produce", async () => {
    const producer = new Producer({ ...options, serializers: stringSerializers });
    try {
      return await producer.send({ messages: [{ topic: "data", value: "hello" }] });
    } finally {
      await producer.close();
    }
  });
  await run("join_a_group", async () => {
    const consumer = new Consumer({ ...options, groupId: "group", deserializers: stringDeserializers });
    try {
      await consumer.consume({ topics: ["data"] });
      return "joined";
    } finally {
      await consumer.close(true);
    }
  });
}

await (server.data ? data() : admin());
process.exit(0);
