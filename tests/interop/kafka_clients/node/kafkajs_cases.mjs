// What kafkajs makes of the answers.
import { readFileSync } from "node:fs";
import kafkajs from "kafkajs";
import { run, server } from "./case_lines.mjs";

const { ConfigResourceTypes, Kafka, Partitioners, logLevel } = kafkajs;
const MECHANISMS = { PLAIN: "plain", "SCRAM-SHA-256": "scram-sha-256", "SCRAM-SHA-512": "scram-sha-512" };
const kafka = new Kafka({
  clientId: "kafkajs",
  brokers: [server.bootstrap],
  logLevel: logLevel.NOTHING,
  retry: { retries: 2 },
  ...(server.ca ? { ssl: { ca: [readFileSync(server.ca, "utf-8")] } } : {}),
  ...(server.mechanism
    ? { sasl: { mechanism: MECHANISMS[server.mechanism], username: server.user, password: server.password } }
    : {}),
});
const CONFIGS = [
  { name: "retention.ms", value: "3600000" },
  { name: "cleanup.policy", value: "compact" },
];

async function admin() {
  const client = kafka.admin();
  await client.connect();
  const create = (topic, more = {}, options = {}) =>
    client.createTopics({ topics: [{ topic, ...more }], waitForLeaders: false, ...options });
  const listed = async () => (await client.listTopics()).filter((name) => /^(kj-|__)/.test(name)).sort();
  const configs = async (name) => {
    const found = await client.describeConfigs({ resources: [{ type: ConfigResourceTypes.TOPIC, name }] });
    return found.resources.map((each) => ({
      ...each,
      configEntries: each.configEntries.filter((row) => row.configSource === 1),
    }));
  };
  await run("create_with_configs", () => create("kj-orders", { numPartitions: 3, configEntries: CONFIGS }));
  await run("create_defaults", () => create("kj-plain"));
  await run("create_validate_only", () => create("kj-dry", {}, { validateOnly: true }));
  await run("create_duplicate", () => create("kj-orders"));
  await run("create_invalid_name", () => create("kj bad/name"));
  await run("create_partitions_0", () => create("kj-p", { numPartitions: 0 }));
  await run("create_rf_2_on_one_broker", () => create("kj-p", { replicationFactor: 2 }));
  await run("create_unknown_config", () => create("kj-p", { configEntries: [{ name: "no.such", value: "1" }] }));
  await run("list", listed);
  await run("describe", () => client.fetchTopicMetadata({ topics: ["kj-orders", "kj-plain"] }));
  await run("describe_unknown", () => client.fetchTopicMetadata({ topics: ["kj-none"] }));
  await run("configs", () => configs("kj-orders"));
  await run("configs_unknown_topic", () => configs("kj-none"));
  await run("alter", () =>
    client.alterConfigs({
      resources: [
        { type: ConfigResourceTypes.TOPIC, name: "kj-plain", configEntries: [{ name: "retention.ms", value: "1000" }] },
      ],
    }));
  await run("configs_of_altered", () => configs("kj-plain"));
  await run("partitions_grow", () => client.createPartitions({ topicPartitions: [{ topic: "kj-plain", count: 4 }] }));
  await run("partitions_fewer", () => client.createPartitions({ topicPartitions: [{ topic: "kj-plain", count: 2 }] }));
  await run("describe_grown", () => client.fetchTopicMetadata({ topics: ["kj-plain"] }));
  await run("describe_cluster", async () => {
    const found = await client.describeCluster();
    return [found.brokers.length, found.controller, found.clusterId.length];
  });
  await run("delete_by_name", () => client.deleteTopics({ topics: ["kj-orders", "kj-plain"] }));
  await run("delete_by_name_again", () => client.deleteTopics({ topics: ["kj-orders"] }));
  await run("list_at_the_end", listed);
  await client.disconnect();
}

async function data() {
  await run("produce", async () => {
    const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner });
    await producer.connect();
    try {
      return await producer.send({ topic: "data", messages: [{ value: "hello" }] });
    } finally {
      await producer.disconnect();
    }
  });
  await run("join_a_group", async () => {
    const consumer = kafka.consumer({ groupId: "group", retry: { retries: 0 } });
    await consumer.connect();
    try {
      await consumer.subscribe({ topics: ["data"] });
      const ended = new Promise((_, fail) => consumer.on("consumer.crash", (event) => fail(event.payload.error)));
      await consumer.run({ eachMessage: async () => {} });
      const late = new Promise((done) => setTimeout(() => done("nothing within 15 s"), 15000).unref());
      return await Promise.race([ended, late]);
    } finally {
      await consumer.disconnect();
    }
  });
}

await (server.data ? data() : admin());
process.exit(0);
