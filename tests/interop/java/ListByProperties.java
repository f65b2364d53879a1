import com.google.gson.Gson;
import java.util.Map;
import org.apache.pulsar.client.admin.ListTopicsOptions;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.common.naming.TopicDomain;

/** Lists a namespace with the admin library: ListByProperties URL NAMESPACE JSON_OF_PROPERTIES; prints JSON. */
public class ListByProperties {
    @SuppressWarnings("unchecked")
    public static void main(String[] args) throws Exception {
        Map<String, String> properties = new Gson().fromJson(args[2], Map.class);
        ListTopicsOptions options = ListTopicsOptions.builder().properties(properties).build();
        try (PulsarAdmin admin = PulsarAdmin.builder().serviceHttpUrl(args[0]).build()) {
            System.out.println(new Gson().toJson(admin.topics().getList(args[1], TopicDomain.persistent, options)));
        }
        System.exit(0);
    }
}
