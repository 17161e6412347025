import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.DescribeClusterResult;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicCollection;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * The Java clients for tests in Python: each line of standard input is an operation with its arguments, each
 * answer {"result": ...} or {"error": {"code", "message"}} with Kafka's error code. Bytes travel as base64.
 */
public class Clients {
    /** The member of a group between two questions; there is one at a time. */
    private static KafkaConsumer<byte[], byte[]> member;

    private final JsonNode question;
    private final String topic;
    private final Duration timeout;

    private Clients(JsonNode question) {
        this.question = question;
        this.topic = question.path("topic").asText();
        this.timeout = Duration.ofMillis(question.get("timeout_ms").asLong());
    }

    public static void main(String[] ignored) throws IOException {
        ObjectMapper json = new ObjectMapper();
        PrintStream answers = new PrintStream(System.out, true, "UTF-8");
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        String line;
        while ((line = questions.readLine()) != null) {
            Map<String, Object> answer = new HashMap<>();
            try {
                answer.put("result", new Clients(json.readTree(line)).answer());
            } catch (Exception thrown) {
                Throwable cause = thrown instanceof ExecutionException ? thrown.getCause() : thrown;
                answer.put("error", Map.of("code", errorCode(cause), "message", cause.toString()));
            }
            answers.println(json.writeValueAsString(answer));
        }
    }

    private static int errorCode(Throwable cause) {
        // The consumer's exception is not the one that belongs to the protocol's error.
        return cause instanceof OffsetOutOfRangeException
            ? Errors.OFFSET_OUT_OF_RANGE.code() : Errors.forException(cause).code();
    }

    private Object answer() throws Exception {
        String operation = question.get("operation").asText();
        switch (operation) {
            case "write": return write();
            case "transact": return transact();
            case "read": return read();
            case "read_partitions": return readPartitions();
            case "read_in_group": return readInGroup();
            case "begin_in_group": return beginInGroup();
            case "commit_in_group": return commitInGroup();
            case "beginning_offsets": return offsets(true);
            case "end_offsets": return offsets(false);
            case "offsets_for_times": return offsetsForTimes();
            default:
        }
        try (Admin admin = Admin.create(settings())) {
            switch (operation) {
                case "create_topic": return createTopic(admin);
                case "delete_topic": return done(admin.deleteTopics(List.of(topic)).all());
                case "delete_topic_by_id": return done(admin.deleteTopics(byId()).all());
                case "list_topics": return admin.listTopics().names().get();
                case "describe_topic": return describeTopic(admin);
                case "describe_topic_by_id":
                    return topicToJson(admin.describeTopics(byId()).allTopicIds().get().values().iterator().next());
                case "create_partitions":
                    return done(admin.createPartitions(
                        Map.of(topic, NewPartitions.increaseTo(question.get("total").asInt()))).all());
                case "describe_configs": return describeConfigs(admin);
                case "alter_configs": return alterConfigs(admin, AlterConfigOp.OpType.SET);
                case "reset_configs": return alterConfigs(admin, AlterConfigOp.OpType.DELETE);
                case "append_configs": return alterConfigs(admin, AlterConfigOp.OpType.APPEND);
                case "delete_records": return deleteRecords(admin);
                case "list_max_timestamp": return listMaxTimestamp(admin);
                case "describe_producers": return describeProducers(admin);
                case "describe_log_dirs": return describeLogDirs(admin);
                case "describe_cluster": return describeCluster(admin);
                default: throw new IllegalArgumentException("no operation " + operation);
            }
        }
    }

