// An echo server that is nothing but system calls: one epoll per thread,
// level-triggered, one shared receive buffer per thread. It is the limit that
// the servers are compared with.
//
//	epoll PORT THREADS
//
// It listens on 127.0.0.1. Thread 0 accepts and deals connections out in turn.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BUFFER = 64 << 10, EVENTS = 512, MAX_THREADS = 256 };

// A conn is allocated with its descriptor and freed with it. tail is what the
// system would not take yet; while there is one, the connection is not read.
struct conn {
	int fd;
	char *tail;
	size_t from, to;
};

static int loops[MAX_THREADS], threads, listener;

static void die(const char *what) {
	perror(what);
	exit(1);
}

static void watch(int loop, int op, struct conn *c, uint32_t events) {
	struct epoll_event ev = {.events = events, .data.ptr = c};
	if (epoll_ctl(loop, op, c->fd, &ev) < 0)
		die("epoll_ctl");
}

static void end(struct conn *c) {
	close(c->fd);
	free(c->tail);
	free(c);
}

static void accept_all(void) {
	static unsigned next;
	int fd, one = 1;
	while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		struct conn *c = calloc(1, sizeof *c);
		if (!c)
			die("calloc");
		c->fd = fd;
		watch(loops[next++ % threads], EPOLL_CTL_ADD, c, EPOLLIN);
	}
	if (errno != EAGAIN && errno != ECONNABORTED)
		die("accept");
}

// keep stores what the system would not take, and waits until it will.
static void keep(int loop, struct conn *c, const char *p, size_t n) {
	if (!(c->tail = malloc(n)))
		die("malloc");
	memcpy(c->tail, p, n);
	c->from = 0;
	c->to = n;
	watch(loop, EPOLL_CTL_MOD, c, EPOLLOUT);
}

static void echo(int loop, struct conn *c, char *buffer) {
	ssize_t n = read(c->fd, buffer, BUFFER);
	if (n <= 0) {
		if (n == 0 || errno != EAGAIN)
			end(c);
		return;
	}
	ssize_t sent = send(c->fd, buffer, n, MSG_NOSIGNAL);
	if (sent < 0 && errno != EAGAIN) {
		end(c);
		return;
	}
	if (sent < 0)
		sent = 0;
	if (sent < n)
		keep(loop, c, buffer + sent, n - sent);
}

static void resume(int loop, struct conn *c) {
	ssize_t sent = send(c->fd, c->tail + c->from, c->to - c->from, MSG_NOSIGNAL);
	if (sent < 0) {
		if (errno != EAGAIN)
			end(c);
		return;
	}
	c->from += sent;
	if (c->from < c->to)
		return;
	free(c->tail);
	c->tail = NULL;
	watch(loop, EPOLL_CTL_MOD, c, EPOLLIN);
}

static __attribute__((noreturn)) void *run(void *arg) {
	int loop = *(int *)arg;
	char *buffer = malloc(BUFFER);
	struct epoll_event events[EVENTS];
	if (!buffer)
		die("malloc");
	for (;;) {
		int n = epoll_wait(loop, events, EVENTS, -1);
		if (n < 0 && errno != EINTR)
			die("epoll_wait");
		for (int i = 0; i < n; i++) {
			struct conn *c = events[i].data.ptr;
			if (!c)
				accept_all();
			else if (c->tail)
				resume(loop, c);
			else
				echo(loop, c, buffer);
		}
	}
}

static void start_listening(int port) {
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(port)};
	int one = 1;
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(listener, (struct sockaddr *)&addr, sizeof addr) < 0)
		die("bind");
	if (listen(listener, 65535) < 0)
		die("listen");
	struct epoll_event ev = {.events = EPOLLIN};
	if (epoll_ctl(loops[0], EPOLL_CTL_ADD, listener, &ev) < 0)
		die("epoll_ctl");
}

int main(int argc, char **argv) {
	if (argc != 3 || (threads = atoi(argv[2])) < 1 || threads > MAX_THREADS) {
		fprintf(stderr, "usage: epoll PORT THREADS (1 to %d)\n", MAX_THREADS);
		return 2;
	}
	for (int i = 0; i < threads; i++)
		if ((loops[i] = epoll_create1(EPOLL_CLOEXEC)) < 0)
			die("epoll_create1");
	start_listening(atoi(argv[1]));
	for (int i = 1; i < threads; i++) {
		pthread_t t;
		if (pthread_create(&t, NULL, run, &loops[i]))
			die("pthread_create");
	}
	run(&loops[0]);
}
