import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.server.config.ConfigSynonym;
import org.apache.kafka.server.config.DynamicBrokerConfig;
import org.apache.kafka.server.config.QuotaConfig;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.storage.internals.log.LogConfig;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * Prints what Apache Kafka itself says of every configuration key, one tab-separated line a key:
 * scope, name, type, importance, default, validator, update mode, sensitive, internal, synonyms.
 * A default of null is "(null)" and a missing one "(required)". A synonym carries what it makes of "1".
 */
public class DumpConfigs {
    public static void main(String[] args) throws Exception {
        Map<String, String> modes = DynamicBrokerConfig.dynamicConfigUpdateModes();
        dump("broker", AbstractKafkaConfig.CONFIG_DEF, modes);
        dump("dynamic", QuotaConfig.brokerQuotaConfigs(), modes);
        dump("topic", LogConfig.configDefCopy(), Map.of());
        dump("group", GroupConfig.CONFIG_DEF, Map.of());
    }

    private static void dump(String scope, ConfigDef definition, Map<String, String> modes) throws Exception {
        for (ConfigDef.ConfigKey key : new TreeMap<>(definition.configKeys()).values()) {
            System.out.println(String.join("\t",
                scope, key.name, key.type.name(), key.importance.name(), printedDefault(key),
                printedValidator(key.validator), modes.getOrDefault(key.name, "read-only"),
                String.valueOf(key.type.isSensitive()), String.valueOf(key.internalConfig),
                scope.equals("topic") ? synonyms(key.name)
                    : scope.equals("group") ? GroupConfig.brokerSynonym(key.name).orElse("") : ""));
        }
    }

    private static String printedDefault(ConfigDef.ConfigKey key) {
        if (!key.hasDefault()) return "(required)";
        String text = ConfigDef.convertToString(key.defaultValue, key.type);
        return text == null ? "(null)" : text;
    }

    private static String printedValidator(ConfigDef.Validator validator) throws Exception {
        if (validator == null) return "";
        String kind = validator.getClass().getSimpleName();
        return switch (kind) {
            case "Range" -> kind + " " + field(validator, "min") + " " + field(validator, "max");
            case "ValidString", "CaseInsensitiveValidString" -> kind + " " + sorted(field(validator, "validStrings"));
            case "ValidList" -> kind + " " + sorted(field(field(validator, "validString"), "validStrings"))
                + " empty=" + field(validator, "isEmptyAllowed") + " null=" + field(validator, "isNullAllowed");
            default -> kind + " " + validator;
        };
    }

    private static Object field(Object owner, String name) throws Exception {
        Field field = owner.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field.get(owner);
    }

    private static String sorted(Object strings) {
        List<String> found = new ArrayList<>();
        for (Object each : (Collection<?>) strings) found.add(each.toString());
        return String.join(",", new TreeSet<>(found));
    }

    private static String synonyms(String topicKey) {
        List<String> found = new ArrayList<>();
        for (ConfigSynonym synonym :
                ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS.getOrDefault(topicKey, List.of()))
            found.add(synonym.name() + "=" + synonym.converter().apply("1"));
        return String.join(",", found);
    }
}
