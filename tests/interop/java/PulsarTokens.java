import com.google.gson.Gson;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.pulsar.utils.auth.tokens.TokensCliUtils;

/**
 * The real `pulsar tokens`, many commands in one JVM: each is a tool of its own, as in a process of its own.
 *
 * Usage: PulsarTokens; on standard input the arguments of a command, as a list of JSON, on standard output one line when
 * it has ended: {"exit": STATUS, "out": TEXT}
 */
public class PulsarTokens {
    public static void main(String[] args) throws Exception {
        var gson = new Gson();
        // What the main of the tool does before it ends the JVM, which nothing outside of its package may do.
        var made = TokensCliUtils.class.getDeclaredConstructor();
        var execute = TokensCliUtils.class.getDeclaredMethod("execute", String[].class);
        made.setAccessible(true);
        execute.setAccessible(true);
        PrintStream output = System.out;
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            var out = new ByteArrayOutputStream();
            System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
            Object exit = execute.invoke(made.newInstance(), (Object) gson.fromJson(line, String[].class));
            output.println(gson.toJson(Map.of("exit", exit, "out", out.toString(StandardCharsets.UTF_8))));
            output.flush();
        }
        System.exit(0);
    }
}
