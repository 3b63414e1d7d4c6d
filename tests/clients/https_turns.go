// Sends requests to three data servers in turn with Go's net/http, over one connection with one TLS session.
//
// usage: https_turns ADDRESS REQUESTS
package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"strconv"
)

func main() {
	log.SetFlags(0)
	address := os.Args[1]
	requests, err := strconv.Atoi(os.Args[2])
	check(err)
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, address+":443")
		},
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
		ForceAttemptHTTP2: true, // it offers HTTP/2, and is content with HTTP/1.1
	}}
	connections := 0
	ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		if !got.Reused {
			connections++
		}
	}})
	for turn := range requests {
		server := fmt.Sprintf("ds%d", turn%3+1)
		path := fmt.Sprintf("/%s/go-%d", server, turn)
		get, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://www.example"+path, nil)
		check(err)
		response, err := client.Do(get)
		check(err)
		body, err := io.ReadAll(response.Body)
		check(err)
		response.Body.Close()
		if response.StatusCode != 200 || string(body) != server+" "+path+"\n" {
			log.Fatalf("%s: %s %q", path, response.Status, body)
		}
	}
	if connections != 1 {
		log.Fatalf("%d connections", connections)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
