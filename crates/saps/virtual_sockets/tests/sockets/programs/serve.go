// An HTTP server of the standard library, as it comes.
package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
)

func main() {
	http.HandleFunc("/who", func(w http.ResponseWriter, r *http.Request) {
		local := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		fmt.Fprintln(w, r.RemoteAddr, local)
	})
	http.HandleFunc("/bytes/", func(w http.ResponseWriter, r *http.Request) {
		count, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/bytes/"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Length", strconv.Itoa(count))
		out := bufio.NewWriter(w)
		for i := 0; i < count; i++ {
			out.WriteByte(byte(uint32(i) * 2654435761 >> 24))
		}
		out.Flush()
	})
	http.HandleFunc("/upgrade", func(w http.ResponseWriter, r *http.Request) {
		connection, stream, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer connection.Close()
		stream.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		stream.WriteString("unasked\n")
		stream.Flush()
		for {
			line, err := stream.ReadString('\n')
			if err != nil {
				return
			}
			stream.WriteString(line)
			stream.Flush()
		}
	})
	// Newer versions of Go do this by default.
	var config net.ListenConfig
	config.SetMultipathTCP(true)
	listener, err := config.Listen(context.Background(), "tcp", ":8000")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("listens", listener.Addr())
	http.Serve(listener, nil)
}
