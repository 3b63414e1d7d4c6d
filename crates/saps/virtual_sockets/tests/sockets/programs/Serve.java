import com.sun.net.httpserver.HttpServer;
import java.io.BufferedOutputStream;
import java.io.OutputStream;
import java.net.InetSocketAddress;

/** The JDK's own HTTP server, as it comes. */
class Serve {
    public static void main(String[] arguments) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress(8000), 0);
        server.createContext("/who", exchange -> {
            byte[] answer = (exchange.getRemoteAddress() + " " + exchange.getLocalAddress() + "\n").getBytes();
            exchange.sendResponseHeaders(200, answer.length);
            try (OutputStream body = exchange.getResponseBody()) {
                body.write(answer);
            }
        });
        server.createContext("/bytes/", exchange -> {
            int count = Integer.parseInt(exchange.getRequestURI().getPath().substring("/bytes/".length()));
            exchange.sendResponseHeaders(200, count == 0 ? -1 : count);
            try (OutputStream body = new BufferedOutputStream(exchange.getResponseBody())) {
                for (int i = 0; i < count; i++) {
                    body.write((int) (i * 2654435761L >>> 24));
                }
            }
        });
        server.start();
        System.out.println("listens");
    }
}
