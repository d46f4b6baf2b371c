package admin_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/admin"
)

// A server shows its engine, and a table of its own.
func Example() {
	engine := &rondo.Engine{NumLoops: 1}
	defer engine.Close()
	rooms := admin.Section{Name: "Chat", Read: func(context.Context) ([]admin.Table, error) {
		return []admin.Table{{Name: "Rooms", Columns: []string{"room", "people"}, Rows: [][]any{{"lobby", 3}}}}, nil
	}}
	page := admin.New(engine, admin.Options{Name: "my chat", Sections: []admin.Section{rooms}})

	server := httptest.NewServer(http.StripPrefix("/admin", page)) // or package httpd's
	defer server.Close()
	answer, err := http.Get(server.URL + "/admin/vars")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	fmt.Println(answer.Status, strings.Contains(string(text), `"lobby"`), err)
	// Output:
	// 200 OK true <nil>
}
