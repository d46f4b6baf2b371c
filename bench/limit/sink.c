// The end of the streams that load.c sends. It answers each megabyte with one byte, a running
// number. Of every LOOK reads it compares the bytes of one with the pattern, and has the system
// drop those of the others unseen: else it would be slower than what is measured. The pattern
// tells the place in the stream, so that lost and surplus bytes show at the next look. A
// connection with other bytes than are expected is closed.
//
//	sink PORT
//
// It listens on 127.0.0.1, and is one level-triggered epoll.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BUFFER = 64 << 10, LOOK = 8, EVENTS = 512, BLOCK = 1000000, PERIOD = 65521 };

// A conn has received size bytes of a block, and is at that place of the pattern. blocks is
// the number of blocks received.
struct conn {
	int fd;
	uint32_t size, at, reads;
	char blocks;
};

static int loop, listener;
static char pattern[PERIOD + BUFFER], buffer[BUFFER];

static void die(const char *what) {
	perror(what);
	exit(1);
}

static void watch(int fd, struct conn *c) {
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = c};
	if (epoll_ctl(loop, EPOLL_CTL_ADD, fd, &ev) < 0)
		die("epoll_ctl");
}

static void accept_all(void) {
	int fd, one = 1;
	while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		struct conn *c = calloc(1, sizeof *c);
		if (!c)
			die("calloc");
		c->fd = fd;
		watch(fd, c);
	}
	if (errno != EAGAIN && errno != ECONNABORTED)
		die("accept");
}

// receive reports whether the connection is well.
static int receive(struct conn *c) {
	int look = c->reads++ % LOOK == 0;
	ssize_t n = recv(c->fd, buffer, BUFFER, look ? 0 : MSG_TRUNC);
	if (n <= 0)
		return n < 0 && errno == EAGAIN;
	if (look && memcmp(buffer, pattern + c->at, n))
		return 0;
	c->at = (c->at + n) % PERIOD;
	// Answers are few, and wait nowhere: they always fit into the socket's buffer.
	for (c->size += n; c->size >= BLOCK; c->size -= BLOCK, c->blocks++)
		if (send(c->fd, &c->blocks, 1, MSG_NOSIGNAL) != 1)
			return 0;
	return 1;
}

static void start(int port) {
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(port)};
	int one = 1;
	uint32_t x = 2463534242u;
	for (int i = 0; i < PERIOD + BUFFER; i++) {
		x ^= x << 13, x ^= x >> 17, x ^= x << 5;
		pattern[i] = i < PERIOD ? (char)(x >> 24) : pattern[i - PERIOD];
	}
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	loop = epoll_create1(EPOLL_CLOEXEC);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(listener, (struct sockaddr *)&addr, sizeof addr) < 0)
		die("bind");
	if (listen(listener, 65535) < 0)
		die("listen");
	watch(listener, NULL);
}

int main(int argc, char **argv) {
	struct epoll_event events[EVENTS];
	if (argc != 2) {
		fprintf(stderr, "usage: sink PORT\n");
		return 2;
	}
	for (start(atoi(argv[1]));;) {
		int n = epoll_wait(loop, events, EVENTS, -1);
		if (n < 0 && errno != EINTR)
			die("epoll_wait");
		for (int i = 0; i < n; i++) {
			struct conn *c = events[i].data.ptr;
			if (!c) {
				accept_all();
			} else if (!receive(c)) {
				close(c->fd);
				free(c);
			}
		}
	}
}
