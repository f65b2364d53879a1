import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.Reader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicCollection;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.protocol.Errors;

/**
 * What Kafka's own AdminClient makes of the answers: a line of JSON for each case, {"case": NAME, "result": ...}.
 *
 * Usage: AdminCases FILE SETTLE: a file of the client's properties, and how many milliseconds to wait after a change.
 */
public class AdminCases {
    static final ObjectMapper JSON = new ObjectMapper();
    static final List<String> CHANGES = List.of("create", "delete", "alter", "partitions");
    static long settle;
    static final Uuid NO_SUCH_ID = new Uuid(0x123456789abc4defL, 0x8123456789abcdefL);

    static void run(String name, Callable<Object> call) throws Exception {
        Object result;
        try {
            result = call.call();
        } catch (Exception error) {
            result = error(error);
        }
        System.out.println(JSON.writeValueAsString(Map.of("case", name, "result", result)));
        System.out.flush();
        if (CHANGES.stream().anyMatch(name::startsWith)) {
            Thread.sleep(settle);
        }
    }

    static Object error(Throwable error) {
        Throwable cause = error instanceof ExecutionException ? error.getCause() : error;
        Map<String, Object> row = new LinkedHashMap<>();
        row.put("raised", cause.getClass().getSimpleName());
        row.put("code", Errors.forException(cause).code());
        row.put("message", cause.getMessage());
        return row;
    }

    static <T> Object get(KafkaFuture<T> future, java.util.function.Function<T, Object> shown) {
        try {
            return shown.apply(future.get());
        } catch (Exception error) {
            return error(error);
        }
    }

    static Object created(CreateTopicsResult result) {
        Map<String, Object> rows = new TreeMap<>();
        for (String name : new TreeSet<>(result.values().keySet())) {
            Map<String, Object> row = new LinkedHashMap<>();
            row.put("value", get(result.values().get(name), x -> "ok"));
            row.put("topic_id", get(result.topicId(name), x -> "<id>"));
            row.put("num_partitions", get(result.numPartitions(name), x -> x));
            row.put("replication_factor", get(result.replicationFactor(name), x -> x));
            row.put("configs", get(result.config(name), AdminCases::shown));
            rows.put(name, row.get("value") instanceof String ? row : row.get("value"));
        }
        return rows;
    }

    static Object shown(Config config) {
        Map<String, Object> rows = new TreeMap<>();
        for (ConfigEntry e : config.entries()) {
            rows.put(e.name(), List.of(String.valueOf(e.value()), e.source().name(), e.isReadOnly(), e.isSensitive()));
        }
        return rows;
    }

    static Object shown(TopicDescription d) {
        Map<String, Object> row = new LinkedHashMap<>();
        row.put("name", d.name());
        row.put("topic_id", d.topicId().toString());
        row.put("internal", d.isInternal());
        row.put("operations", d.authorizedOperations() == null ? null : new TreeSet<>(d.authorizedOperations()).toString());
        List<Object> partitions = new ArrayList<>();
        d.partitions().forEach(p -> partitions.add(List.of(p.partition(), p.leader().id(), p.replicas().size(), p.isr().size(),
            String.valueOf(p.elr()), String.valueOf(p.lastKnownElr()))));
        row.put("partitions", partitions);
        return row;
    }

    static Object futures(Map<?, ? extends KafkaFuture<?>> futures) {
        Map<String, Object> rows = new TreeMap<>();
        futures.forEach((key, future) -> rows.put(String.valueOf(key), get(future,
            x -> x instanceof TopicDescription d ? shown(d) : x instanceof Config c ? shown(c) : "ok")));
        return rows;
    }

    static NewTopic topic(String name) {
        return new NewTopic(name, Optional.empty(), Optional.empty());
    }

    static Object listed(Admin admin, boolean internal) throws Exception {
        Map<String, Object> rows = new TreeMap<>();
        for (TopicListing t : admin.listTopics(new ListTopicsOptions().listInternal(internal)).listings().get()) {
            if (t.name().startsWith("jv-") || t.isInternal()) rows.put(t.name(), List.of("<id>", t.isInternal()));
        }
        return rows;
    }

    static Uuid id(Admin admin, String name) throws Exception {
        return admin.listTopics().namesToListings().get().get(name).topicId();
    }