    private Object write() throws Exception {
        Integer partition = question.get("partition").isNull() ? null : question.get("partition").asInt();
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer =
                 new KafkaProducer<>(settings(), new ByteArraySerializer(), new ByteArraySerializer())) {
            for (JsonNode record : question.get("records")) {
                Long timestamp = record.get("timestamp_ms").isNull() ? null : record.get("timestamp_ms").asLong();
                List<Header> headers = new ArrayList<>();
                for (JsonNode header : record.get("headers")) {
                    headers.add(new RecordHeader(header.get(0).asText(), bytes(header.get(1))));
                }
                sent.add(producer.send(new ProducerRecord<>(
                    topic, partition, timestamp, bytes(record.get("key")), bytes(record.get("value")), headers)));
            }
            producer.flush();
        }
        List<Object> written = new ArrayList<>();
        for (Future<RecordMetadata> each : sent) {
            RecordMetadata metadata = each.get();
            written.add(Map.of("partition", metadata.partition(), "offset", metadata.offset()));
        }
        return written;
    }

    /** One transaction after the other, each with its value for every partition and an offset of a group. */
    private Object transact() throws Exception {
        try (KafkaProducer<byte[], byte[]> producer =
                 new KafkaProducer<>(settings(), new ByteArraySerializer(), new ByteArraySerializer())) {
            producer.initTransactions();
            for (JsonNode transaction : question.get("transactions")) {
                producer.beginTransaction();
                byte[] value = transaction.get("value").asText().getBytes("UTF-8");
                for (TopicPartition place : places()) {
                    producer.send(new ProducerRecord<>(place.topic(), place.partition(), null, value));
                }
                OffsetAndMetadata offset = new OffsetAndMetadata(transaction.get("offset").asLong());
                producer.sendOffsetsToTransaction(
                    Map.of(places().get(0), offset), new ConsumerGroupMetadata(question.get("group").asText()));
                if (transaction.get("commit").asBoolean()) {
                    producer.commitTransaction();
                } else {
                    producer.abortTransaction();
                }
            }
        }
        return null;
    }

    private Object read() {
        TopicPartition place = new TopicPartition(topic, question.get("partition").asInt());
        int count = question.get("count").asInt();
        long deadline = System.nanoTime() + timeout.toNanos();
        List<Object> read = new ArrayList<>();
        try (KafkaConsumer<byte[], byte[]> consumer = consumer()) {
            consumer.assign(List.of(place));
            consumer.seek(place, question.get("offset").asLong());
            while (read.size() < count && System.nanoTime() < deadline) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(500))) {
                    if (read.size() < count) {
                        read.add(recordToJson(record));
                    }
                }
            }
        }
        return read;
    }

    /** Read all partitions from their beginning with one consumer until `count` records came, by partition. */
    private Object readPartitions() {
        int count = question.get("count").asInt();
        long deadline = System.nanoTime() + timeout.toNanos();
        Map<Integer, List<Object>> read = new TreeMap<>();
        try (KafkaConsumer<byte[], byte[]> consumer = consumer()) {
            consumer.assign(places());
            consumer.seekToBeginning(places());
            while (count > 0 && System.nanoTime() < deadline) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(500))) {
                    read.computeIfAbsent(record.partition(), ignored -> new ArrayList<>()).add(recordToJson(record));
                    count--;
                }
            }
        }
        return read;
    }

    /** How many records the only member of a group reads, and commits, until `count` came. */
    private Object readInGroup() {
        int count = 0;
        long deadline = System.nanoTime() + timeout.toNanos();
        try (KafkaConsumer<byte[], byte[]> consumer = consumer()) {
            consumer.subscribe(List.of(topic));
            while (count < question.get("count").asInt() && System.nanoTime() < deadline) {
                count += consumer.poll(Duration.ofMillis(500)).count();
            }
            consumer.commitSync(timeout);
        }
        return count;
    }

    /** Reads a record as a member that stays one until it commits. */
    private Object beginInGroup() {
        member = consumer();
        member.subscribe(List.of(topic));
        long deadline = System.nanoTime() + timeout.toNanos();
        int count = 0;
        while (count == 0 && System.nanoTime() < deadline) {
            count = member.poll(Duration.ofMillis(500)).count();
        }
        return count;
    }

    private Object commitInGroup() {
        try (KafkaConsumer<byte[], byte[]> ended = member) {
            ended.commitSync();
        }
        return true;
    }

    private Object offsets(boolean beginning) {
        List<TopicPartition> places = places();
        try (KafkaConsumer<byte[], byte[]> consumer = consumer()) {
            return byPartition(
                beginning ? consumer.beginningOffsets(places, timeout) : consumer.endOffsets(places, timeout));
        }
    }

    private Object offsetsForTimes() {
        Map<TopicPartition, Long> asked = new HashMap<>();
        question.get("timestamps_ms").fields().forEachRemaining(each ->
            asked.put(new TopicPartition(topic, Integer.parseInt(each.getKey())), each.getValue().asLong()));
        Map<TopicPartition, Long> found = new HashMap<>();
        try (KafkaConsumer<byte[], byte[]> consumer = consumer()) {
            for (Map.Entry<TopicPartition, OffsetAndTimestamp> each :
                    consumer.offsetsForTimes(asked, timeout).entrySet()) {
                found.put(each.getKey(), each.getValue() == null ? null : each.getValue().offset());
            }
        }
        return byPartition(found);
    }

    private Object createTopic(Admin admin) throws Exception {
        NewTopic topicToCreate = new NewTopic(
            topic,
            question.get("partitions").asInt(),
            (short) question.get("replication_factor").asInt());
        return done(admin.createTopics(List.of(topicToCreate.configs(strings("configs")))).all());
    }

    private Object describeTopic(Admin admin) throws Exception {
        return topicToJson(admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic));
    }

    private Object describeConfigs(Admin admin) throws Exception {
        Map<String, Object> described = new TreeMap<>();
        for (ConfigEntry entry : admin.describeConfigs(List.of(resource())).all().get().get(resource()).entries()) {
            Map<String, Object> fields = new HashMap<>();
            fields.put("value", entry.value());
            fields.put("source", entry.source().name());
            fields.put("type", entry.type().name());
            fields.put("read_only", entry.isReadOnly());
            fields.put("sensitive", entry.isSensitive());
            described.put(entry.name(), fields);
        }
        return described;
    }

    private Object alterConfigs(Admin admin, AlterConfigOp.OpType operation) throws Exception {
        Collection<AlterConfigOp> changes = new ArrayList<>();
        strings("configs").forEach((name, value) ->
            changes.add(new AlterConfigOp(new ConfigEntry(name, value), operation)));
        return done(admin.incrementalAlterConfigs(Map.of(resource(), changes)).all());
    }

    private Object deleteRecords(Admin admin) throws Exception {
        Map<TopicPartition, RecordsToDelete> asked = new HashMap<>();
        question.get("before_offsets").fields().forEachRemaining(each -> asked.put(
            new TopicPartition(topic, Integer.parseInt(each.getKey())),
            RecordsToDelete.beforeOffset(each.getValue().asLong())));
        Map<TopicPartition, Long> answers = new HashMap<>();
        for (var each : admin.deleteRecords(asked).lowWatermarks().entrySet()) {
            answers.put(each.getKey(), each.getValue().get().lowWatermark());
        }
        return byPartition(answers);
    }

    private Object listMaxTimestamp(Admin admin) throws Exception {
        TopicPartition place = new TopicPartition(topic, question.get("partition").asInt());
        ListOffsetsResultInfo info =
            admin.listOffsets(Map.of(place, OffsetSpec.maxTimestamp())).partitionResult(place).get();
        return Map.of("offset", info.offset(), "timestamp_ms", info.timestamp());
    }

    private Object describeProducers(Admin admin) throws Exception {
        TopicPartition place = new TopicPartition(topic, question.get("partition").asInt());
        List<Object> described = new ArrayList<>();
        for (ProducerState state :
                admin.describeProducers(List.of(place)).partitionResult(place).get().activeProducers()) {
            described.add(Map.of(
                "producer_id", state.producerId(),
                "producer_epoch", state.producerEpoch(),
                "last_sequence", state.lastSequence()));
        }
        return described;
    }

    private Object describeLogDirs(Admin admin) throws Exception {
        Map<String, Object> sizes = new HashMap<>();
        int broker = question.get("broker").asInt();
        for (var directory : admin.describeLogDirs(List.of(broker)).allDescriptions().get().get(broker).values()) {
            directory.replicaInfos().forEach((place, info) -> sizes.put(place.toString(), info.size()));
        }
        return sizes;
    }

    private Object describeCluster(Admin admin) throws Exception {
        DescribeClusterResult described = admin.describeCluster();
        Map<String, String> brokers = new HashMap<>();
        described.nodes().get().forEach(node -> brokers.put(node.idString(), node.host() + ":" + node.port()));
        return Map.of(
            "cluster_id", described.clusterId().get(),
            "controller", described.controller().get().id(),
            "brokers", brokers);
    }

    private KafkaConsumer<byte[], byte[]> consumer() {
        return new KafkaConsumer<>(settings(), new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private Map<String, Object> settings() {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", question.get("bootstrap").asText());
        if (question.get("operation").asText().startsWith("read")) {
            settings.put("auto.offset.reset", "none");
        }
        settings.putAll(strings("settings"));
        return settings;
    }

    private TopicCollection byId() {
        return TopicCollection.ofTopicIds(List.of(Uuid.fromString(question.get("topic_id").asText())));
    }

    private List<TopicPartition> places() {
        List<TopicPartition> places = new ArrayList<>();
        question.get("partitions").forEach(each -> places.add(new TopicPartition(topic, each.asInt())));
        return places;
    }

    private ConfigResource resource() {
        return new ConfigResource(
            ConfigResource.Type.valueOf(question.get("kind").asText()), question.get("name").asText());
    }

    private Map<String, String> strings(String field) {
        Map<String, String> strings = new LinkedHashMap<>();
        question.path(field).fields().forEachRemaining(each ->
            strings.put(each.getKey(), each.getValue().isNull() ? null : each.getValue().asText()));
        return strings;
    }

    private static Object done(Future<?> future) throws Exception {
        future.get();
        return true;
    }

    private static byte[] bytes(JsonNode base64) throws IOException {
        return base64.isNull() ? null : base64.binaryValue();
    }

    private static Map<Integer, Long> byPartition(Map<TopicPartition, Long> answers) {
        Map<Integer, Long> byPartition = new HashMap<>();
        answers.forEach((place, answer) -> byPartition.put(place.partition(), answer));
        return byPartition;
    }

    private static Object topicToJson(TopicDescription described) {
        List<Object> partitions = new ArrayList<>();
        for (TopicPartitionInfo info : described.partitions()) {
            partitions.add(Map.of(
                "partition", info.partition(),
                "leader", Optional.ofNullable(info.leader()).map(Node::id).orElse(-1),
                "replicas", info.replicas().stream().map(Node::id).toList(),
                "in_sync", info.isr().stream().map(Node::id).toList()));
        }
        return Map.of(
            "topic", described.name(), "topic_id", described.topicId().toString(), "partitions", partitions);
    }

    private static Object recordToJson(ConsumerRecord<byte[], byte[]> record) {
        List<Object> headers = new ArrayList<>();
        for (Header header : record.headers()) {
            List<Object> pair = new ArrayList<>();
            pair.add(header.key());
            pair.add(header.value());
            headers.add(pair);
        }
        Map<String, Object> fields = new HashMap<>();
        fields.put("offset", record.offset());
        fields.put("timestamp_ms", record.timestamp());
        fields.put("key", record.key());
        fields.put("value", record.value());
        fields.put("headers", headers);
        return fields;
    }
}
