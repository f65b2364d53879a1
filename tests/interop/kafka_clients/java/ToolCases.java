import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.Reader;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.utils.Exit;

/**
 * The commands of kafka-topics.sh, kafka-configs.sh and kafka-acls.sh, one after the other in one JVM:
 * a line of JSON for each, {"case": COMMAND, "result": {"exit": STATUS, "said": [LINES]}}.
 *
 * Usage: ToolCases FILE SETTLE: a file of the clients' properties, and how many milliseconds to wait after a command.
 * Without arguments it takes commands from standard input, a line of JSON for each, {"main": CLASS, "arguments": [...]},
 * and answers it by {"exit": STATUS, "said": [LINES]}.
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

    static final Map<String, String> TOOLS = Map.of(
        "topics", "org.apache.kafka.tools.TopicCommand",
        "configs", "kafka.admin.ConfigCommand",
        "acls", "org.apache.kafka.tools.AclCommand");
    static final ObjectMapper JSON = new ObjectMapper();
    // What is logged goes to where the first tool printed.
    static final ByteArrayOutputStream said = new ByteArrayOutputStream();
    static final PrintStream captured = new PrintStream(said, true, StandardCharsets.UTF_8);

    /** The status and the lines of a tool, which would end the JVM. */
    static Map<String, Object> run(String name, String[] arguments) throws Exception {
        int[] status = new int[1];
        said.reset();
        String[] text = new String[1];
        Exit.setExitProcedure((code, message) -> {
            if (text[0] == null) {
                status[0] = code;
                text[0] = said.toString(StandardCharsets.UTF_8);
            }
            throw new Exited();
        });
        System.setOut(captured);
        System.setErr(captured);
        var main = Class.forName(name).getMethod("main", String[].class);
        scala.Console.withOut(captured, () -> {
            try {
                main.invoke(null, (Object) arguments);
            } catch (InvocationTargetException error) {
                // Of a tool that has ended, its status and what it said until then are kept.
                if (!(error.getCause() instanceof Exited)) {
                    throw new RuntimeException(error.getCause());
                }
            } catch (IllegalAccessException error) {
                throw new RuntimeException(error);
            }
            return null;
        });
        List<String> lines = (text[0] == null ? said.toString(StandardCharsets.UTF_8) : text[0]).lines()
            .map(line -> line.replaceAll("^\\[?[0-9-]+ [0-9:,]+\\]? ", "").strip())
            // Where an error was raised, inside of the tool and its client.
            .filter(line -> !line.matches("at \\S+\\(.*\\)|\\.\\.\\. \\d+ more|.*with args '.*"))
            .toList();
        return Map.of("exit", status[0], "said", lines);
    }

    public static void main(String[] args) throws Exception {
        PrintStream output = System.out;
        if (args.length == 0) {
            var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            for (String line = input.readLine(); line != null; line = input.readLine()) {
                var order = JSON.readTree(line);
                String[] arguments = JSON.convertValue(order.get("arguments"), String[].class);
                output.println(JSON.writeValueAsString(run(order.get("main").asText(), arguments)));
                output.flush();
            }
            System.exit(0);
        }
        Properties p = new Properties();
        try (Reader file = Files.newBufferedReader(Path.of(args[0]))) {
            p.load(file);
        }
        int number = 0;
        for (String command : COMMANDS) {
            List<String> words = new ArrayList<>(List.of(command.split(" ")));
            String tool = TOOLS.get(words.remove(0));
            words.replaceAll(word -> word.equals("ID") ? id(p, "tool-plain") : word);
            words.addAll(0, List.of("--bootstrap-server", p.getProperty("bootstrap.servers"), "--command-config", args[0]));
            var result = run(tool, words.toArray(String[]::new));
            output.println(JSON.writeValueAsString(Map.of("case", ++number + " " + command, "result", result)));
            output.flush();
            Thread.sleep(Long.parseLong(args[1]));
        }
        System.exit(0);
    }
}
