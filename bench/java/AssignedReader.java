import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Reads topics from beginning to end without a group: each line of standard input is
 * {"bootstrap", "topic", "partitions", "records"}, each answer {"records", "bytes", "elapsed_s", "cpu_s",
 * "thread_cpu_s"} or {"error"}. The reading thread is the one that is busy; the process has the collector's beside it.
 *
 * The consumer has the settings that Apache Kafka's own ConsumerPerformance gives it.
 */
public class AssignedReader {
    private static final long WAIT_NS_MAX = 300_000_000_000L;

    public static void main(String[] ignored) throws Exception {
        ObjectMapper json = new ObjectMapper();
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        String line;
        while ((line = questions.readLine()) != null) {
            System.out.println(json.writeValueAsString(answer(json.readTree(line))));
            System.out.flush();
        }
    }

    private static Map<String, Object> answer(JsonNode question) {
        try {
            return read(question);
        } catch (RuntimeException error) {
            return Map.of("error", error.toString());
        }
    }

    private static Map<String, Object> read(JsonNode question) {
        List<TopicPartition> partitions = new ArrayList<>();
        for (int number = 0; number < question.get("partitions").asInt(); number++) {
            partitions.add(new TopicPartition(question.get("topic").asText(), number));
        }
        long wanted = question.get("records").asLong();
        long count = 0;
        long bytes = 0;
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings(question))) {
            consumer.partitionsFor(question.get("topic").asText());
            double processCpu = processCpuSeconds();
            double threadCpu = threadCpuSeconds();
            long begun = System.nanoTime();
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            while (count < wanted) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(100));
                for (ConsumerRecord<byte[], byte[]> record : records) {
                    bytes += record.value().length;
                }
                count += records.count();
                if (System.nanoTime() - begun > WAIT_NS_MAX) {
                    throw new IllegalStateException(count + " of " + wanted + " records came in time");
                }
            }
            double elapsed = (System.nanoTime() - begun) / 1e9;
            return Map.of(
                "records", count,
                "bytes", bytes,
                "elapsed_s", elapsed,
                "cpu_s", processCpuSeconds() - processCpu,
                "thread_cpu_s", threadCpuSeconds() - threadCpu);
        }
    }

    private static double processCpuSeconds() {
        return ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime() / 1e9;
    }

    private static double threadCpuSeconds() {
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() / 1e9;
    }

    private static Properties settings(JsonNode question) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", question.get("bootstrap").asText());
        settings.put("enable.auto.commit", "false");
        settings.put("receive.buffer.bytes", String.valueOf(2 * 1024 * 1024));
        settings.put("max.partition.fetch.bytes", String.valueOf(1024 * 1024));
        settings.put("check.crcs", "false");
        settings.put("key.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("value.deserializer", ByteArrayDeserializer.class.getName());
        return settings;
    }
}
