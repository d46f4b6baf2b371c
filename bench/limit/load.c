// A closed-loop load generator for echo servers on 127.0.0.1: each connection
// has one message under way, and every byte that comes back is compared with
// what was sent.
//
//	load [options] echo|rate|idle
//
//	-p PORT     where the server listens
//	-c N        connections; in rate, how many are under way at once
//	-b BYTES    of a message
//	-w SECONDS  of warm-up, not measured; longer, until each has had a reply
//	-s SECONDS  that are measured; longer, until the connections have had some
//	            replies each, since many connections have their replies in waves
//	-n SECONDS  in which messages are counted once more, while the caller does
//	            what would disturb the measuring; longer, likewise
//	-t THREADS  among which the connections are divided
//	-P PID      the server's process, whose CPU time is measured
//
// echo sends messages, rate opens a connection for each message and closes it,
// idle opens all connections and later sends one message on each.
//
// It tells on its standard output what it is at, in lines: "@measuring", and with
// -n "@count" and "@counted"; or, in idle, "@connected". Upon the last three it
// waits for a line on its standard input. The last line is a JSON object: the
// result or the error. Then the connections stay open until its standard input
// ends.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
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
	EVENTS = 512,
	BUFFER = 256 << 10,
	PATTERNS = 4093,       // offsets at which a message may start in the pattern
	BATCH = 100,           // messages under way at once in idle
	FIRST_MS = 10000,      // until when each connection must have had a reply
	WAVES = 4,             // replies to be measured for each connection, in the mean
	MORE_MS = 3000,        // beyond the time given to measure, to wait for these
	STALL_NS = 2000000000, // without a reply for so long after the end is a stall
	PATIENCE_S = 60,       // beyond the given times, before giving up altogether
	SUB = 64,              // buckets per power of two: below 1.6% wide
	BUCKETS = 60 * SUB,
};

enum phase { REST, MEASURE, COUNT, STOP };

// A conn sends bytes [sent, size) of its message and expects [got, size).
struct conn {
	int fd;
	uint32_t id, number; // of the connection, of the message
	uint32_t sent, got;
	int waits_out; // EPOLLOUT is among its events
	int64_t started;
	const char *message;
};

struct worker {
	pthread_t thread;
	int loop, first, count; // its connections
	int under_way;          // messages without their whole reply
	char *buffer;
	_Atomic uint64_t messages, counted; // that it alone adds to
	uint64_t max;
	uint64_t histogram[BUCKETS];
};

static int port, threads = 1, rate, addresses = 1;
static uint32_t conns = 1, size = 64;
static double seconds = 1, warmup = 0.2, count_seconds;
static clockid_t server_clock; // 0: the server's CPU time is not asked for
static struct conn *table;
static char *pattern;
static atomic_int phase;
static atomic_uint answered; // connections that have had a reply

static int64_t read_clock(clockid_t clock) {
	struct timespec t;
	if (clock_gettime(clock, &t) < 0)
		return 0;
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int64_t now(void) {
	return read_clock(CLOCK_MONOTONIC);
}

static int64_t server_cpu(void) {
	return server_clock ? read_clock(server_clock) : 0;
}

// fail ends the program with the reason. Texts hold nothing that JSON escapes.
static void fail(const char *format, ...) {
	static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_lock(&one);
	va_list args;
	va_start(args, format);
	printf("{\"error\": \"");
	vprintf(format, args);
	printf("\"}\n");
	fflush(stdout);
	_exit(1);
}

static void say(const char *stage) {
	printf("@%s\n", stage);
	fflush(stdout);
}

// The histogram: exact below SUB ns, above it SUB buckets per power of two.

static int bucket(uint64_t ns) {
	if (ns < SUB)
		return ns;
	int shift = 63 - __builtin_clzll(ns) - __builtin_ctz(SUB);
	return (shift + 1) * SUB + (int)((ns >> shift) - SUB);
}

static uint64_t middle(int bucket) {
	if (bucket < SUB)
		return bucket;
	int shift = bucket / SUB - 1;
	return ((uint64_t)(bucket % SUB + SUB) << shift) + ((1ULL << shift) >> 1);
}

static uint64_t percentile(const struct worker *sum, double share) {
	uint64_t rank = (uint64_t)(share * sum->messages), seen = 0;
	for (int i = 0; i < BUCKETS; i++)
		if ((seen += sum->histogram[i]) > rank)
			return middle(i) < sum->max ? middle(i) : sum->max;
	return sum->max;
}

// Connections. Sources rotate among loopback addresses in rate, where every
// closed connection keeps its port busy for a minute.
static int open_socket(int flags) {
	static atomic_uint source;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0), one = 1;
	if (fd < 0)
		fail("socket: %s: fewer connections are possible", strerror(errno));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	struct sockaddr_in addr = {.sin_family = AF_INET};
	if (addresses > 1) {
		addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + atomic_fetch_add(&source, 1) % addresses);
		setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
		if (bind(fd, (struct sockaddr *)&addr, sizeof addr) < 0)
			fail("bind: %s", strerror(errno));
	}
	addr.sin_port = htons(port);
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (connect(fd, (struct sockaddr *)&addr, sizeof addr) < 0 && errno != EINPROGRESS)
		fail("connect: %s", strerror(errno));
	return fd;
}

