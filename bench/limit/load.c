// A load generator for servers on 127.0.0.1. Each connection has one message under
// way, and every byte that comes back is compared with what is expected.
//
//	load -p PORT [-c N] [-b BYTES] [-d DEPTH] [-P PID] echo|stream|rate|set|get|http|frames|broadcast [PATH]
//
//	-p PORT   where the server listens
//	-c N      connections; in rate, how many are under way at once
//	-b BYTES  of a message; in stream, of a write
//	-d DEPTH  commands in a message of set, get and http: a pipeline
//	-P PID    the server's process, whose CPU time is measured
//
// echo sends messages and wants them back, rate opens a connection for each message
// and closes it, set and get are redis-benchmark's commands with its key and value. http
// asks for a path. It learns the answer from the first one, whose body the caller has
// checked; of later ones it compares the version, the status, the length of the head, and
// every byte of the body. Fields may change, as Date does.
//
// frames and broadcast read a file, with a number of 4 bytes (this machine's order) before
// each of its strings: first the request that makes a connection a WebSocket, then messages,
// each with the bytes that come back. In frames each connection sends messages, and has its
// own ones back. In broadcast the first connection sends them, one after the other, and all
// connections must get each one: that is one message, from the sending until the last one has it.
//
// stream sends a pattern without a pause, in writes of -b bytes, to sink.c, perhaps through a
// proxy. The sink compares bytes of it, and answers each megabyte with one byte, a running
// number. Such a megabyte is a message. Up to WINDOW are under way on a connection, so that
// the stream does not stop; with more the caches would hold too little. It has no latency.
//
// It opens its connections, prints {}, and obeys the lines of its standard input,
// each of which it answers with a line of JSON:
//
//	slice SECONDS RATE  sends messages for so long; RATE 0: a closed loop, in which
//	                    the next message follows the last reply. Otherwise so many
//	                    messages a second are due at fixed times, whether or not
//	                    replies come, and latency begins when a message was due.
//	touch               sends one message on each connection
//
// Built with TLS it is a client of TLS 1.3, by OpenSSL: handshakes are full ones with
// X25519, and certificates are not verified.
//
// Between the lines nothing is sent, so that two servers can take turns. What is
// measured begins when each connection has had a reply, and lasts until there were
// some replies for each in the mean: many connections have theirs in waves.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#ifdef TLS
#include <fcntl.h>
#include <openssl/ssl.h>
#endif

enum {
	EVENTS = 512,
	BUFFER = 256 << 10,
	PATTERNS = 4093,         // offsets at which a message may start in the pattern
	BATCH = 100,             // messages under way at once in touch, and handshakes
	RAMP_NS = 20000000,      // at least, before measuring
	WAVES = 3,               // replies to be measured for each connection, in the mean
	MORE_NS = 2000000000,    // beyond the time given, to wait for these
	STALL_NS = 2000000000,   // without an event for so long while replies are due
	STARVED_NS = 5000000000, // for one connection while others are served
	LEARN_MS = 5000,         // for the first answer of http
	STATUS = 12,             // bytes of "HTTP/1.1 200"
	MESSAGES = 4096,         // at most, in a file
	WINDOW = 8,              // messages of a stream that are under way at once
	BLOCK = 1000000,         // bytes of a message of a stream, as in sink.c
	PERIOD = 65521,          // of a stream's pattern, as in sink.c; a prime, so that lost bytes show
	SUB = 64,                // buckets per power of two: below 1.6% wide
	BUCKETS = 60 * SUB,
};

// A text is a part of a file.
struct text {
	uint32_t size;
	char *bytes;
};

// A conn sends bytes [sent, request) of its message and expects [got, reply). In a stream
// these are bytes of all messages under way, got is the number of replies, and at is where the
// stream is in its pattern.
struct conn {
	int fd;
	uint32_t id, number; // of the connection, of the message
	uint32_t sent, got, request, reply, turn, owed, at, answers;
	char waits_out, busy; // EPOLLOUT is among its events; messages under way
	int64_t started;
	const char *message;
	char *expected;
#ifdef TLS
	SSL *ssl;
#endif
};