    public static void main(String[] args) throws Exception {
        Properties p = new Properties();
        try (Reader file = Files.newBufferedReader(Path.of(args[0]))) {
            p.load(file);
        }
        settle = Long.parseLong(args[1]);
        p.put("client.id", "java");
        p.put("request.timeout.ms", "10000");
        p.put("default.api.timeout.ms", "10000");
        try (Admin admin = Admin.create(p)) {
            run("create_with_configs", () -> created(admin.createTopics(List.of(new NewTopic("jv-orders", 3, (short) 1)
                .configs(new TreeMap<>(Map.of("retention.ms", "3600000", "cleanup.policy", "compact")))))));
            run("create_defaults", () -> created(admin.createTopics(List.of(topic("jv-plain")))));
            run("create_validate_only", () -> created(admin.createTopics(List.of(topic("jv-dry")),
                new CreateTopicsOptions().validateOnly(true))));
            run("create_duplicate", () -> created(admin.createTopics(List.of(topic("jv-orders")))));
            run("create_invalid_name", () -> created(admin.createTopics(List.of(topic("jv bad/name")))));
            run("create_empty_name", () -> created(admin.createTopics(List.of(topic("")))));
            run("create_partitions_0", () -> created(admin.createTopics(List.of(new NewTopic("jv-p", 0, (short) 1)))));
            run("create_rf_2_on_one_broker", () -> created(admin.createTopics(List.of(new NewTopic("jv-p", 1, (short) 2)))));
            run("create_unknown_config", () -> created(admin.createTopics(List.of(topic("jv-p").configs(Map.of("no.such", "1"))))));
            run("create_good_and_bad", () -> created(admin.createTopics(
                List.of(topic("jv-good"), topic("jv bad"), topic("jv-orders")))));
            run("list", () -> listed(admin, false));
            run("list_internal", () -> listed(admin, true));
            run("describe", () -> futures(admin.describeTopics(List.of("jv-orders", "jv-plain")).topicNameValues()));
            run("describe_operations", () -> futures(admin.describeTopics(List.of("jv-plain"),
                new DescribeTopicsOptions().includeAuthorizedOperations(true)).topicNameValues()));
            run("describe_limit_2", () -> futures(admin.describeTopics(List.of("jv-orders", "jv-plain", "jv-good"),
                new DescribeTopicsOptions().partitionSizeLimitPerResponse(2)).topicNameValues()));
            run("describe_unknown", () -> futures(admin.describeTopics(List.of("jv-none", "jv-plain")).topicNameValues()));
            run("describe_invalid_name", () -> futures(admin.describeTopics(List.of("jv bad/name")).topicNameValues()));
            run("describe_by_id", () -> {
                Map<String, Object> rows = new TreeMap<>();
                admin.describeTopics(TopicCollection.ofTopicIds(List.of(id(admin, "jv-orders")))).topicIdValues()
                    .forEach((id, f) -> rows.put("<id>", get(f, AdminCases::shown)));
                return rows;
            });
            run("describe_unknown_id", () ->
                futures(admin.describeTopics(TopicCollection.ofTopicIds(List.of(NO_SUCH_ID))).topicIdValues()));
            run("configs", () -> futures(admin.describeConfigs(List.of(
                new ConfigResource(ConfigResource.Type.TOPIC, "jv-orders"))).values()));
            run("configs_unknown_topic", () -> futures(admin.describeConfigs(List.of(
                new ConfigResource(ConfigResource.Type.TOPIC, "jv-none"))).values()));
            run("alter", () -> futures(admin.incrementalAlterConfigs(Map.of(
                new ConfigResource(ConfigResource.Type.TOPIC, "jv-plain"), (Collection<AlterConfigOp>) List.of(
                    new AlterConfigOp(new ConfigEntry("retention.ms", "1000"), AlterConfigOp.OpType.SET)))).values()));
            run("partitions_grow", () -> futures(admin.createPartitions(Map.of("jv-plain", NewPartitions.increaseTo(4))).values()));
            run("partitions_fewer", () -> futures(admin.createPartitions(Map.of("jv-plain", NewPartitions.increaseTo(2))).values()));
            run("describe_cluster", () -> {
                DescribeClusterResult c = admin.describeCluster();
                return List.of(c.nodes().get().size(), c.controller().get().id());
            });
            run("delete_by_name", () -> futures(admin.deleteTopics(List.of("jv-good")).topicNameValues()));
            run("delete_by_name_again", () -> futures(admin.deleteTopics(List.of("jv-good")).topicNameValues()));
            Uuid[] held = new Uuid[1];
            Callable<Object> byId = () -> {
                if (held[0] == null) held[0] = id(admin, "jv-plain");
                Map<String, Object> rows = new TreeMap<>();
                admin.deleteTopics(TopicCollection.ofTopicIds(List.of(held[0]))).topicIdValues()
                    .forEach((id, f) -> rows.put("<id>", get(f, x -> "ok")));
                return rows;
            };
            run("delete_by_id", byId);
            run("delete_by_id_again", byId);
            run("delete_unknown_id", () ->
                futures(admin.deleteTopics(TopicCollection.ofTopicIds(List.of(NO_SUCH_ID))).topicIdValues()));
            run("delete_rest", () -> futures(admin.deleteTopics(List.of("jv-orders")).topicNameValues()));
        }
    }
}
