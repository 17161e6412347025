import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.AbstractPartitionAssignor;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Java members of groups, and Java's assignors, for tests in Python: each line of standard input is an operation,
 * each answer a JSON object. A member polls in a thread of its own until it is stopped.
 */
public class Members {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Map<String, Member> MEMBERS = new ConcurrentHashMap<>();

    private static final class Member extends Thread {
        private final KafkaConsumer<byte[], byte[]> consumer;
        private final List<String> topics;
        private final List<String> seen = new ArrayList<>();
        private List<String> assigned = List.of();
        private volatile boolean isStopped = false;

        Member(Map<String, Object> settings, List<String> topics) {
            this.consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
            this.topics = topics;
        }

        @Override
        public void run() {
            consumer.subscribe(topics);
            while (!isStopped) {
                List<String> values = new ArrayList<>();
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                    values.add(new String(record.value()));
                }
                List<String> now = consumer.assignment().stream().map(TopicPartition::toString).sorted().toList();
                synchronized (this) {
                    seen.addAll(values);
                    assigned = now;
                }
            }
            consumer.close();
        }

        synchronized Map<String, Object> state() {
            return Map.of("assigned", assigned, "seen", List.copyOf(seen));
        }
    }

    public static void main(String[] ignored) throws IOException {
        PrintStream answers = new PrintStream(System.out, true, "UTF-8");
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        String line;
        while ((line = questions.readLine()) != null) {
            Map<String, Object> answer = new HashMap<>();
            try {
                answer.put("result", answer(JSON.readTree(line)));
            } catch (Exception thrown) {
                answer.put("error", thrown.toString());
            }
            answers.println(JSON.writeValueAsString(answer));
        }
    }

    private static Object answer(JsonNode question) throws Exception {
        String name = question.path("name").asText();
        switch (question.get("operation").asText()) {
            case "start":
                Map<String, Object> settings = new HashMap<>();
                question.get("settings").fields().forEachRemaining(e -> settings.put(e.getKey(), e.getValue().asText()));
                Member member = new Member(settings, strings(question.get("topics")));
                MEMBERS.put(name, member);
                member.start();
                return true;
            case "state":
                return MEMBERS.get(name).state();
            case "stop":
                Member stopped = MEMBERS.remove(name);
                stopped.isStopped = true;
                stopped.join();
                return stopped.state();
            case "assign":
                List<Object> results = new ArrayList<>();
                for (JsonNode each : question.get("cases")) {
                    results.add(assign(each));
                }
                return results;
            default:
                throw new IllegalArgumentException("no such operation");
        }
    }

    private static Object assign(JsonNode question) {
        AbstractPartitionAssignor assignor = switch (question.get("assignor").asText()) {
            case "range" -> new RangeAssignor();
            case "roundrobin" -> new RoundRobinAssignor();
            case "sticky" -> new StickyAssignor();
            default -> new CooperativeStickyAssignor();
        };
        Map<String, Integer> counts = new HashMap<>();
        question.get("counts").fields().forEachRemaining(e -> counts.put(e.getKey(), e.getValue().asInt()));
        Map<String, Subscription> subscriptions = new HashMap<>();
        for (JsonNode each : question.get("members")) {
            List<TopicPartition> owned = new ArrayList<>();
            each.get("owned").forEach(p -> owned.add(new TopicPartition(p.get(0).asText(), p.get(1).asInt())));
            JsonNode data = each.get("user_data");
            ByteBuffer userData = data.isNull() ? null : ByteBuffer.wrap(Base64.getDecoder().decode(data.asText()));
            Subscription subscription = new Subscription(
                strings(each.get("topics")), userData, owned, each.get("generation").asInt(), Optional.empty());
            if (!each.get("instance").isNull()) {
                subscription.setGroupInstanceId(Optional.of(each.get("instance").asText()));
            }
            subscriptions.put(each.get("id").asText(), subscription);
        }
        Map<String, List<List<Object>>> found = new TreeMap<>();
        assignor.assign(counts, subscriptions).forEach((id, partitions) -> found.put(
            id, partitions.stream().map(p -> List.<Object>of(p.topic(), p.partition())).toList()));
        return found;
    }

    private static List<String> strings(JsonNode array) {
        List<String> found = new ArrayList<>();
        array.forEach(each -> found.add(each.asText()));
        return found;
    }
}
