// Asks for the names of a TLS service with java.net.http.HttpClient, by HTTP/1.1 and by HTTP/2.
//
// usage: java -Djdk.net.hosts.file=FILE TlsGet.java "NAME=SERVER[,SERVER] ..."
//
// FILE says where the names are, as /etc/hosts does. Each request must be answered by one of the servers of its name,
// and all of one version of HTTP by the same one, because the client keeps its connection.

import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.security.cert.X509Certificate;
import java.util.List;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.TrustManager;
import javax.net.ssl.X509ExtendedTrustManager;

public class TlsGet {
    record Page(String path, int length) {}

    static final List<Page> PAGES = List.of(
        new Page("/whoami", 4), new Page("/64k", 64 << 10), new Page("/whoami", 4), new Page("/1m", 1 << 20),
        new Page("/whoami", 4));

    public static void main(String[] arguments) throws Exception {
        var context = SSLContext.getInstance("TLS");
        context.init(null, new TrustManager[] {new Trusting()}, null);
        for (var version : HttpClient.Version.values()) {
            var client = HttpClient.newBuilder().sslContext(context).version(version).build();
            for (String pair : arguments[0].split(" ")) {
                String[] parts = pair.split("=");
                visit(client, version, parts[0], List.of(parts[1].split(",")));
            }
        }
        System.exit(0); // HttpClient has no close() before Java 21, and its thread goes on.
    }

    static void visit(HttpClient client, HttpClient.Version version, String name, List<String> servers)
        throws Exception {
        String first = null;
        for (Page page : PAGES) {
            var request = HttpRequest.newBuilder(URI.create("https://" + name + page.path())).build();
            var response = client.send(request, BodyHandlers.ofByteArray());
            String by = response.headers().firstValue("X-Served-By").orElse("nobody");
            first = first == null ? by : first;
            if (response.statusCode() != 200 || response.body().length != page.length()
                || response.version() != version || !by.equals(first) || !servers.contains(by)) {
                throw new AssertionError(response + " from " + by + ", " + response.body().length + " bytes, "
                    + response.version());
            }
        }
    }

    /** Trusts each certificate, whatever name it has. */
    static class Trusting extends X509ExtendedTrustManager {
        public void checkClientTrusted(X509Certificate[] chain, String kind) {}
        public void checkClientTrusted(X509Certificate[] chain, String kind, Socket socket) {}
        public void checkClientTrusted(X509Certificate[] chain, String kind, SSLEngine engine) {}
        public void checkServerTrusted(X509Certificate[] chain, String kind) {}
        public void checkServerTrusted(X509Certificate[] chain, String kind, Socket socket) {}
        public void checkServerTrusted(X509Certificate[] chain, String kind, SSLEngine engine) {}
        public X509Certificate[] getAcceptedIssuers() {
            return new X509Certificate[0];
        }
    }
}
