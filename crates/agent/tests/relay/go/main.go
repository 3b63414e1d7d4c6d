// Tells each client who it is. Go makes the listener an MPTCP one unless told otherwise
// (since 1.24), which is what makes this program worth testing against.
package main

import (
	"fmt"
	"log"
	"net"
)

func main() {
	listener, err := net.Listen("tcp4", ":80")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("listening")
	for {
		conn, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		fmt.Fprintf(conn, "%s\n", conn.RemoteAddr())
		conn.Close()
	}
}
