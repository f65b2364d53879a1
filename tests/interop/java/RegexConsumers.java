import com.google.gson.Gson;
import com.google.gson.JsonObject;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.apache.pulsar.client.api.AuthenticationFactory;
import org.apache.pulsar.client.api.ClientBuilder;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.ConsumerBuilder;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.RegexSubscriptionMode;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.impl.PulsarClientImpl;
import org.apache.pulsar.common.api.proto.CommandGetTopicsOfNamespace.Mode;
import org.apache.pulsar.common.naming.NamespaceName;

/**
 * Regex consumers of the official Java client, unmodified, driven by JSON lines on standard input; what happens to them is
 * told in JSON lines on standard output.
 *
 * Usage: RegexConsumers SERVICE_URL [TOKEN_FILE [CA_FILE]]; an empty name is none. The token is read again for each use.
 *   {"do": "subscribe", "id": ..., "pattern": ..., "subscription": ..., "period": SECONDS, "properties": {...},
 *    "mode": "PersistentOnly" | "AllTopics"}
 *      -> {"event": "subscribed" | "failed", "id": ..., "error": ...}, then {"event": "message", "id", "topic", "text"}
 *   {"do": "publish", "id": ..., "topic": ..., "text": ...} -> {"event": "published" | "failed", "id": ..., "error": ...}
 *   {"do": "partitions", "id": ..., "topic": ..., "create": false}
 *      -> {"event": "partitions", "id": ..., "topics": [...]} | {"event": "failed", ...}
 *   {"do": "count", "id": ..., "namespace": ...} -> {"event": "counted", "id": ..., "topics": N} | {"event": "failed", ...}
 *   {"do": "close", "id": ...} -> {"event": "closed", "id": ...}; the end of the input closes everything
 */
public class RegexConsumers {
    private static final Gson GSON = new Gson();

    private final PulsarClient client;
    private final Map<String, Consumer<byte[]>> consumers = new ConcurrentHashMap<>();
    private final List<Thread> readers = new ArrayList<>();

    private RegexConsumers(String serviceUrl, String tokenFile, String caFile) throws PulsarClientException {
        ClientBuilder builder = PulsarClient.builder().serviceUrl(serviceUrl).ioThreads(1).listenerThreads(1);
        if (!tokenFile.isEmpty()) {
            builder.authentication(AuthenticationFactory.token(() -> read(Path.of(tokenFile))));
        }
        if (!caFile.isEmpty()) {
            builder.tlsTrustCertsFilePath(caFile).enableTlsHostnameVerification(true);
        }
        client = builder.operationTimeout(30, TimeUnit.SECONDS).build();
    }

    public static void main(String[] args) throws Exception {
        RegexConsumers scene =
                new RegexConsumers(args[0], args.length > 1 ? args[1] : "", args.length > 2 ? args[2] : "");
        say(Map.of("event", "ready"));
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            JsonObject order = GSON.fromJson(line, JsonObject.class);
            String id = order.get("id").getAsString();
            try {
                switch (order.get("do").getAsString()) {
                    case "subscribe" -> scene.subscribe(id, order);
                    case "publish" -> scene.publish(id, order);
                    case "partitions" -> scene.partitions(id, order);
                    case "count" -> scene.count(id, order);
                    case "close" -> scene.close(id);
                    default -> throw new IllegalArgumentException(line);
                }
            } catch (Exception e) {
                say(Map.of("event", "failed", "id", id, "error", String.valueOf(e)));
            }
        }
        scene.client.close();
        for (Thread reader : scene.readers) {
            reader.join();
        }
    }

    private void subscribe(String id, JsonObject order) throws PulsarClientException {
        Map<String, String> properties = new LinkedHashMap<>();
        if (order.has("properties")) {
            order.getAsJsonObject("properties").entrySet()
                    .forEach(entry -> properties.put(entry.getKey(), entry.getValue().getAsString()));
        }
        ConsumerBuilder<byte[]> builder = client.newConsumer(Schema.BYTES)
                .topicsPattern(Pattern.compile(order.get("pattern").getAsString()))
                .subscriptionName(order.get("subscription").getAsString())
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest)
                .subscriptionTopicsMode(RegexSubscriptionMode.valueOf(order.get("mode").getAsString()))
                .patternAutoDiscoveryPeriod(order.get("period").getAsInt(), TimeUnit.SECONDS)
                .properties(properties);
        Consumer<byte[]> consumer = builder.subscribe();
        consumers.put(id, consumer);
        say(Map.of("event", "subscribed", "id", id));
        Thread reader = new Thread(() -> read(id, consumer), "reader-" + id);
        readers.add(reader);
        reader.start();
    }

    private static void read(String id, Consumer<byte[]> consumer) {
        try {
            while (true) {
                Message<byte[]> message = consumer.receive();
                String text = new String(message.getData(), StandardCharsets.UTF_8);
                say(Map.of("event", "message", "id", id, "topic", message.getTopicName(), "text", text));
                consumer.acknowledge(message);
            }
        } catch (PulsarClientException e) {
            say(Map.of("event", "closed", "id", id));
        }
    }

    private void publish(String id, JsonObject order) throws PulsarClientException {
        String topic = order.get("topic").getAsString();
        try (Producer<byte[]> producer = client.newProducer(Schema.BYTES).topic(topic).create()) {
            producer.send(order.get("text").getAsString().getBytes(StandardCharsets.UTF_8));
        }
        say(Map.of("event", "published", "id", id));
    }

    private static String read(Path tokenFile) {
        try {
            return Files.readString(tokenFile).strip();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** What applications ask that look before they leap: the partitions of a topic, without creating it. */
    private void partitions(String id, JsonObject order) throws Exception {
        List<String> topics = ((PulsarClientImpl) client)
                .getPartitionsForTopic(order.get("topic").getAsString(), order.get("create").getAsBoolean())
                .get(30, TimeUnit.SECONDS);
        say(Map.of("event", "partitions", "id", id, "topics", topics));
    }

    /** How many topics a listing has that no consumer subscribes to: as many consumers as topics are too many. */
    private void count(String id, JsonObject order) throws Exception {
        NamespaceName namespace = NamespaceName.get(order.get("namespace").getAsString());
        int topics = ((PulsarClientImpl) client).getLookup()
                .getTopicsUnderNamespace(namespace, Mode.PERSISTENT, null, null, Map.of())
                .get(60, TimeUnit.SECONDS).getNonPartitionedOrPartitionTopics().size();
        say(Map.of("event", "counted", "id", id, "topics", topics));
    }

    private void close(String id) throws PulsarClientException {
        consumers.remove(id).close();
    }

    private static synchronized void say(Map<String, ?> event) {
        System.out.println(GSON.toJson(event));
        System.out.flush();
    }
}
