// Package closing connects netfd.Close with package goev, which imports netfd.
package closing

// Hook is called with a descriptor that is about to be closed. Package goev sets it.
var Hook = func(fd int) {}