#ifdef TLS
static const int tls = 1;
#else
static const int tls = 0;
#endif
static int port, rate, echo, stream, broadcast, addresses = 1, loop;
static uint32_t conns = 1, size = 64, depth = 1, request, reply;
static clockid_t server_clock; // 0: the server's CPU time is not asked for
static struct conn *table;
static char *pattern, *commands, *replies, buffer[BUFFER];
static uint32_t head_size, answer_size; // of an answer of http; 0: another load
static struct text hello, asked[MESSAGES], answers[MESSAGES];
static uint32_t files; // messages of the file; 0: there is none

// What a slice is at.
static enum { RAMP, MEASURE, DRAIN, TOUCH } phase;
static double step;         // ns from one message to the next in an open loop; 0: closed
static int64_t start, from, to; // of the schedule, of the measuring
static uint64_t due;        // number of the next message of the schedule
static uint32_t under_way, answered, next;
static uint64_t messages, all, longest, histogram[BUCKETS];

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

// The histogram: exact below SUB ns, above it SUB buckets per power of two.
static void record(uint64_t ns) {
	int shift = ns < SUB ? 0 : 63 - __builtin_clzll(ns) - __builtin_ctz(SUB);
	histogram[ns < SUB ? ns : (uint64_t)(shift + 1) * SUB + (ns >> shift) - SUB]++;
	if (ns > longest)
		longest = ns;
}

static uint64_t middle(int bucket) {
	if (bucket < SUB)
		return bucket;
	int shift = bucket / SUB - 1;
	uint64_t ns = ((uint64_t)(bucket % SUB + SUB) << shift) + ((1ULL << shift) >> 1);
	return ns < longest ? ns : longest;
}

// Connections. Sources rotate among loopback addresses in rate, where every
// closed connection keeps its port busy for a minute.
static int open_socket(int flags) {
	static unsigned source;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0), one = 1;
	if (fd < 0)
		fail("socket: %s: fewer connections are possible", strerror(errno));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	struct sockaddr_in addr = {.sin_family = AF_INET};
	if (addresses > 1) {
		addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + source++ % addresses);
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

// wire_open, wire_send, wire_receive and wire_close are a socket's, or TLS's. EAGAIN
// as an error asks to wait for input, EBUSY for room to send.
#ifdef TLS
static SSL_CTX *context;

static ssize_t wire_result(struct conn *c, int n) {
	if (n > 0)
		return n;
	int why = SSL_get_error(c->ssl, n);
	errno = why == SSL_ERROR_WANT_READ ? EAGAIN : why == SSL_ERROR_WANT_WRITE ? EBUSY : EPROTO;
	return why == SSL_ERROR_ZERO_RETURN ? 0 : -1;
}

static void wire_open(struct conn *c) {
	if (!context) {
		context = SSL_CTX_new(TLS_client_method());
		SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
		SSL_CTX_set1_groups_list(context, "X25519");
		SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
	}
	c->ssl = SSL_new(context);
	SSL_set_fd(c->ssl, c->fd);
	SSL_set_connect_state(c->ssl);
	if (!rate && SSL_do_handshake(c->ssl) != 1)
		fail("handshake on connection %u failed", c->id);
	fcntl(c->fd, F_SETFL, O_NONBLOCK);
}

static ssize_t wire_send(struct conn *c, const char *p, size_t n) { return wire_result(c, SSL_write(c->ssl, p, n)); }

static ssize_t wire_receive(struct conn *c, char *p, size_t n) { return wire_result(c, SSL_read(c->ssl, p, n)); }

static void wire_close(struct conn *c) {
	SSL_shutdown(c->ssl);
	SSL_free(c->ssl);
	close(c->fd);
}
#else
static void wire_open(struct conn *c) { (void)c; }

