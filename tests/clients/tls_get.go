// Asks for the names of a TLS service with Go's net/http, by HTTP/1.1 and by HTTP/2, over connections that are kept.
//
// usage: tls_get ADDRESS "NAME=SERVER[,SERVER] ..."
//
// Each request must be answered by one of the servers of its name, and all of a connection by the same one.
package main

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"slices"
	"strings"
)

var requests = []struct {
	path   string
	length int
}{{"/whoami", 4}, {"/64k", 64 << 10}, {"/whoami", 4}, {"/1m", 1 << 20}, {"/whoami", 4}}

func main() {
	log.SetFlags(0)
	address := os.Args[1]
	for _, major := range []int{1, 2} {
		client := newClient(address, major)
		for _, pair := range strings.Fields(os.Args[2]) {
			name, servers, _ := strings.Cut(pair, "=")
			visit(client, major, name, strings.Split(servers, ","))
		}
	}
}

// newClient returns a client that finds every name at the address, and speaks this version of HTTP.
func newClient(address string, major int) *http.Client {
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, address+":443")
		},
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
		ForceAttemptHTTP2: major == 2,
	}
	if major == 1 {
		transport.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	}
	return &http.Client{Transport: transport}
}

// visit sends all requests to one name over one connection.
func visit(client *http.Client, major int, name string, servers []string) {
	connections, answered := 0, servers
	trace := &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		if !got.Reused {
			connections++
		}
	}}
	for _, request := range requests {
		ctx := httptrace.WithClientTrace(context.Background(), trace)
		get, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+name+request.path, nil)
		check(name, err)
		response, err := client.Do(get)
		check(name, err)
		body, err := io.ReadAll(response.Body)
		check(name, err)
		response.Body.Close()
		by := response.Header.Get("X-Served-By")
		if response.StatusCode != 200 || len(body) != request.length || response.ProtoMajor != major {
			log.Fatalf("%s%s: %s, %d bytes, %s", name, request.path, response.Status, len(body), response.Proto)
		}
		if !slices.Contains(answered, by) {
			log.Fatalf("%s%s was answered by %s and not by %s", name, request.path, by, answered)
		}
		answered = []string{by}
	}
	if connections != 1 {
		log.Fatalf("%s: %d connections", name, connections)
	}
}

func check(name string, err error) {
	if err != nil {
		log.Fatalf("%s: %v", name, err)
	}
}
