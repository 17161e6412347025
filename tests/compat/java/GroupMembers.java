import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.FileWriter;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Members of groups with the Java consumer, told by JSON lines like the members in Python: start and stop. Each polls,
 * notes what it got in its journal, commits it, and goes on. Whoever wants a crash kills the whole program.
 */
public class GroupMembers {
    private static final Map<String, Member> MEMBERS = new ConcurrentHashMap<>();

    public static void main(String[] ignored) throws Exception {
        ObjectMapper json = new ObjectMapper();
        PrintStream answers = new PrintStream(System.out, true, "UTF-8");
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        String line;
        while ((line = questions.readLine()) != null) {
            JsonNode question = json.readTree(line);
            String name = question.path("member").asText();
            switch (question.get("operation").asText()) {
                case "start":
                    Member member = new Member(question);
                    MEMBERS.put(name, member);
                    member.start();
                    break;
                case "stop":
                    MEMBERS.get(name).ends = true;
                    break;
                default:
            }
            answers.println("{\"result\": null}");
        }
        for (Member member : MEMBERS.values()) {
            member.ends = true;
        }
        for (Member member : MEMBERS.values()) {
            member.join(5_000);
        }
        System.exit(0);
    }

    private static final class Member extends Thread implements ConsumerRebalanceListener {
        private final JsonNode question;
        private final PrintWriter journal;
        private final Map<TopicPartition, OffsetAndMetadata> uncommitted = new HashMap<>();
        private final Map<TopicPartition, Long> firstUncommitted = new HashMap<>();
        private volatile boolean ends;
        private KafkaConsumer<byte[], byte[]> consumer;

        Member(JsonNode question) throws Exception {
            super("member-" + question.get("member").asText());
            setDaemon(true);
            this.question = question;
            this.journal = new PrintWriter(new FileWriter(question.get("journal").asText(), true), true);
        }

        @Override
        public void run() {
            Map<String, Object> settings = new HashMap<>(Map.of(
                "auto.offset.reset", "earliest", "enable.auto.commit", "false", "max.poll.records", "20",
                "metadata.max.age.ms", "1000"));
            question.get("settings").fields().forEachRemaining(f -> settings.put(f.getKey(), f.getValue().asText()));
            try (KafkaConsumer<byte[], byte[]> opened =
                     new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
                consumer = opened;
                String topic = question.get("topic").asText();
                if (topic.startsWith("re2:")) {
                    consumer.subscribe(new SubscriptionPattern(topic.substring(4)), this);
                } else if (topic.startsWith("java:")) {
                    consumer.subscribe(Pattern.compile(topic.substring(5)), this);
                } else {
                    consumer.subscribe(List.of(topic), this);
                }
                while (!ends) {
                    step();
                }
            } catch (Exception error) {
                note("e ended: " + error);
            }
            note("x");
        }

        private void step() throws InterruptedException {
            ConsumerRecords<byte[], byte[]> found = consumer.poll(Duration.ofMillis(50));
            for (TopicPartition partition : found.partitions()) {
                List<ConsumerRecord<byte[], byte[]>> records = found.records(partition);
                long last = records.get(records.size() - 1).offset();
                note("r " + partition.partition() + " " + records.get(0).offset() + " " + last);
                uncommitted.put(partition, new OffsetAndMetadata(last + 1));
                firstUncommitted.putIfAbsent(partition, records.get(0).offset());
            }
            if (!found.isEmpty()) {
                Thread.sleep(10);
            }
            commit();
        }

        private void commit() {
            if (uncommitted.isEmpty()) {
                return;
            }
            try {
                consumer.commitSync(uncommitted);
                uncommitted.forEach((partition, to) -> note("c " + partition.partition() + " " + to.offset()));
                forget();
            } catch (RebalanceInProgressException error) {
                // A cooperative member keeps its partitions meanwhile: it polls on and commits afterwards.
            } catch (KafkaException error) {
                note("e " + error.toString().replaceAll("\\s+", " "));
                forget();
            }
        }

        private void forget() {
            uncommitted.clear();
            firstUncommitted.clear();
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            note("a " + listed(partitions));
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            commit();
            // A rebalance refused the commit, and there is no time left for another: a member that leaves is not asked.
            uncommitted.forEach((partition, to) -> note(
                "f " + partition.partition() + " " + firstUncommitted.get(partition) + " " + (to.offset() - 1)));
            forget();
            note("v " + listed(partitions));
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            forget();
            note("v " + listed(partitions));
        }

        private static String listed(Collection<TopicPartition> partitions) {
            return partitions.stream().map(p -> p.partition()).sorted().map(String::valueOf)
                .collect(Collectors.joining(","));
        }

        private void note(String text) {
            journal.println(System.currentTimeMillis() + " " + text);
        }
    }
}