static ssize_t wire_send(struct conn *c, const char *p, size_t n) {
	ssize_t sent = send(c->fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (sent < (ssize_t)n && (sent >= 0 || errno == EAGAIN))
		errno = EBUSY;
	return sent;
}

static ssize_t wire_receive(struct conn *c, char *p, size_t n) { return recv(c->fd, p, n, MSG_DONTWAIT); }

static void wire_close(struct conn *c) { close(c->fd); }
#endif

static void watch(struct conn *c, int op, int out) {
	struct epoll_event ev = {.events = EPOLLIN | (out ? EPOLLOUT : 0), .data.ptr = c};
	if (epoll_ctl(loop, op, c->fd, &ev) < 0)
		fail("epoll_ctl: %s", strerror(errno));
	c->waits_out = out;
}

// compose begins a message. Echoed ones differ from the one before and from those
// of other connections, so that no stale or foreign bytes pass for a reply.
static void compose(struct conn *c) {
	if (stream) {
		c->request += BLOCK;
		return;
	}
	uint32_t kind = (broadcast ? 0 : c->id * 131u) + c->number * 7u;
	c->message = commands, c->expected = replies, c->request = request, c->reply = reply;
	if (echo) {
		c->message = c->expected = pattern + kind % PATTERNS;
	} else if (files) {
		struct text *a = &asked[kind % files], *b = &answers[kind % files];
		c->message = a->bytes, c->request = a->size, c->expected = b->bytes, c->reply = b->size;
	}
	c->number++;
	c->sent = c->got = 0;
}

static void push(struct conn *c) {
	ssize_t n;
	do {
		uint32_t left = c->request - c->sent;
		errno = 0;
		n = stream ? wire_send(c, pattern + c->at, left < size ? left : size) : wire_send(c, c->message + c->sent, left);
		if (n < 0 && errno != EAGAIN && errno != EBUSY)
			fail("send on connection %u: %s", c->id, strerror(errno));
		if (n > 0)
			c->sent += n, c->at = (c->at + n) % PERIOD;
	} while (stream && errno == 0 && c->sent < c->request);
	int out = c->sent < c->request && errno != EAGAIN;
	if (c->waits_out != out)
		watch(c, EPOLL_CTL_MOD, out);
}

// begin sends a connection's next message: now, or in an open loop late.
static void begin(struct conn *c, int64_t at) {
	c->started = step > 0 ? start + (int64_t)(((uint64_t)c->turn * conns + c->id) * step) : at;
	c->turn++;
	if (rate) {
		c->fd = open_socket(SOCK_NONBLOCK);
		wire_open(c);
		watch(c, EPOLL_CTL_ADD, 0);
	}
	compose(c);
	c->busy++;
	under_way++;
	push(c);
}

// begin_broadcast sends the next message on the first connection. All wait for it.
static void begin_broadcast(int64_t at) {
	for (uint32_t i = 0; i < conns; i++) {
		struct conn *c = &table[i];
		c->started = at;
		compose(c);
		c->sent = i ? c->request : 0;
		c->busy = 1;
	}
	under_way = conns;
	push(&table[0]);
}

// schedule begins the messages that are due. One whose connection is busy is owed.
static void schedule(int64_t t) {
	for (; start + (int64_t)(due * step) <= t; due++) {
		struct conn *c = &table[due % conns];
		if (c->busy)
			c->owed++;
		else
			begin(c, t);
	}
}

static void complete(struct conn *c) {
	int64_t t = now();
	if (rate)
		wire_close(c);
	c->busy--;
	under_way--;
	if (broadcast && under_way > 0)
		return;
	all++;
	if (broadcast)
		answered = conns;
	else if (c->answers++ == 0)
		answered++;
	if (step > 0 ? c->started >= from && c->started < to : phase == MEASURE) {
		messages++;
		if (!stream)
			record(t - c->started);
	}
	if (broadcast) {
		if (phase == RAMP || phase == MEASURE)
			begin_broadcast(t);
	} else if (phase == TOUCH) {
		if (next < conns)
			begin(&table[next++], t);
	} else if (step > 0 && c->owed) {
		c->owed--;
		begin(c, t);
	} else if (step == 0 && phase != DRAIN) {
		begin(c, t);
	}
}

// same compares what came with the reply at an offset. Fields of answers of http may
// differ: the reply takes them over, so that the next comparison need not.
static int same(char *reply_part, const char *in, uint32_t at, uint32_t n) {
	if (!memcmp(in, reply_part, n))
		return 1;
	if (!head_size)
		return 0;
	for (uint32_t first = at - at % answer_size; first < at + n; first += answer_size)
		for (uint32_t i = first + STATUS; i < first + head_size - 4 && i < at + n; i++)
			if (i >= at)
				reply_part[i - at] = in[i - at];
	return !memcmp(in, reply_part, n);
}

// received checks the answers of a sink.
static void received(struct conn *c, ssize_t n) {
	if (n > c->busy)
		fail("connection %u: more bytes came back than are expected", c->id);
	for (ssize_t i = 0; i < n; i++) {
		if (c->sent < BLOCK || buffer[i] != (char)c->got++)
			fail("connection %u: another answer than the sink's came back", c->id);
		c->sent -= BLOCK, c->request -= BLOCK;
		complete(c);
	}
}

// pull reports whether there may be more.
static int pull(struct conn *c) {
	size_t want = (stream ? WINDOW : c->reply - c->got) + 1; // one more, to see what should not be there
	ssize_t n = wire_receive(c, buffer, want < BUFFER ? want : BUFFER);
	if (n == 0)
		fail("connection %u: the server closed it", c->id);
	if (n < 0) {
		if (errno == EAGAIN || errno == EBUSY)
			return 0;
		fail("receive on connection %u: %s", c->id, strerror(errno));
	}
	if (stream) {
		received(c, n);
		return 0;
	}
	if (!c->busy || (size_t)n > c->reply - c->got)
		fail("connection %u: more bytes came back than are expected", c->id);
	if (!same(c->expected + c->got, buffer, c->got, n))
		fail("connection %u: message %u came back with other bytes than are expected", c->id, c->number);
	c->got += n;
	if (c->got < c->reply)
		return 1;
	complete(c);
	return 0;
}

// turn handles what has come, and waits for it unless a message is due soon.
static int64_t turn(void) {
	static int64_t last;
	struct epoll_event events[EVENTS];
	int open = step > 0 && phase != DRAIN, n = epoll_wait(loop, events, EVENTS, open ? 0 : 10);
	if (n < 0 && errno != EINTR)
		fail("epoll_wait: %s", strerror(errno));
	for (int i = 0; i < n; i++) {
		struct conn *c = events[i].data.ptr;
		if (c->busy && c->sent < c->request)
			push(c);
		while (events[i].events & ~EPOLLOUT && pull(c) && tls)
			; // what TLS has decrypted already no event tells
	}
	int64_t t = now();
	if (open)
		schedule(t);
	if (n > 0 || !last || !under_way)
		last = t;
	else if (t - last > STALL_NS)
		fail("%u of %u connections got no reply in %d s", under_way, conns, (int)(STALL_NS / 1000000000));
	return t;
}

static void reset(void) {
	under_way = answered = next = 0;
	messages = all = longest = due = 0;
	memset(histogram, 0, sizeof histogram);
	for (uint32_t i = 0; i < conns; i++)
		table[i].turn = table[i].owed = table[i].answers = 0;
	to = from = INT64_MAX;
}

static void touch(void) {
	reset();
	step = 0;
	phase = TOUCH;
	int64_t t = now();
	if (broadcast)
		begin_broadcast(t);
	while (!broadcast && next < conns && next < BATCH)
		begin(&table[next++], t);
	while (under_way > 0)
		turn();
	printf("{\"all\": %llu}\n", (unsigned long long)all * depth);
}

static void slice(double seconds, double per_second) {
	reset();
	step = per_second > 0 ? 1e9 * depth / per_second : 0;
	phase = RAMP;
	int64_t t = start = now(), own = 0, server = 0;
	if (broadcast)
		begin_broadcast(t);
	for (uint32_t i = 0; !broadcast && step == 0 && i < conns * (stream ? WINDOW : 1); i++)
		begin(&table[i % conns], t);
	while (answered < conns || t - start < RAMP_NS)
		if ((t = turn()) - start > STARVED_NS)
			fail("%u of %u connections got no reply in %d s, while others got theirs", conns - answered, conns, (int)(STARVED_NS / 1000000000));
	phase = MEASURE;
	own = read_clock(CLOCK_PROCESS_CPUTIME_ID), server = server_cpu(), from = now();
	do
		t = turn();
	while (t - from < seconds * 1e9 || (broadcast && under_way < conns) ||
	       (step == 0 && messages < (uint64_t)WAVES * (broadcast ? 1 : conns) && t - from < seconds * 1e9 + MORE_NS));
	own = read_clock(CLOCK_PROCESS_CPUTIME_ID) - own, server = server_cpu() - server, to = now();
	phase = DRAIN;
	while (under_way > 0)
		turn();
	printf("{\"seconds\": %.6f, \"messages\": %llu, \"all\": %llu, \"cpu\": %.9f, \"server_cpu\": %.9f, \"latency\": [",
	       (to - from) / 1e9, (unsigned long long)messages * depth, (unsigned long long)all * depth, own / 1e9, server / 1e9);
	const char *comma = "";
	for (int i = 0; i < BUCKETS; i++)
		if (histogram[i]) {
			printf("%s[%llu,%llu]", comma, (unsigned long long)middle(i), (unsigned long long)histogram[i]);
			comma = ",";
		}
	printf("]}\n");
}

static char *repeat(const char *text, uint32_t *length) {
	uint32_t n = strlen(text);
	char *p = malloc((size_t)n * depth);
	if (!p)
		fail("no memory");
	for (uint32_t i = 0; i < depth; i++)
		memcpy(p + (size_t)i * n, text, n);
	*length = n * depth;
	return p;
}

// learn asks for a path once, on a connection, and expects the same answer from then on.
static void learn(struct conn *c) {
	static char answer[BUFFER];
	uint32_t got = 0, sent = 0, one = request / depth;
	while (!head_size || got < answer_size) {
		ssize_t n;
		if (sent < one && (n = wire_send(c, commands + sent, one - sent)) > 0)
			sent += n;
		n = wire_receive(c, answer + got, BUFFER - 1 - got);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EBUSY))
			fail("the server closed the connection of the first request");
		if (n < 0) {
			struct pollfd p = {.fd = c->fd, .events = POLLIN};
			if (poll(&p, 1, LEARN_MS) == 0)
				fail("no answer to the first request in %d ms", LEARN_MS);
			continue;
		}
		answer[got += n] = 0;
		char *end = strstr(answer, "\r\n\r\n"), *length = strcasestr(answer, "\r\nContent-Length:");
		if (end && !head_size) {
			if (strncmp(answer, "HTTP/1.1 200", STATUS) || !length || length > end)
				fail("the first answer has no status 200 or no Content-Length");
			head_size = end + 4 - answer;
			answer_size = head_size + strtoul(length + strlen("\r\nContent-Length:"), NULL, 10);
		}
	}
	if (got > answer_size)
		fail("more bytes came back than the first answer has");
	reply = answer_size * depth;
	if (!(replies = malloc(reply)))
		fail("no memory");
	for (uint32_t i = 0; i < depth; i++)
		memcpy(replies + i * answer_size, answer, answer_size);
}

