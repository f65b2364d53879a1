import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.MessageUtil;

/**
 * Reads messages with Kafka's own codec, and writes them again.
 *
 * A line of standard input is KEY VERSION request|response HEX. The answer is how many bytes were not read, and HEX; or
 * the error.
 */
public class MessageCodec {
    static String again(String[] words) {
        ApiMessageType type = ApiMessageType.fromApiKey(Short.parseShort(words[0]));
        short version = Short.parseShort(words[1]);
        ApiMessage message = words[2].equals("request") ? type.newRequest() : type.newResponse();
        ByteBuffer data = ByteBuffer.wrap(HexFormat.of().parseHex(words[3]));
        message.read(new ByteBufferAccessor(data), version);
        ByteBuffer written = MessageUtil.toByteBufferAccessor(message, version).buffer();
        byte[] bytes = new byte[written.remaining()];
        written.get(bytes);
        return data.remaining() + " " + HexFormat.of().formatHex(bytes);
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String answer;
            try {
                answer = again(line.split(" ", -1));
            } catch (RuntimeException error) {
                answer = error.toString();
            }
            System.out.println(answer);
        }
    }
}