// compose begins a message that differs from the one before and from those of
// other connections, so that no stale or foreign bytes pass for a reply.
static void compose(struct conn *c) {
	c->message = pattern + (c->id * 131u + c->number++ * 7u) % PATTERNS;
	c->sent = c->got = 0;
}

static void want_out(struct worker *w, struct conn *c, int want) {
	if (c->waits_out == want)
		return;
	struct epoll_event ev = {.events = EPOLLIN | (want ? EPOLLOUT : 0), .data.ptr = c};
	if (epoll_ctl(w->loop, EPOLL_CTL_MOD, c->fd, &ev) < 0)
		fail("epoll_ctl: %s", strerror(errno));
	c->waits_out = want;
}

static void push(struct worker *w, struct conn *c) {
	ssize_t n = send(c->fd, c->message + c->sent, size - c->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0 && errno != EAGAIN)
		fail("send on connection %u: %s", c->id, strerror(errno));
	if (n > 0)
		c->sent += n;
	want_out(w, c, c->sent < size);
}

static void begin(struct worker *w, struct conn *c, int64_t at) {
	c->started = at;
	if (rate) {
		c->fd = open_socket(SOCK_NONBLOCK);
		struct epoll_event ev = {.events = EPOLLIN, .data.ptr = c};
		if (epoll_ctl(w->loop, EPOLL_CTL_ADD, c->fd, &ev) < 0)
			fail("epoll_ctl: %s", strerror(errno));
		c->waits_out = 0;
	}
	compose(c);
	w->under_way++;
	push(w, c);
}

static void add_one(_Atomic uint64_t *n) {
	atomic_store_explicit(n, atomic_load_explicit(n, memory_order_relaxed) + 1, memory_order_relaxed);
}

static void complete(struct worker *w, struct conn *c) {
	if (rate)
		close(c->fd);
	w->under_way--;
	if (c->number == 1)
		atomic_fetch_add_explicit(&answered, 1, memory_order_relaxed);
	int at = atomic_load_explicit(&phase, memory_order_relaxed);
	int64_t t = now();
	if (at == MEASURE) {
		uint64_t ns = t - c->started;
		add_one(&w->messages);
		w->histogram[bucket(ns)]++;
		if (ns > w->max)
			w->max = ns;
	} else if (at == COUNT) {
		add_one(&w->counted);
	}
	if (at != STOP)
		begin(w, c, t);
}

// check compares n received bytes with what is expected next.
static void check(struct conn *c, const char *bytes, size_t n) {
	if (n > size - c->got)
		fail("connection %u: more bytes came back than were sent", c->id);
	if (memcmp(bytes, c->message + c->got, n))
		fail("connection %u: message %u came back with other bytes than were sent", c->id, c->number);
	c->got += n;
}

static void pull(struct worker *w, struct conn *c) {
	size_t want = size - c->got + 1; // one more, to see what should not be there
	ssize_t n = recv(c->fd, w->buffer, want < BUFFER ? want : BUFFER, MSG_DONTWAIT);
	if (n == 0)
		fail("connection %u: the server closed it", c->id);
	if (n < 0) {
		if (errno == EAGAIN)
			return;
		fail("receive on connection %u: %s", c->id, strerror(errno));
	}
	check(c, w->buffer, n);
	if (c->got == size)
		complete(w, c);
}