// read_text reads a string of a file, and reports whether there is one.
static int read_text(FILE *f, struct text *t) {
	if (fread(&t->size, sizeof t->size, 1, f) != 1)
		return 0;
	if (!(t->bytes = malloc(t->size + 1)) || fread(t->bytes, 1, t->size, f) != t->size)
		fail("the file is cut off");
	return 1;
}

static void read_file(const char *path) {
	FILE *f = fopen(path, "r");
	if (!f || !read_text(f, &hello))
		fail("the file cannot be read");
	while (files < MESSAGES && read_text(f, &asked[files]) && read_text(f, &answers[files]))
		files++;
	if (files == 0)
		fail("the file has no messages");
	fclose(f);
}

// ask_upgrade asks for a WebSocket, and await_upgrade reads the answer, and no more.
static void ask_upgrade(struct conn *c) {
	if (send(c->fd, hello.bytes, hello.size, MSG_NOSIGNAL) != (ssize_t)hello.size)
		fail("connection %u: the handshake cannot be sent", c->id);
}

static void await_upgrade(struct conn *c) {
	static char head[4096];
	uint32_t got = 0;
	for (char *end = NULL; !end;) {
		ssize_t n = recv(c->fd, head + got, sizeof head - 1 - got, MSG_PEEK);
		if (n <= 0)
			fail("connection %u: no answer to the handshake", c->id);
		head[got + n] = 0;
		end = strstr(head, "\r\n\r\n");
		got += recv(c->fd, head + got, end ? end + 4 - head - got : n, 0);
	}
	if (strncmp(head, "HTTP/1.1 101", STATUS))
		fail("connection %u: the handshake is refused", c->id);
}

