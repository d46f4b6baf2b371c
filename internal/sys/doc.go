// Package sys is rondo's layer on the operating system: listening sockets with their
// options, and non-blocking calls on descriptors at the least cost that the system
// allows. Only sys, pick and the systems' backends have build tags.
package sys
