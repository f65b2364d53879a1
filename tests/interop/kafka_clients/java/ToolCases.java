import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.utils.Exit;
import org.apache.kafka.tools.AclCommand;
import org.apache.kafka.tools.ClusterTool;
import org.apache.kafka.tools.TopicCommand;

/**
 * The commands of kafka-topics.sh, kafka-configs.sh, kafka-acls.sh and kafka-cluster.sh, one after the other in one JVM:
 * a line of JSON for each, {"case": COMMAND, "result": {"exit": STATUS, "said": [LINES]}}.
 *
 * Usage: ToolCases FILE SETTLE: a file of the clients' properties, and how many milliseconds to wait after a command.
 */
public class ToolCases {
    /** Thrown where a tool would end the JVM; tools catch it, and end once more. */
    static final class Exited extends RuntimeException { }

    static final List<String> COMMANDS = List.of(
        "topics --create --topic tool-orders --partitions 3 --config retention.ms=3600000 --config cleanup.policy=compact",
        "topics --create --topic tool-plain",
        "topics --create --topic tool-plain",
        "topics --create --topic tool-plain --if-not-exists",
        "topics --create --topic tool/bad",
        "topics --create --topic tool-p --replication-factor 2",
        "topics --create --topic tool-p --config no.such=1",
        "topics --create --topic tool.x",
        "topics --create --topic tool_x",
        "topics --list",
        "topics --list --exclude-internal",
        "topics --list --topic tool-.*",
        "topics --describe --topic tool-orders",
        "topics --describe --topic tool-.* --partition-size-limit-per-response 1",
        "topics --describe --topic tool-none",
        "topics --describe --topic-id ID",
        "topics --alter --topic tool-plain --partitions 4",
        "topics --alter --topic tool-plain --partitions 2",
        "topics --describe --topics-with-overrides --exclude-internal",
        "topics --describe --under-replicated-partitions",
        "configs --entity-type topics --entity-name tool-orders --describe",
        "configs --entity-type topics --entity-name tool-orders --describe --all",
        "configs --entity-type topics --entity-name tool-none --describe",
        "configs --entity-type topics --entity-name tool-plain --alter --add-config retention.ms=1000,segment.bytes=1048577",
        "configs --entity-type topics --entity-name tool-plain --describe",
        "configs --entity-type topics --entity-name tool-plain --alter --delete-config retention.ms",
        "configs --entity-type topics --entity-name tool-plain --alter --delete-config retention.ms",
        "configs --entity-type topics --entity-name tool-plain --describe",
        "configs --entity-type topics --entity-name tool-plain --alter --add-config retention.ms=x",
        "configs --entity-type topics --entity-name tool-plain --alter --add-config no.such=1",
        "acls --list",
        "acls --add --allow-principal User:bob --operation Read --operation Describe --topic tool-orders",
        "acls --add --deny-principal User:bob --deny-host 127.0.0.9 --operation All --topic tool- "
            + "--resource-pattern-type prefixed",
        "acls --add --allow-principal User:eve --operation DescribeConfigs --cluster",
        "acls --list",
        "acls --list --topic tool-orders",
        "acls --list --topic tool-orders --resource-pattern-type match",
        "acls --list --principal User:eve",
        "acls --remove --allow-principal User:bob --operation Read --topic tool-orders --force",
        "acls --remove --topic tool- --resource-pattern-type prefixed --force",
        "acls --remove --topic tool-orders --force",
        "acls --remove --cluster --force",
        "acls --list",
        "topics --delete --topic tool-orders",
        "topics --delete --topic tool-none",
        "topics --delete --topic tool-none --if-exists",
        "topics --delete --topic tool.*",
        "topics --list --exclude-internal");

    static String id(Properties p, String topic) {
        try (Admin admin = Admin.create(p)) {
            return admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).topicId().toString();
        } catch (Exception error) {
            throw new RuntimeException(error);
        }
    }

    static void main(String tool, String[] arguments) throws Exception {
        switch (tool) {
            case "topics" -> TopicCommand.main(arguments);
            case "configs" -> kafka.admin.ConfigCommand.main(arguments);
            case "acls" -> AclCommand.main(arguments);
            case "cluster" -> ClusterTool.main(arguments);
            default -> throw new IllegalArgumentException(tool);
        }
    }

    public static void main(String[] args) throws Exception {
        Properties p = new Properties();
        try (Reader file = Files.newBufferedReader(Path.of(args[0]))) {
            p.load(file);
        }
        int[] status = new int[1];
        var said = new ByteArrayOutputStream();
        String[] text = new String[1];
        Exit.setExitProcedure((code, message) -> {
            if (text[0] == null) {
                status[0] = code;
                text[0] = said.toString(StandardCharsets.UTF_8);
            }
            throw new Exited();
        });
        PrintStream output = System.out;
        int number = 0;
        for (String command : COMMANDS) {
            List<String> words = new ArrayList<>(List.of(command.split(" ")));
            String tool = words.remove(0);
            words.replaceAll(word -> word.equals("ID") ? id(p, "tool-plain") : word);
            words.addAll(0, List.of("--bootstrap-server", p.getProperty("bootstrap.servers"), "--command-config", args[0]));
            said.reset();
            text[0] = null;
            status[0] = 0;
            var captured = new PrintStream(said, true, StandardCharsets.UTF_8);
            System.setOut(captured);
            System.setErr(captured);
            try {
                scala.Console.withOut(captured, () -> {
                    try {
                        main(tool, words.toArray(String[]::new));
                    } catch (Exited ended) {
                        throw ended;
                    } catch (Exception error) {
                        throw new RuntimeException(error);
                    }
                    return null;
                });
            } catch (Exited ended) {
                // Its status and what it said until then are kept.
            }
            List<String> lines = (text[0] == null ? said.toString(StandardCharsets.UTF_8) : text[0]).lines()
                .map(line -> line.replaceAll("^\\[?[0-9-]+ [0-9:,]+\\]? ", "").strip())
                // Where an error was raised, inside of the tool and its client.
                .filter(line -> !line.matches("\\s+at .*|\\s+\\.\\.\\. \\d+ more|.*with args '.*"))
                .toList();
            output.println(new ObjectMapper().writeValueAsString(Map.of(
                "case", ++number + " " + command, "result", Map.of("exit", status[0], "said", lines))));
            output.flush();
            Thread.sleep(Long.parseLong(args[1]));
        }
        System.exit(0);
    }
}
