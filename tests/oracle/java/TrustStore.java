import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;

/** Writes the certificates of a PEM file (first argument) into a trust store for Java (second argument). */
public class TrustStore {
    public static void main(String[] args) throws Exception {
        // Java opens its trust store without a password, with which a PKCS12 store would look empty.
        KeyStore store = KeyStore.getInstance("JKS");
        store.load(null, null);
        try (InputStream bundle = Files.newInputStream(Path.of(args[0]))) {
            int number = 0;
            for (Certificate certificate : CertificateFactory.getInstance("X.509").generateCertificates(bundle)) {
                store.setCertificateEntry("ca-" + number++, certificate);
            }
        }
        try (OutputStream out = Files.newOutputStream(Path.of(args[1]))) {
            store.store(out, "changeit".toCharArray());
        }
    }
}
