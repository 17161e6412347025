import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.connect.mirror.MirrorClient;
import org.apache.kafka.connect.mirror.RemoteClusterUtils;

/** Answers with what MirrorMaker 2's own client sees on a cluster. */
public class MirrorClients {
    public static void main(String[] args) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            JsonNode question = mapper.readTree(line);
            Map<String, Object> properties = Map.of("bootstrap.servers", question.get("bootstrap").asText());
            ObjectNode answer = mapper.createObjectNode();
            try (MirrorClient client = new MirrorClient(properties)) {
                answer.set("upstream", mapper.valueToTree(new TreeSet<>(client.upstreamClusters())));
                answer.set("topics", mapper.valueToTree(new TreeSet<>(client.remoteTopics())));
                answer.set("heartbeats", mapper.valueToTree(new TreeSet<>(client.heartbeatTopics())));
                answer.set("checkpoints", mapper.valueToTree(new TreeSet<>(client.checkpointTopics())));
                answer.put("hops", client.replicationHops(question.get("alias").asText()));
            }
            Map<String, Long> offsets = new TreeMap<>();
            for (Map.Entry<TopicPartition, OffsetAndMetadata> each : RemoteClusterUtils.translateOffsets(
                    properties, question.get("alias").asText(), question.get("group").asText(),
                    Duration.ofSeconds(10)).entrySet()) {
                offsets.put(each.getKey().toString(), each.getValue().offset());
            }
            answer.set("offsets", mapper.valueToTree(offsets));
            System.out.println(mapper.writeValueAsString(answer));
            System.out.flush();
        }
    }
}
