import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import kafka.server.ConfigHelper;
import kafka.server.KafkaConfig;

import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.message.DescribeConfigsRequestData.DescribeConfigsResource;
import org.apache.kafka.common.message.DescribeConfigsResponseData.DescribeConfigsResourceResult;
import org.apache.kafka.common.message.DescribeConfigsResponseData.DescribeConfigsSynonym;
import org.apache.kafka.metadata.KafkaConfigSchema;
import org.apache.kafka.server.ConfigHelperUtils;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.storage.internals.log.LogConfig;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;

/**
 * Asks Apache Kafka's own code what it makes of settings: one JSON question a line in, one JSON answer a line out.
 * A question names what to "do" and carries the settings it needs: "static", "shared", "own", "topic", "planned".
 * An answer has either "error", the message of what was thrown, or the result.
 */
public class ProbeConfigs {
    private static final ObjectMapper JSON =
        new ObjectMapper().configure(JsonGenerator.Feature.ESCAPE_NON_ASCII, true);

    public static void main(String[] args) throws Exception {
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            JsonNode question = JSON.readTree(line);
            ObjectNode answer = JSON.createObjectNode();
            try {
                answer(question, answer);
            } catch (Throwable thrown) {
                answer.put("error", String.valueOf(thrown.getMessage()));
            }
            System.out.println(JSON.writeValueAsString(answer));
        }
    }

    private static void answer(JsonNode question, ObjectNode answer) throws Exception {
        switch (question.get("do").asText()) {
            case "value" -> value(question, answer);
            case "properties" -> {
                Properties read = new Properties();
                read.load(new java.io.StringReader(question.get("text").asText()));
                read.forEach((name, value) -> answer.put((String) name, (String) value));
            }
            case "start" -> KafkaConfig.fromProps(properties(question, "static"), false);
            case "describe broker" -> describeBroker(question, answer, "1");
            case "describe shared" -> describeBroker(question, answer, "");
            case "describe topic" -> describeTopic(question, answer);
            case "create topic" -> createTopic(question, answer);
            case "alter own" -> configured(question).dynamicConfig().validate(properties(question, "planned"), true);
            case "alter shared" -> configured(question).dynamicConfig().validate(properties(question, "planned"), false);
            case "alter topic" -> LogConfig.validate(
                strings(question, "topic"), strings(question, "planned"), configured(question).extractLogConfigMap(), false);
            default -> throw new IllegalArgumentException("unknown question " + question);
        }
    }

    private static void value(JsonNode question, ObjectNode answer) {
        ConfigDef definition = question.get("scope").asText().equals("topic")
            ? LogConfig.configDefCopy() : AbstractKafkaConfig.CONFIG_DEF;
        ConfigDef.ConfigKey key = definition.configKeys().get(question.get("name").asText());
        ConfigDef alone = new ConfigDef().define(key);
        Object parsed = alone.parse(Map.of(key.name, question.get("text").asText())).get(key.name);
        answer.put("value", key.type == ConfigDef.Type.PASSWORD ? "(hidden)" : ConfigDef.convertToString(parsed, key.type));
    }

    private static KafkaConfig configured(JsonNode question) {
        KafkaConfig config = KafkaConfig.fromProps(properties(question, "static"), false);
        config.dynamicConfig().initialize(scala.Option.empty());
        config.dynamicConfig().updateDefaultConfig(properties(question, "shared"), false);
        config.dynamicConfig().updateBrokerConfig(config.brokerId(), properties(question, "own"), false);
        return config;
    }

    private static void describeBroker(JsonNode question, ObjectNode answer, String name) {
        ConfigHelper helper = new ConfigHelper(null, configured(question), null);
        DescribeConfigsResource resource = new DescribeConfigsResource()
            .setResourceType(ConfigResource.Type.BROKER.id()).setResourceName(name).setConfigurationKeys(null);
        var resources = scala.jdk.javaapi.CollectionConverters.asScala(List.of(resource)).toList();
        entries(answer, helper.describeConfigs(resources, true, false).head().configs());
    }

    private static void describeTopic(JsonNode question, ObjectNode answer) {
        KafkaConfig config = configured(question);
        ConfigHelper helper = new ConfigHelper(null, config, null);
        Properties topic = properties(question, "topic");
        LogConfig log = LogConfig.fromProps(config.extractLogConfigMap(), topic);
        var resource = new DescribeConfigsResource().setConfigurationKeys(null);
        entries(answer, ConfigHelperUtils.createResponseConfig(resource, log,
            (name, value) -> helper.createTopicConfigEntry(log, topic, true, false, name, value)).configs());
    }

    private static void entries(ObjectNode answer, List<DescribeConfigsResourceResult> results) {
        for (DescribeConfigsResourceResult result : results) {
            ArrayNode entry = answer.putArray(result.name());
            entry.add(result.value()).add(result.configSource()).add(result.readOnly());
            entry.add(result.isSensitive()).add(result.configType());
            ArrayNode synonyms = entry.addArray();
            for (DescribeConfigsSynonym synonym : result.synonyms())
                synonyms.addArray().add(synonym.name()).add(synonym.value()).add(synonym.source());
        }
    }

    private static void createTopic(JsonNode question, ObjectNode answer) {
        KafkaConfigSchema schema = new KafkaConfigSchema(
            Map.of(ConfigResource.Type.BROKER, AbstractKafkaConfig.CONFIG_DEF,
                ConfigResource.Type.TOPIC, LogConfig.configDefCopy()),
            ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS);
        Map<String, ConfigEntry> resolved = schema.resolveEffectiveTopicConfigs(
            KafkaConfig.fromProps(properties(question, "static"), false).originals(),
            strings(question, "shared"), strings(question, "own"), strings(question, "topic"));
        for (ConfigEntry entry : resolved.values())
            answer.putArray(entry.name()).add(entry.value())
                .add(KafkaConfigSchema.translateConfigSource(entry.source()).id());
    }

    private static Map<String, String> strings(JsonNode question, String field) {
        Map<String, String> found = new HashMap<>();
        if (question.has(field))
            question.get(field).fields().forEachRemaining(pair -> found.put(pair.getKey(), pair.getValue().asText()));
        return found;
    }

    private static Properties properties(JsonNode question, String field) {
        Properties found = new Properties();
        found.putAll(strings(question, field));
        return found;
    }
}
