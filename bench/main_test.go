package main

import (
	"os"
	"testing"
)

// TestMain lets the test's executable be a server too, as the program is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		main()
		return
	}
	os.Exit(m.Run())
}
