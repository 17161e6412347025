import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** A producer or consumer of Apache Kafka's Java library; the package's __init__.py describes the commands. */
public class LabClient {
    private static final BlockingQueue<String> commands = new LinkedBlockingQueue<>();
    private static final String END = "end";

    static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    static String nameOf(Throwable error) {
        Throwable cause = error instanceof java.util.concurrent.ExecutionException ? error.getCause() : error;
        if (cause instanceof org.apache.kafka.common.errors.TimeoutException) {
            return "REQUEST_TIMED_OUT";
        }
        return Errors.forException(cause).name();
    }

    static void tried(Runnable action) {
        try {
            action.run();
            say("done");
        } catch (RuntimeException error) {
            say("refused " + nameOf(error));
        }
    }

    static void produce(String topic, Properties settings) throws InterruptedException {
        try (var producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            if (settings.containsKey("transactional.id")) {
                producer.initTransactions();
            }
            say("ready");
            for (String command = commands.take(); !command.equals(END); command = commands.take()) {
                String[] words = command.split(" ");
                switch (words[0]) {
                    case "send" -> send(producer, topic, words);
                    case "begin" -> tried(producer::beginTransaction);
                    case "commit" -> tried(producer::commitTransaction);
                    case "abort" -> tried(producer::abortTransaction);
                    default -> throw new IllegalArgumentException(command);
                }
            }
            producer.close(Duration.ZERO);
        }
    }

    static void send(KafkaProducer<byte[], byte[]> producer, String topic, String[] words) {
        String number = words[1];
        int size = Integer.parseInt(words[3]);
        byte[] value = (size > number.length() ? String.format("%-" + size + "s", number) : number)
                .getBytes(StandardCharsets.US_ASCII);
        try {
            producer.send(new ProducerRecord<>(topic, Integer.parseInt(words[2]), null, value), (metadata, error) ->
                    say(error == null ? "ok " + number : "failed " + number + " " + nameOf(error)));
        } catch (RuntimeException error) {
            say("failed " + number + " " + nameOf(error));
        }
    }

    static String of(Collection<TopicPartition> partitions) {
        return partitions.stream().map(each -> " " + each.partition()).collect(Collectors.joining());
    }

    static void consume(String topic, Properties settings) throws InterruptedException {
        var consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        consumer.subscribe(List.of(topic), new ConsumerRebalanceListener() {
            @Override
            public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                say("assigned" + of(partitions));
            }

            @Override
            public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                say("revoked" + of(partitions));
            }

            @Override
            public void onPartitionsLost(Collection<TopicPartition> partitions) {
                say("lost" + of(partitions));
            }
        });
        say("ready");
        boolean reads = true;
        while (true) {
            String command = reads ? commands.poll() : commands.poll(1, TimeUnit.DAYS);
            if (END.equals(command)) {
                return; // without leaving the group: as a process that ends
            }
            if ("commit".equals(command)) {
                tried(consumer::commitSync);
            } else if ("leave".equals(command)) {
                reads = false;
                tried(consumer::close);
            }
            if (!reads) {
                continue;
            }
            try {
                var seen = new StringBuilder();
                for (var record : consumer.poll(Duration.ofMillis(20))) {
                    seen.append(' ').append(new String(record.value(), StandardCharsets.US_ASCII).strip());
                }
                if (seen.length() > 0) {
                    say("seen" + seen);
                }
            } catch (RetriableException error) {
                continue;
            } catch (RuntimeException error) {
                say("error " + nameOf(error));
                reads = false;
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        var settings = new Properties();
        for (int i = 2; i < arguments.length; i++) {
            String[] pair = arguments[i].split("=", 2);
            settings.setProperty(pair[0], pair[1]);
        }
        var reader = new Thread(() -> {
            try (var lines = new BufferedReader(new InputStreamReader(System.in))) {
                for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                    commands.add(line);
                }
            } catch (java.io.IOException error) {
                // The lab has ended.
            }
            commands.add(END);
        });
        reader.setDaemon(true);
        reader.start();
        try {
            if (arguments[0].equals("producer")) {
                produce(arguments[1], settings);
            } else {
                consume(arguments[1], settings);
            }
        } catch (ConfigException error) {
            say("refused " + error.getMessage());
        }
        System.exit(0);
    }
}
