// A load generator for UDP echo servers on 127.0.0.1: each socket has some
// datagrams under way, and every byte that comes back is compared with what was
// sent. A socket that hears nothing for a while sends all of them again, since
// datagrams get lost.
//
//	udp -p PORT [-c SOCKETS] [-b BYTES] [-d WINDOW] [-P PID]
//
// WINDOW is how many datagrams a socket has under way. The rest is as in load.c:
// it obeys the line "slice SECONDS 0", and answers as that does.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
	BATCH = 64,
	MOST = 65507,
	RAMP_NS = 20000000,
	SILENCE_NS = 50000000, // after which a socket sends again
	DRAIN_NS = 5000000,    // for what is under way at the end
	PATTERN = 4093,
};

struct client {
	int fd;
	uint64_t sent, got; // numbers of datagrams
	int64_t heard;      // when it last got one, or sent again
};

static int port, window = 1, sending, loop;
static uint32_t clients = 1, size = 64;
static clockid_t server_clock; // 0: the server's CPU time is not asked for
static struct client *table;
static char *pattern, out[BATCH][MOST], in[BATCH][MOST];
static uint64_t messages;

static int64_t read_clock(clockid_t clock) {
	struct timespec t;
	if (clock_gettime(clock, &t) < 0)
		return 0;
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int64_t now(void) { return read_clock(CLOCK_MONOTONIC); }

static int64_t server_cpu(void) { return server_clock ? read_clock(server_clock) : 0; }

// fail ends the program with the reason. Texts hold nothing that JSON escapes.
static void fail(const char *format, ...) {
	va_list args;
	va_start(args, format);
	printf("{\"error\": \"");
	vprintf(format, args);
	printf("\"}\n");
	fflush(stdout);
	_exit(1);
}

// fill writes a client's datagram: its number, then a pattern of its own.
static void fill(char *p, uint32_t id, uint64_t number) {
	uint64_t head = (uint64_t)id << 40 | (number & 0xffffffffff);
	memcpy(p, &head, sizeof head);
	memcpy(p + sizeof head, pattern + (id * 131u + number * 7u) % PATTERN, size - sizeof head);
}

// emit sends the datagrams that are missing from the window.
static void emit(struct client *c) {
	while (sending && c->sent < c->got + window) {
		struct mmsghdr msgs[BATCH] = {0};
		struct iovec vecs[BATCH];
		int n = 0;
		for (; n < BATCH && c->sent + n < c->got + window; n++) {
			fill(out[n], c - table, c->sent + n);
			vecs[n] = (struct iovec){out[n], size};
			msgs[n].msg_hdr.msg_iov = &vecs[n];
			msgs[n].msg_hdr.msg_iovlen = 1;
		}
		int k = sendmmsg(c->fd, msgs, n, MSG_DONTWAIT);
		if (k < 0 && errno != EAGAIN && errno != ECONNREFUSED)
			fail("sendmmsg: %s", strerror(errno));
		if (k <= 0)
			return;
		c->sent += k;
	}
}

static void absorb(struct client *c) {
	struct mmsghdr msgs[BATCH] = {0};
	struct iovec vecs[BATCH];
	for (int i = 0; i < BATCH; i++) {
		vecs[i] = (struct iovec){in[i], MOST};
		msgs[i].msg_hdr.msg_iov = &vecs[i];
		msgs[i].msg_hdr.msg_iovlen = 1;
	}
	int n = recvmmsg(c->fd, msgs, BATCH, MSG_DONTWAIT, NULL);
	if (n < 0 && errno != EAGAIN && errno != ECONNREFUSED)
		fail("recvmmsg: %s", strerror(errno));
	c->heard = now();
	for (int i = 0; i < n; i++) {
		uint64_t number;
		memcpy(&number, in[i], sizeof number);
		number &= 0xffffffffff;
		fill(out[0], c - table, number);
		if (msgs[i].msg_len != size || memcmp(in[i], out[0], size) != 0)
			fail("other bytes came back than were sent");
		if (number < c->got || number >= c->sent)
			continue; // a straggler: it was counted as lost
		c->got = number + 1; // those before it are lost, or late
		messages++;
	}
	emit(c);
}

// run goes on until a time.
static void run(int64_t until) {
	struct epoll_event events[256];
	int64_t swept = 0;
	for (int64_t t; (t = now()) < until;) {
		int n = epoll_wait(loop, events, 256, sending ? 10 : 1);
		for (int i = 0; i < n; i++)
			absorb(events[i].data.ptr);
		if (t - swept < SILENCE_NS / 5)
			continue;
		swept = t;
		for (uint32_t i = 0; i < clients && sending; i++)
			if (t - table[i].heard > SILENCE_NS) {
				table[i].heard = t;
				table[i].got = table[i].sent; // given up
				emit(&table[i]);
			}
	}
}

static void slice(double seconds) {
	uint64_t first = messages;
	sending = 1;
	for (uint32_t i = 0; i < clients; i++) {
		table[i].got = table[i].sent;
		table[i].heard = now();
		emit(&table[i]);
	}
	run(now() + RAMP_NS);
	uint64_t before = messages;
	int64_t begin = now(), own = read_clock(CLOCK_PROCESS_CPUTIME_ID), server = server_cpu();
	run(begin + seconds * 1e9);
	double took = (now() - begin) / 1e9;
	own = read_clock(CLOCK_PROCESS_CPUTIME_ID) - own, server = server_cpu() - server;
	uint64_t measured = messages - before;
	sending = 0;
	run(now() + DRAIN_NS);
	printf("{\"seconds\": %.6f, \"messages\": %llu, \"all\": %llu, \"cpu\": %.9f, \"server_cpu\": %.9f}\n", took,
	       (unsigned long long)measured, (unsigned long long)(messages - first), own / 1e9, server / 1e9);
}

static void options(int argc, char **argv) {
	for (int o; (o = getopt(argc, argv, "p:c:b:d:P:")) != -1;)
		switch (o) {
		case 'p': port = atoi(optarg); break;
		case 'c': clients = atoi(optarg); break;
		case 'b': size = atoi(optarg); break;
		case 'd': window = atoi(optarg); break;
		case 'P':
			if (clock_getcpuclockid(atoi(optarg), &server_clock) != 0)
				fail("no process %s", optarg);
			break;
		default: fail("unknown option");
		}
	if (port < 1 || clients < 1 || size < 8 || size > MOST || window < 1)
		fail("usage: udp -p PORT [-c SOCKETS] [-b BYTES, from 8 to 65507] [-d WINDOW] [-P PID]");
}

static void connect_all(void) {
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	loop = epoll_create1(EPOLL_CLOEXEC);
	table = calloc(clients, sizeof *table);
	pattern = malloc(MOST + PATTERN);
	for (int i = 0; i < MOST + PATTERN; i++)
		pattern[i] = (i * 2654435761u) >> 24;
	for (uint32_t i = 0; i < clients; i++) {
		struct client *c = &table[i];
		c->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		int room = 4 << 20;
		setsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
		struct epoll_event ev = {.events = EPOLLIN, .data.ptr = c};
		if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&to, sizeof to) < 0 || epoll_ctl(loop, EPOLL_CTL_ADD, c->fd, &ev) < 0)
			fail("socket %u: %s", i, strerror(errno));
	}
}

int main(int argc, char **argv) {
	char line[100];
	options(argc, argv);
	connect_all();
	for (printf("{}\n"); fflush(stdout), fgets(line, sizeof line, stdin);) {
		double seconds, rate;
		if (sscanf(line, "slice %lf %lf", &seconds, &rate) != 2 || rate > 0)
			fail("want slice SECONDS 0");
		slice(seconds);
	}
}
