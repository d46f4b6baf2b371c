package httpd_test

import (
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/httpd"
)

func ExampleServe() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /hello/{name}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "Hello, %s!", r.PathValue("name"))
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	srv := &http.Server{Handler: mux}
	go httpd.Serve(srv, ln)
	defer srv.Close()

	answer, err := http.Get("http://" + ln.Addr().String() + "/hello/loop")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer http.DefaultClient.CloseIdleConnections()
	body, _ := io.ReadAll(answer.Body)
	answer.Body.Close()
	fmt.Println(answer.Status, string(body))
	// Output: 200 OK Hello, loop!
}

// A handler that does not block runs on the loop. The engine may serve other protocols too.
func ExampleServer() {
	s := httpd.Server{HTTP: &http.Server{
		Handler: httpd.OnLoop(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "from the loop")
		})),
	}}
	var engine rondo.Engine
	defer engine.Close()
	ln, err := engine.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, s.Open)
	if err != nil {
		fmt.Println(err)
		return
	}
	answer, err := http.Get("http://" + ln.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer http.DefaultClient.CloseIdleConnections()
	body, _ := io.ReadAll(answer.Body)
	answer.Body.Close()
	fmt.Println(string(body))
	// Output: from the loop
}
