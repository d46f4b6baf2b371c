// A load generator for UDP echo servers on 127.0.0.1: each socket has some
// datagrams under way, and every byte that comes back is compared with what was
// sent. A socket that hears nothing for a while sends all of them again, since
// datagrams get lost.
//
//	udp [options] WINDOW
//
// WINDOW is how many datagrams a socket has under way. The options, and what it
// tells on its standard output, are those of load.c; it has one thread.

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
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
	BATCH = 64,
	MOST = 65507,
	SILENCE_NS = 50000000, // after which a socket sends again
	SUB = 64,              // buckets per power of two: below 1.6% wide
	BUCKETS = 60 * SUB,
};

struct client {
	int fd;
	uint64_t sent, got; // numbers of datagrams
	int64_t heard;      // when it last got one, or sent again
	int64_t *at;        // when the window's datagrams were sent, by number
};

static int port, window, timed;
static uint32_t clients = 1, size = 64;
static double seconds = 1, warmup = 0.2, count_seconds;
static clockid_t server_clock; // 0: the server's CPU time is not asked for
static struct client *table;
static char *pattern, out[BATCH][MOST], in[BATCH][MOST];
static uint64_t messages, most, histogram[BUCKETS];

static int64_t read_clock(clockid_t clock) {
	struct timespec t;
	if (clock_gettime(clock, &t) < 0)
		return 0;
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int64_t now(void) {
	return read_clock(CLOCK_MONOTONIC);
}

static int64_t own_cpu(void) {
	return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

static int64_t server_cpu(void) {
	return server_clock ? read_clock(server_clock) : 0;
}

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

// The histogram: exact below SUB ns, above it SUB buckets per power of two.
static void count(uint64_t ns) {
	int shift = ns < SUB ? 0 : 63 - __builtin_clzll(ns) - __builtin_ctz(SUB);
	histogram[ns < SUB ? ns : (uint64_t)(shift + 1) * SUB + (ns >> shift) - SUB]++;
	if (ns > most)
		most = ns;
}

static uint64_t percentile(double share) {
	uint64_t all = 0, seen = 0;
	for (int i = 0; i < BUCKETS; i++)
		all += histogram[i];
	for (int i = 0; i < BUCKETS; i++)
		if ((seen += histogram[i]) > share * all) {
			int shift = i < SUB ? 0 : i / SUB - 1;
			return i < SUB ? (uint64_t)i : ((uint64_t)(i % SUB + SUB) << shift) + ((1ULL << shift) >> 1);
		}
	return most;
}

// fill writes a client's datagram: its number, then a pattern of its own.
static void fill(char *p, uint32_t id, uint64_t number) {
	uint64_t head = (uint64_t)id << 40 | (number & 0xffffffffff);
	memcpy(p, &head, sizeof head);
	memcpy(p + sizeof head, pattern + (id * 131u + number * 7u) % 4093, size - sizeof head);
}

// emit sends the datagrams that are missing from the window.
static void emit(struct client *c) {
	while (c->sent < c->got + window) {
		struct mmsghdr msgs[BATCH] = {0};
		struct iovec vecs[BATCH];
		int n = 0;
		int64_t at = now();
		for (; n < BATCH && c->sent + n < c->got + window; n++) {
			fill(out[n], c - table, c->sent + n);
			c->at[(c->sent + n) % window] = at;
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
	int64_t at = now();
	for (int i = 0; i < n; i++) {
		uint64_t number;
		memcpy(&number, in[i], sizeof number);
		number &= 0xffffffffff;
		fill(out[0], c - table, number);
		if (msgs[i].msg_len != size || memcmp(in[i], out[0], size) != 0)
			fail("what came back is not what was sent");
		c->heard = at;
		if (number < c->got || number >= c->sent)
			continue; // a straggler: it was counted as lost
		c->got = number + 1; // those before it are lost, or late
		messages++;
		if (timed)
			count(at - c->at[number % window]);
	}
	emit(c);
}

// run goes on until a time.
static void run(int loop, int64_t until) {
	struct epoll_event events[256];
	int64_t swept = 0;
	for (int64_t t; (t = now()) < until;) {
		int n = epoll_wait(loop, events, 256, 10);
		for (int i = 0; i < n; i++)
			absorb(events[i].data.ptr);
		if (t - swept < SILENCE_NS / 5)
			continue;
		swept = t;
		for (uint32_t i = 0; i < clients; i++)
			if (t - table[i].heard > SILENCE_NS) {
				table[i].heard = t;
				table[i].got = table[i].sent; // given up
				emit(&table[i]);
			}
	}
}

static void await_line(const char *stage) {
	printf("@%s\n", stage);
	fflush(stdout);
	while (getchar() != '\n')
		if (feof(stdin))
			exit(1);
}

static void options(int argc, char **argv) {
	for (int o; (o = getopt(argc, argv, "p:c:b:w:s:n:t:P:")) != -1;)
		switch (o) {
		case 'p': port = atoi(optarg); break;
		case 'c': clients = atoi(optarg); break;
		case 'b': size = atoi(optarg); break;
		case 'w': warmup = atof(optarg); break;
		case 's': seconds = atof(optarg); break;
		case 'n': count_seconds = atof(optarg); break;
		case 't': break;
		case 'P':
			if (clock_getcpuclockid(atoi(optarg), &server_clock) != 0)
				fail("no process %s", optarg);
			break;
		default: fail("unknown option");
		}
	window = optind < argc ? atoi(argv[optind]) : 0;
	if (port < 1 || clients < 1 || size < 8 || size > MOST || window < 1)
		fail("usage: udp -p PORT [-c SOCKETS] [-b BYTES, from 8 to 65507] ... WINDOW");
}

static void connect_all(int loop) {
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	table = calloc(clients, sizeof *table);
	for (uint32_t i = 0; i < clients; i++) {
		struct client *c = &table[i];
		c->at = calloc(window, sizeof *c->at);
		c->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		int room = 4 << 20;
		setsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
		struct epoll_event ev = {.events = EPOLLIN, .data.ptr = c};
		if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&to, sizeof to) < 0 || epoll_ctl(loop, EPOLL_CTL_ADD, c->fd, &ev) < 0)
			fail("socket %u: %s", i, strerror(errno));
		c->heard = now();
		emit(c);
	}
}

int main(int argc, char **argv) {
	options(argc, argv);
	pattern = malloc(MOST + 4093);
	for (int i = 0; i < MOST + 4093; i++)
		pattern[i] = (i * 2654435761u) >> 24;
	int loop = epoll_create1(EPOLL_CLOEXEC);
	connect_all(loop);
	run(loop, now() + warmup * 1e9);
	printf("@measuring\n");
	fflush(stdout);
	timed = 1;
	uint64_t first = messages;
	int64_t begin = now(), cpu = own_cpu(), server = server_cpu();
	run(loop, begin + seconds * 1e9);
	double took = (now() - begin) / 1e9, used = (own_cpu() - cpu) / 1e9, served = (server_cpu() - server) / 1e9;
	uint64_t measured = messages - first, counted = 0;
	timed = 0;
	double counting = 0;
	if (count_seconds > 0) {
		await_line("count");
		first = messages;
		begin = now();
		run(loop, begin + count_seconds * 1e9);
		counting = (now() - begin) / 1e9;
		counted = messages - first;
		await_line("counted");
	}
	printf("{\"seconds\": %g, \"messages\": %llu, \"stalled\": 0, \"cpu_seconds\": %g, \"server_cpu_seconds\": %g, "
	       "\"counted_seconds\": %g, \"counted\": %llu, \"p50_ns\": %llu, \"p90_ns\": %llu, \"p99_ns\": %llu, \"p999_ns\": %llu, \"max_ns\": %llu}\n",
	       took, (unsigned long long)measured, used, served, counting, (unsigned long long)counted,
	       (unsigned long long)percentile(0.5), (unsigned long long)percentile(0.9), (unsigned long long)percentile(0.99),
	       (unsigned long long)percentile(0.999), (unsigned long long)most);
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