// draw makes the pattern.
static void draw(uint32_t bytes) {
	uint32_t x = 2463534242u;
	if (!(pattern = malloc(bytes)))
		fail("no memory");
	for (uint32_t i = 0; i < bytes; i++) {
		x ^= x << 13, x ^= x >> 17, x ^= x << 5;
		pattern[i] = x >> 24;
	}
}

// prepare makes what is sent and what is expected.
static void prepare(const char *kind, const char *path) {
	if (!strcmp(kind, "set")) {
		commands = repeat("*3\r\n$3\r\nSET\r\n$16\r\nkey:__rand_int__\r\n$3\r\nxxx\r\n", &request);
		replies = repeat("+OK\r\n", &reply);
	} else if (!strcmp(kind, "get")) {
		commands = repeat("*2\r\n$3\r\nGET\r\n$16\r\nkey:__rand_int__\r\n", &request);
		replies = repeat("$3\r\nxxx\r\n", &reply);
	} else if (!strcmp(kind, "echo") || !strcmp(kind, "rate")) {
		echo = 1, rate = !strcmp(kind, "rate"), request = reply = size, depth = 1;
		draw(size + PATTERNS);
	} else if (!strcmp(kind, "stream")) {
		stream = 1, depth = 1;
		draw(size + PERIOD);
		for (uint32_t i = PERIOD; i < size + PERIOD; i++)
			pattern[i] = pattern[i - PERIOD];
	} else if (!strcmp(kind, "http")) {
		char text[300];
		snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", path);
		commands = repeat(text, &request);
	} else if (!strcmp(kind, "frames") || !strcmp(kind, "broadcast")) {
		broadcast = !strcmp(kind, "broadcast"), depth = 1;
		read_file(path);
	} else {
		fail("want echo, stream, rate, set, get, http, frames or broadcast");
	}
}

