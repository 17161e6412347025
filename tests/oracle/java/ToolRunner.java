import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs the command line tools of Apache Kafka one after another in one JVM: each line of standard input is
 * {"main": class, "args": [...], "stdin": text}, each answer {"exit_code", "stdout", "stderr"}.
 *
 * The tools end with Kafka's own Exit, which can be replaced; here it becomes an error that unwinds the tool.
 * A tool that catches everything may go on after it, so the first exit code counts, and what is printed after
 * it is dropped: a real exit would have ended the tool there.
 */
public class ToolRunner {
    private static final class Exited extends Error {
        Exited() {
            super("exit", null, false, false);
        }
    }

    /** Scala's Console remembers the stream it saw first, so the stream stays and its target changes. */
    private static final class Redirected extends OutputStream {
        private OutputStream target = OutputStream.nullOutputStream();

        @Override
        public synchronized void write(int b) throws IOException {
            target.write(b);
        }

        @Override
        public synchronized void write(byte[] bytes, int from, int count) throws IOException {
            target.write(bytes, from, count);
        }

        synchronized void to(OutputStream newTarget) {
            target = newTarget;
        }
    }

    private static final Redirected OUT = new Redirected();
    private static final Redirected ERR = new Redirected();
    private static Integer exitCode;

    public static void main(String[] ignored) throws Exception {
        PrintStream answers = new PrintStream(System.out, false, "UTF-8");
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        System.setOut(new PrintStream(OUT, true, "UTF-8"));
        System.setErr(new PrintStream(ERR, true, "UTF-8"));
        Exit.setExitProcedure(ToolRunner::exited);
        Exit.setHaltProcedure(ToolRunner::exited);
        Exit.setShutdownHookAdder((name, hook) -> { });

        ObjectMapper json = new ObjectMapper();
        String line;
        while ((line = questions.readLine()) != null) {
            JsonNode question = json.readTree(line);
            ByteArrayOutputStream stdout = new ByteArrayOutputStream();
            ByteArrayOutputStream stderr = new ByteArrayOutputStream();
            OUT.to(stdout);
            ERR.to(stderr);
            System.setIn(new ByteArrayInputStream(question.get("stdin").asText().getBytes("UTF-8")));
            int code = run(question);
            System.out.flush();
            System.err.flush();
            answers.println(json.writeValueAsString(Map.of(
                "exit_code", code, "stdout", stdout.toString("UTF-8"), "stderr", stderr.toString("UTF-8"))));
            answers.flush();
        }
    }

    private static void exited(int code, String message) {
        if (exitCode == null) {
            exitCode = code;
            System.out.flush();
            System.err.flush();
            OUT.to(OutputStream.nullOutputStream());
            ERR.to(OutputStream.nullOutputStream());
        }
        throw new Exited();
    }

    private static int run(JsonNode question) throws Exception {
        exitCode = null;
        List<String> args = new ArrayList<>();
        question.get("args").forEach(arg -> args.add(arg.asText()));
        try {
            Class.forName(question.get("main").asText())
                .getMethod("main", String[].class)
                .invoke(null, (Object) args.toArray(new String[0]));
        } catch (InvocationTargetException thrown) {
            if (!(thrown.getCause() instanceof Exited)) {
                thrown.getCause().printStackTrace();
                return exitCode == null ? 1 : exitCode;
            }
        }
        return exitCode == null ? 0 : exitCode;
    }
}
