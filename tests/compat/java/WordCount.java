import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Produced;

/**
 * Kafka Streams' word count, told by JSON lines: start (settings, input, output), state, stop. Every update of a count
 * is written, because nothing is held back in a cache: what comes out says how often each input was counted.
 */
public class WordCount {
    public static void main(String[] ignored) throws Exception {
        ObjectMapper json = new ObjectMapper();
        PrintStream answers = new PrintStream(System.out, true, "UTF-8");
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        KafkaStreams streams = null;
        String line;
        while ((line = questions.readLine()) != null) {
            JsonNode question = json.readTree(line);
            switch (question.get("operation").asText()) {
                case "start":
                    streams = start(question);
                    break;
                case "stop":
                    streams.close(Duration.ofSeconds(30));
                    break;
                default:
            }
            answers.println("{\"result\": \"" + (streams == null ? "" : streams.state()) + "\"}");
        }
        System.exit(0);
    }

    private static KafkaStreams start(JsonNode question) {
        Properties settings = new Properties();
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.String().getClass());
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.String().getClass());
        question.get("settings").fields().forEachRemaining(f -> settings.put(f.getKey(), f.getValue().asText()));
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(question.get("input").asText())
            .flatMapValues(text -> Arrays.asList(text.split(" ")))
            .groupBy((key, word) -> word)
            .count()
            .toStream()
            .mapValues(String::valueOf)
            .to(question.get("output").asText(), Produced.with(Serdes.String(), Serdes.String()));
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.start();
        return streams;
    }
}
