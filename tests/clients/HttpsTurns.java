// Sends requests to three data servers in turn with java.net.http.HttpClient, over one connection with one TLS session.
//
// usage: java -Djdk.net.hosts.file=FILE HttpsTurns.java REQUESTS
//
// FILE says where www.example is, as /etc/hosts does.

import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.security.cert.X509Certificate;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.TrustManager;
import javax.net.ssl.X509ExtendedTrustManager;

public class HttpsTurns {
    public static void main(String[] arguments) throws Exception {
        var context = SSLContext.getInstance("TLS");
        context.init(null, new TrustManager[] {new Trusting()}, null);
        var client = HttpClient.newBuilder().sslContext(context).build();
        for (int turn = 0; turn < Integer.parseInt(arguments[0]); turn++) {
            String server = "ds" + (turn % 3 + 1);
            String path = "/" + server + "/java-" + turn;
            var request = HttpRequest.newBuilder(URI.create("https://www.example" + path)).build();
            var response = client.send(request, BodyHandlers.ofString());
            if (response.statusCode() != 200 || !response.body().equals(server + " " + path + "\n")) {
                throw new AssertionError(response + ": " + response.body());
            }
        }
        System.exit(0); // HttpClient has no close() before Java 21, and its thread goes on.
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
