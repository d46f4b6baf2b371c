// Package sys is where rondo meets the operating system: listening sockets
// with their options, and non-blocking calls on descriptors that cost as little
// as the system allows. With pick and the operating systems' backends it is the
// only place for build tags.
package sys
