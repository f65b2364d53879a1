import com.google.gson.Gson;
import com.google.gson.JsonObject;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Properties;
import org.apache.pulsar.admin.cli.PulsarAdminTool;

/**
 * The real pulsar-admin, many commands in one JVM: each is a tool of its own, as in a process of its own.
 *
 * Usage: PulsarAdminCommands; on standard input one JSON line a command, on standard output one line when it has ended:
 *   {"id": ..., "arguments": ["topics", "list", "public/default"]}
 *      -> {"event": "ended", "id": ..., "exit": 0 | 1, "out": TEXT, "err": TEXT}
 */
public class PulsarAdminCommands {
    private static final Gson GSON = new Gson();

    /** Makes the method public that the tool's own main calls. */
    private static final class Tool extends PulsarAdminTool {
        Tool() throws Exception {
            super(new Properties());
        }

        boolean runs(String[] arguments) {
            return run(arguments);
        }
    }

    /** What one thread writes: clients of earlier commands may still log something from threads of their own. */
    private static final class OfOneThread extends OutputStream {
        private final ByteArrayOutputStream written = new ByteArrayOutputStream();
        private final Thread thread = Thread.currentThread();

        @Override
        public void write(int b) {
            if (Thread.currentThread() == thread) {
                written.write(b);
            }
        }

        String text() {
            return written.toString(StandardCharsets.UTF_8);
        }
    }

    public static void main(String[] args) throws Exception {
        PrintStream output = System.out;
        output.println(GSON.toJson(Map.of("event", "ready")));
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            JsonObject order = GSON.fromJson(line, JsonObject.class);
            var out = new OfOneThread();
            var err = new OfOneThread();
            System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
            System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
            int exit;
            try {
                exit = new Tool().runs(GSON.fromJson(order.get("arguments"), String[].class)) ? 0 : 1;
            } catch (Exception e) {
                System.err.println(e);
                exit = 1;
            }
            output.println(GSON.toJson(Map.of(
                    "event", "ended", "id", order.get("id").getAsString(), "exit", exit,
                    "out", out.text(), "err", err.text())));
        }
        System.exit(0);
    }
}