static void parse(int argc, char **argv) {
	for (int o; (o = getopt(argc, argv, "p:c:b:d:P:")) != -1;) {
		switch (o) {
		case 'p': port = atoi(optarg); break;
		case 'c': conns = atoi(optarg); break;
		case 'b': size = atoi(optarg); break;
		case 'd': depth = atoi(optarg); break;
		case 'P':
			if (clock_getcpuclockid(atoi(optarg), &server_clock))
				fail("no process %s", optarg);
			break;
		default: exit(2);
		}
	}
	int path = optind < argc && strstr(" http frames broadcast ", argv[optind]);
	if (port < 1 || conns < 1 || size < 1 || depth < 1 || optind != argc - (path ? 2 : 1))
		fail("usage: load -p PORT [-c N] [-b BYTES] [-d DEPTH] [-P PID] echo, stream, rate, set, get, or http, frames or broadcast PATH");
	prepare(argv[optind], argv[optind + 1]);
}

int main(int argc, char **argv) {
	char line[100];
	parse(argc, argv);
	loop = epoll_create1(EPOLL_CLOEXEC);
	if (loop < 0 || !(table = calloc(conns, sizeof *table)))
		fail("cannot start: %s", strerror(errno));
	for (uint32_t i = 0; i < conns; i++) {
		table[i].id = i;
		if (!rate) {
			table[i].fd = open_socket(0);
			wire_open(&table[i]);
			if (files)
				ask_upgrade(&table[i]);
			for (uint32_t j = i - i % BATCH; files && (i % BATCH == BATCH - 1 || i == conns - 1) && j <= i; j++)
				await_upgrade(&table[j]);
			watch(&table[i], EPOLL_CTL_ADD, 0);
		}
	}
	if (head_size == 0 && commands && !replies)
		learn(&table[0]);
	if (rate)
		addresses = 200;
	for (printf("{}\n"); fflush(stdout), fgets(line, sizeof line, stdin);) {
		double seconds, per_second;
		if (!strcmp(line, "touch\n"))
			touch();
		else if (sscanf(line, "slice %lf %lf", &seconds, &per_second) == 2)
			slice(seconds, per_second);
		else
			fail("want slice or touch");
	}
}