static void *work(void *arg) {
	struct worker *w = arg;
	struct epoll_event events[EVENTS];
	int64_t last = 0;
	for (int i = 0; i < w->count; i++)
		begin(w, &table[w->first + i], now());
	while (w->under_way > 0) {
		int n = epoll_wait(w->loop, events, EVENTS, 100);
		if (n < 0 && errno != EINTR)
			fail("epoll_wait: %s", strerror(errno));
		for (int i = 0; i < n; i++) {
			struct conn *c = events[i].data.ptr;
			if (c->sent < size && events[i].events & EPOLLOUT)
				push(w, c);
			if (events[i].events & ~EPOLLOUT)
				pull(w, c);
		}
		if (atomic_load_explicit(&phase, memory_order_relaxed) != STOP || n > 0)
			last = now();
		else if (now() - last > STALL_NS)
			break;
	}
	return NULL;
}

static void wait_for(double s) {
	struct timespec t = {.tv_sec = (time_t)s, .tv_nsec = (long)((s - (time_t)s) * 1e9)};
	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}

static double cpu_seconds(void) {
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return u.ru_utime.tv_sec + u.ru_stime.tv_sec + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void start_worker(struct worker *w, int number) {
	w->first = (int64_t)conns * number / threads;
	w->count = (int64_t)conns * (number + 1) / threads - w->first;
	w->buffer = malloc(BUFFER);
	w->loop = epoll_create1(EPOLL_CLOEXEC);
	if (!w->buffer || w->loop < 0)
		fail("cannot start a thread: %s", strerror(errno));
	for (int i = 0; !rate && i < w->count; i++) {
		struct conn *c = &table[w->first + i];
		struct epoll_event ev = {.events = EPOLLIN, .data.ptr = c};
		if (epoll_ctl(w->loop, EPOLL_CTL_ADD, c->fd, &ev) < 0)
			fail("epoll_ctl: %s", strerror(errno));
	}
}

static void await_line(void) {
	for (int ch; (ch = getchar()) != '\n' && ch != EOF;)
		;
}

// warm_up waits for the time given, and until every connection has had a reply.
static void warm_up(void) {
	wait_for(warmup);
	for (int ms = 0; atomic_load(&answered) < conns; ms++) {
		if (ms == FIRST_MS)
			fail("%u of %u connections got no reply in %d s", conns - atomic_load(&answered), conns, FIRST_MS / 1000);
		wait_for(0.001);
	}
}

// last waits for so long, and until messages have come in some waves.
static double last(enum phase p, double length, struct worker *workers) {
	int64_t start = now();
	atomic_store(&phase, p);
	wait_for(length);
	for (int ms = 0; ms < MORE_MS; ms++) {
		uint64_t n = 0;
		for (int i = 0; i < threads; i++)
			n += p == COUNT ? workers[i].counted : workers[i].messages;
		if (n >= (uint64_t)WAVES * conns)
			break;
		wait_for(0.001);
	}
	atomic_store(&phase, REST);
	return (now() - start) / 1e9;
}

// count counts messages while the caller does, and says for how long.
static double count(struct worker *workers) {
	if (count_seconds <= 0)
		return 0;
	say("count");
	await_line();
	double took = last(COUNT, count_seconds, workers);
	say("counted");
	await_line();
	return took;
}

// add_up waits for the workers' ends and adds up what they have. It returns how
// many messages are without a reply.
static int add_up(struct worker *workers, struct worker *sum) {
	int stalled = 0;
	for (int i = 0; i < threads; i++) {
		struct worker *w = &workers[i];
		pthread_join(w->thread, NULL);
		stalled += w->under_way;
		sum->messages += w->messages;
		sum->counted += w->counted;
		for (int b = 0; b < BUCKETS; b++)
			sum->histogram[b] += w->histogram[b];
		if (w->max > sum->max)
			sum->max = w->max;
	}
	return stalled;
}

// drive runs echo and rate.
static void drive(void) {
	struct worker *workers = calloc(threads, sizeof *workers), *sum = calloc(1, sizeof *sum);
	if (!workers || !sum)
		fail("no memory");
	for (int i = 0; i < threads; i++)
		start_worker(&workers[i], i);
	for (int i = 0; i < threads; i++)
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			fail("cannot start a thread");

	warm_up();
	say("measuring");
	double cpu = cpu_seconds();
	int64_t server = server_cpu();
	double took = last(MEASURE, seconds, workers);
	server = server_cpu() - server;
	cpu = cpu_seconds() - cpu;
	double counted = count(workers);
	atomic_store(&phase, STOP);
	int stalled = add_up(workers, sum);
	printf("{\"seconds\": %.6f, \"messages\": %llu, \"stalled\": %d, \"cpu_seconds\": %.6f, \"server_cpu_seconds\": %.6f,"
	       " \"counted_seconds\": %.6f, \"counted\": %llu,"
	       " \"p50_ns\": %llu, \"p90_ns\": %llu, \"p99_ns\": %llu, \"p999_ns\": %llu, \"max_ns\": %llu}\n",
	       took, (unsigned long long)sum->messages, stalled, cpu, server / 1e9, counted, (unsigned long long)sum->counted,
	       (unsigned long long)percentile(sum, .5), (unsigned long long)percentile(sum, .9),
	       (unsigned long long)percentile(sum, .99), (unsigned long long)percentile(sum, .999),
	       (unsigned long long)sum->max);
}

// put sends one message, and take takes its reply, both blocking.
static void put(struct conn *c) {
	compose(c);
	while (c->sent < size) {
		ssize_t n = send(c->fd, c->message + c->sent, size - c->sent, MSG_NOSIGNAL);
		if (n < 0)
			fail("send on connection %u: %s", c->id, strerror(errno));
		c->sent += n;
	}
}

static void take(struct conn *c, char *buffer) {
	while (c->got < size) {
		ssize_t n = recv(c->fd, buffer, BUFFER, 0);
		if (n == 0)
			fail("connection %u: the server closed it", c->id);
		if (n < 0)
			fail("no reply on connection %u: %s", c->id, strerror(errno));
		check(c, buffer, n);
	}
}

static void idle(void) {
	char *buffer = malloc(BUFFER);
	struct timeval patience = {.tv_sec = STALL_NS / 1000000000};
	if (!buffer)
		fail("no memory");
	say("connected");
	await_line();
	for (uint32_t first = 0; first < conns; first += BATCH) {
		uint32_t end = first + BATCH < conns ? first + BATCH : conns;
		for (uint32_t i = first; i < end; i++)
			put(&table[i]);
		for (uint32_t i = first; i < end; i++) {
			setsockopt(table[i].fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
			take(&table[i], buffer);
		}
	}
	printf("{\"messages\": %u}\n", conns);
}

static void make_pattern(void) {
	uint32_t x = 2463534242u;
	if (!(pattern = malloc(size + PATTERNS)))
		fail("no memory");
	for (uint32_t i = 0; i < size + PATTERNS; i++) {
		x ^= x << 13, x ^= x >> 17, x ^= x << 5;
		pattern[i] = x >> 24;
	}
}

static const char *parse(int argc, char **argv) {
	for (int o; (o = getopt(argc, argv, "p:c:b:w:s:n:t:P:")) != -1;) {
		switch (o) {
		case 'p': port = atoi(optarg); break;
		case 'c': conns = atoi(optarg); break;
		case 'b': size = atoi(optarg); break;
		case 'w': warmup = atof(optarg); break;
		case 's': seconds = atof(optarg); break;
		case 'n': count_seconds = atof(optarg); break;
		case 't': threads = atoi(optarg); break;
		case 'P':
			if (clock_getcpuclockid(atoi(optarg), &server_clock))
				return NULL;
			break;
		default: return NULL;
		}
	}
	if (port < 1 || conns < 1 || size < 1 || threads < 1 || (uint32_t)threads > conns || optind != argc - 1)
		return NULL;
	return argv[optind];
}

int main(int argc, char **argv) {
	const char *mode = parse(argc, argv);
	int is_idle = mode && !strcmp(mode, "idle"), is_echo = mode && !strcmp(mode, "echo");
	rate = mode && !strcmp(mode, "rate");
	if (!is_idle && !is_echo && !rate) {
		fprintf(stderr, "usage: load -p PORT [-c N] [-b BYTES] [-w SECONDS] [-s SECONDS] [-n SECONDS] [-t THREADS] [-P PID] echo|rate|idle\n");
		return 2;
	}
	alarm((unsigned)(seconds + warmup + count_seconds) + PATIENCE_S); // never outlive a server that hangs
	make_pattern();
	if (!(table = calloc(conns, sizeof *table)))
		fail("no memory");
	for (uint32_t i = 0; i < conns; i++) {
		table[i].id = i;
		if (!rate)
			table[i].fd = open_socket(0);
	}
	if (rate)
		addresses = 200;
	if (is_idle)
		idle();
	else
		drive();
	fflush(stdout);
	while (getchar() != EOF)
		;
}
