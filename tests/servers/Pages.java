import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.FileWriter;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.DigestInputStream;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.concurrent.Executors;

/**
 * The web server of the JDK with the lab's pages: /whoami, the files, and /upload, which answers with the length
 * and the SHA-256 of the body. It logs as the lab's other servers do.
 *
 * usage: java Pages.java PORT NAME FILES ACCESS-LOG
 */
public class Pages {
    private static final int BACKLOG = 4096;
    /** The length that means "no body" to this server. It takes 0 for "of unknown length". */
    private static final long NO_BODY = -1;

    private final String name;
    private final Path files;
    private final FileWriter log;

    private Pages(String name, Path files, FileWriter log) {
        this.name = name;
        this.files = files;
        this.log = log;
    }

    public static void main(String[] words) throws IOException {
        Pages pages = new Pages(words[1], Path.of(words[2]), new FileWriter(words[3], true));
        HttpServer server = HttpServer.create(new InetSocketAddress(Integer.parseInt(words[0])), BACKLOG);
        server.createContext("/", pages::answer);
        server.setExecutor(Executors.newCachedThreadPool());
        server.start();
    }

    private void answer(HttpExchange exchange) throws IOException {
        long bytes = 0;
        int status = 200;
        String path = exchange.getRequestURI().getPath();
        Path file = files.resolve(path.substring(1)).normalize();
        try (exchange) {
            if (path.equals("/whoami")) {
                bytes = text(exchange, name + "\n");
            } else if (path.equals("/upload")) {
                bytes = text(exchange, received(exchange.getRequestBody()));
            } else if (file.startsWith(files) && Files.isRegularFile(file)) {
                bytes = page(exchange, file);
            } else {
                status = 404;
                exchange.sendResponseHeaders(status, NO_BODY);
            }
        }
        note(exchange, status, bytes);
    }

    private static long text(HttpExchange exchange, String text) throws IOException {
        byte[] body = text.getBytes();
        exchange.getResponseHeaders().set("Content-Type", "text/plain");
        exchange.sendResponseHeaders(200, body.length);
        exchange.getResponseBody().write(body);
        return body.length;
    }

    private static long page(HttpExchange exchange, Path file) throws IOException {
        long size = Files.size(file);
        exchange.getResponseHeaders().set("Content-Type", "application/octet-stream");
        exchange.sendResponseHeaders(200, size == 0 ? NO_BODY : size);
        if (size > 0) {
            Files.copy(file, exchange.getResponseBody());
        }
        return size;
    }

    private static String received(InputStream body) throws IOException {
        try {
            DigestInputStream digested = new DigestInputStream(body, MessageDigest.getInstance("SHA-256"));
            long length = digested.transferTo(OutputStream.nullOutputStream());
            String sum = HexFormat.of().formatHex(digested.getMessageDigest().digest());
            return length + " " + sum + "\n";
        } catch (java.security.NoSuchAlgorithmException missing) {
            throw new IOException(missing);
        }
    }

    private void note(HttpExchange exchange, int status, long bytes) throws IOException {
        InetSocketAddress client = exchange.getRemoteAddress();
        String line = String.format("%s %d \"%s %s %s\" %d %d\n",
            client.getAddress().getHostAddress(), client.getPort(), exchange.getRequestMethod(),
            exchange.getRequestURI(), exchange.getProtocol(), status, bytes);
        synchronized (log) {
            log.write(line);
            log.flush();
        }
    }
}
