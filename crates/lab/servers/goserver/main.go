// A web server on Go's net/http with the lab's pages. As Go programs do by default (since Go 1.24),
// it listens with MPTCP.
//
//	/whoami /health /dsN/... /4k /64k ...  as every server of the lab
//	/upload          reads the body, answers its length and SHA-256
//	/chunked?size=N  the first N bytes of the lab's files (default 65536), chunked
//	/slow?for=T      a line every 100 ms for T (default 2s)
//	/echo            a WebSocket that echoes (websocket.go)
package main

import (
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"time"
)

const largestFile = "256m"

func main() {
	name := flag.String("name", "", "what /whoami says")
	listen := flag.String("listen", ":80", "address to listen on")
	files := flag.String("files", ".", "directory of the files to serve")
	access := flag.String("access-log", "", "file to write a line a request to")
	mptcp := flag.Bool("mptcp", true, "listen with MPTCP")
	flag.Parse()

	handler, err := logged(*access, pages(*name, *files))
	if err != nil {
		log.Fatal(err)
	}
	config := net.ListenConfig{}
	config.SetMultipathTCP(*mptcp)
	listener, err := config.Listen(context.Background(), "tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Handler: handler}
	ask := make(chan os.Signal, 1)
	signal.Notify(ask, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-ask
		server.Close()
	}()
	log.Printf("%s listens on %s, mptcp %v", *name, listener.Addr(), *mptcp)
	if err := server.Serve(listener); err != http.ErrServerClosed {
		log.Fatal(err)
	}
}

var placed = regexp.MustCompile(`^/ds[0-9]+/`)

func pages(name, files string) http.Handler {
	mux := http.NewServeMux()
	text := func(w http.ResponseWriter, format string, a ...any) {
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprintf(w, format, a...)
	}
	mux.HandleFunc("/whoami", func(w http.ResponseWriter, r *http.Request) { text(w, "%s\n", name) })
	mux.HandleFunc("/health", func(w http.ResponseWriter, r *http.Request) { text(w, "ok\n") })
	mux.HandleFunc("/upload", upload)
	mux.HandleFunc("/slow", slow)
	mux.HandleFunc("/echo", echo)
	mux.HandleFunc("/chunked", func(w http.ResponseWriter, r *http.Request) {
		chunked(w, r, filepath.Join(files, largestFile))
	})
	static := http.FileServer(http.Dir(files))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if placed.MatchString(r.URL.Path) {
			text(w, "%s %s\n", name, r.RequestURI)
			return
		}
		w.Header().Set("Content-Type", "application/octet-stream")
		static.ServeHTTP(w, r)
	})
	return mux
}

func upload(w http.ResponseWriter, r *http.Request) {
	sum := sha256.New()
	length, err := io.Copy(sum, r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	fmt.Fprintf(w, "%d %x\n", length, sum.Sum(nil))
}

func chunked(w http.ResponseWriter, r *http.Request, file string) {
	size := int64(64 << 10)
	if asked := r.FormValue("size"); asked != "" {
		var err error
		if size, err = strconv.ParseInt(asked, 10, 64); err != nil || size < 0 {
			http.Error(w, "size is a number of bytes", http.StatusBadRequest)
			return
		}
	}
	source, err := os.Open(file)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer source.Close()
	// A flush ends a chunk. 1000 does not divide the sizes asked for, so the last one is short.
	for left := size; left > 0; left -= 1000 {
		if _, err := io.CopyN(w, source, min64(left, 1000)); err != nil {
			return
		}
		http.NewResponseController(w).Flush()
	}
}

func slow(w http.ResponseWriter, r *http.Request) {
	length := 2 * time.Second
	if asked := r.FormValue("for"); asked != "" {
		var err error
		if length, err = time.ParseDuration(asked); err != nil {
			http.Error(w, "for is a duration such as 2s", http.StatusBadRequest)
			return
		}
	}
	begin := time.Now()
	for line := 1; time.Since(begin) < length; line++ {
		if _, err := fmt.Fprintf(w, "%d\n", line); err != nil {
			return
		}
		http.NewResponseController(w).Flush()
		time.Sleep(100 * time.Millisecond)
	}
}

// logged writes one line a request, in the same format as the lab's other servers, and like them
// leaves out /health.
func logged(path string, next http.Handler) (http.Handler, error) {
	if path == "" {
		return next, nil
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/health" {
			next.ServeHTTP(w, r)
			return
		}
		counted := &counter{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(counted, r)
		host, port, _ := net.SplitHostPort(r.RemoteAddr)
		fmt.Fprintf(file, "%s %s \"%s %s %s\" %d %d\n",
			host, port, r.Method, r.RequestURI, r.Proto, counted.status, counted.bytes)
	}), nil
}

type counter struct {
	http.ResponseWriter
	status int
	bytes  int64
}

func (c *counter) WriteHeader(status int) {
	c.status = status
	c.ResponseWriter.WriteHeader(status)
}

func (c *counter) Write(body []byte) (int, error) {
	n, err := c.ResponseWriter.Write(body)
	c.bytes += int64(n)
	return n, err
}

// ReadFrom keeps sendfile(2) in use for files.
func (c *counter) ReadFrom(source io.Reader) (int64, error) {
	n, err := io.Copy(c.ResponseWriter, source)
	c.bytes += n
	return n, err
}

// Unwrap lets http.ResponseController reach the connection.
func (c *counter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func min64(a, b int64) int64 {
	if a < b {
		return a
	}
	return b
}
