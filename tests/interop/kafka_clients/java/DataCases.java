import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.Reader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * What Kafka's own producer and consumer are told about the topic `data`, which there is.
 *
 * Usage: DataCases FILE: a file of the clients' properties. Prints a line of JSON for each case.
 */
public class DataCases {
    static void run(String name, Callable<Object> call) throws Exception {
        long started = System.nanoTime();
        Object result;
        try {
            result = String.valueOf(call.call());
        } catch (Exception error) {
            Throwable cause = error instanceof ExecutionException ? error.getCause() : error;
            result = Map.of("raised", cause.getClass().getSimpleName(), "message", String.valueOf(cause.getMessage()));
        }
        double seconds = (System.nanoTime() - started) / 1e9;
        System.out.println(new ObjectMapper().writeValueAsString(
            Map.of("case", name, "result", result, "seconds", seconds)));
        System.out.flush();
    }

    public static void main(String[] args) throws Exception {
        Properties p = new Properties();
        try (Reader file = Files.newBufferedReader(Path.of(args[0]))) {
            p.load(file);
        }
        p.put("max.block.ms", "10000");
        p.put("default.api.timeout.ms", "10000");
        p.put("group.id", "group");
        p.put("auto.offset.reset", "earliest");
        run("produce", () -> {
            try (var producer = new KafkaProducer<>(p, new StringSerializer(), new StringSerializer())) {
                return producer.send(new ProducerRecord<>("data", "hello")).get();
            }
        });
        run("consume", () -> {
            try (var consumer = new KafkaConsumer<>(p, new StringDeserializer(), new StringDeserializer())) {
                consumer.assign(List.of(new TopicPartition("data", 0)));
                consumer.seek(new TopicPartition("data", 0), 0);
                return consumer.poll(Duration.ofSeconds(10)).count();
            }
        });
        run("join_a_group", () -> {
            try (var consumer = new KafkaConsumer<>(p, new StringDeserializer(), new StringDeserializer())) {
                consumer.subscribe(List.of("data"));
                return consumer.poll(Duration.ofSeconds(10)).count();
            }
        });
    }
}
