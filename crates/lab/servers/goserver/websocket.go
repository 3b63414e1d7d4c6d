package main

import (
	"bufio"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"strings"
)

// RFC 6455: section 1.3 for the key, section 5.2 for the frame, section 5.5 for the opcodes.
const (
	webSocketKey = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
	opClose      = 8
	opPing       = 9
	opPong       = 10
	largestFrame = 1 << 20
)

// echo upgrades to a WebSocket and sends every data frame back, until the client closes.
func echo(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Sec-WebSocket-Key")
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") || key == "" {
		w.Header().Set("Upgrade", "websocket")
		http.Error(w, "this page speaks WebSocket", http.StatusUpgradeRequired)
		return
	}
	connection, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer connection.Close()
	sum := sha1.Sum([]byte(key + webSocketKey))
	io.WriteString(buffered, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"+
		"Connection: Upgrade\r\nSec-WebSocket-Accept: "+
		base64.StdEncoding.EncodeToString(sum[:])+"\r\n\r\n")
	for buffered.Flush() == nil {
		first, body, err := readFrame(buffered.Reader)
		if err != nil {
			return
		}
		opcode := first & 15
		switch opcode {
		case opPong:
			continue
		case opPing:
			first = 0x80 | opPong
		}
		writeFrame(buffered.Writer, first, body)
		if opcode == opClose {
			buffered.Flush()
			return
		}
	}
}

// readFrame gives a frame's first byte (FIN and opcode) and its body without the mask.
func readFrame(from *bufio.Reader) (byte, []byte, error) {
	var head [2]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return 0, nil, err
	}
	if head[1]&0x80 == 0 {
		return 0, nil, errors.New("a client's frame without a mask")
	}
	length := uint64(head[1] & 127)
	var more [8]byte
	switch length {
	case 126:
		if _, err := io.ReadFull(from, more[:2]); err != nil {
			return 0, nil, err
		}
		length = uint64(binary.BigEndian.Uint16(more[:2]))
	case 127:
		if _, err := io.ReadFull(from, more[:]); err != nil {
			return 0, nil, err
		}
		length = binary.BigEndian.Uint64(more[:])
	}
	if length > largestFrame {
		return 0, nil, errors.New("a frame over 1 MiB")
	}
	var mask [4]byte
	if _, err := io.ReadFull(from, mask[:]); err != nil {
		return 0, nil, err
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(from, body); err != nil {
		return 0, nil, err
	}
	for i := range body {
		body[i] ^= mask[i%4]
	}
	return head[0], body, nil
}

func writeFrame(to *bufio.Writer, first byte, body []byte) {
	to.WriteByte(first)
	switch length := len(body); {
	case length < 126:
		to.WriteByte(byte(length))
	case length < 1<<16:
		to.WriteByte(126)
		to.Write(binary.BigEndian.AppendUint16(nil, uint16(length)))
	default:
		to.WriteByte(127)
		to.Write(binary.BigEndian.AppendUint64(nil, uint64(length)))
	}
	to.Write(body)
}
