// A client on goxdr: PORT VERSION URL; the body goes to standard output.
package main

import (
	"context"
	"fmt"
	"net"
	"os"

	"github.com/xdrpp/goxdr/rpc"
)

func main() {
	conn, err := net.Dial("tcp", "127.0.0.1:"+os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer func() {
		if e := recover(); e != nil {
			fmt.Fprintln(os.Stderr, e)
			os.Exit(1)
		}
	}()
	ctx := context.Background()
	transport := rpc.NewStreamTransport(conn)
	transport.MaxMsgSize = 32 << 20
	driver := rpc.NewDriver(ctx, transport)
	go driver.Go()
	if os.Args[2] == "1" {
		client := PROXY_FETCHVERS_Client{Send: driver, Ctx: ctx}
		os.Stdout.WriteString(client.PROXY_FETCH(os.Args[3]).WebPageContents)
		return
	}
	client := PROXY_VERS2_Client{Send: driver, Ctx: ctx}
	result := client.PROXY_GET(Proxy_fetch_args{Url: []byte(os.Args[3])})
	if result.Status != PROXY_OK {
		fmt.Fprintln(os.Stderr, result.Status, *result.Sentence())
		os.Exit(1)
	}
	page := result.Page()
	fmt.Fprintln(os.Stderr, "http", page.Http_status, page.Source)
	stats := client.PROXY_STAT()
	for _, fact := range stats.Facts {
		if fact.Name == "policy" {
			fmt.Fprintln(os.Stderr, "policy", fact.Text)
		}
	}
	os.Stdout.Write(page.Body)
	for offset := uint64(len(page.Body)); page.Rest != nil; {
		read := client.PROXY_READ(Proxy_read_args{
			Object: page.Rest.Object, Offset: offset, Count: PROXY_MAX_PIECE})
		if read.Status != PROXY_OK {
			fmt.Fprintln(os.Stderr, read.Status, *read.Sentence())
			os.Exit(1)
		}
		piece := read.Piece()
		os.Stdout.Write(piece.Bytes)
		offset += uint64(len(piece.Bytes))
		if piece.Ending != nil {
			page.Rest = nil
		}
	}
}
