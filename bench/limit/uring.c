// An echo server on io_uring that is nothing but system calls: one ring per
// thread, connections and bytes by multishot requests, the bytes in a provided
// buffer ring, and one io_uring_enter per turn, which submits the answers and
// collects what came. It is the limit of what io_uring can do here.
//
//	uring PORT THREADS
//
// It listens on 127.0.0.1. Thread 0 accepts and deals connections out in turn. It
// takes Linux 6.1.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	ENTRIES = 1024,          // submissions of a turn
	COMPLETIONS = 16 << 10,  // more than there will be connections
	BUFFERS = 1024,          // at most, of a thread
	FIRST = 8,               // that there are to begin with: the fewer, the more of them the caches hold
	BUFFER = 64 << 10,
	STRIDE = BUFFER + 1024,  // so that their beginnings lie in different sets of the caches
	DIRECT = 16 << 10,       // from which on an answer is not worth waiting with
	MAX_THREADS = 256,
};

// What a completion is of: the low bits of its user data. Above them is a
// conn's address, or a place in loop.answers.
enum { ACCEPT, TAKE, RECV, SEND, READY, NOTHING, KINDS = 8 };

// A conn is allocated with its descriptor and freed when the kernel has nothing to
// do for it. tail is what the system would not take yet; while there is one, the
// connection is not read, but for what the kernel has received already.
struct conn {
	int fd;
	char receiving, stopping; // a RECV is under way, and is being cancelled
	char answering;           // the turn submits an answer
	char waiting;             // a READY is under way
	char ended, failed;       // the peer's stream, the connection
	char *tail;
	size_t from, to;
};

// An answer is a send that a turn submits. It does not wait, so when the turn's
// system call returns it is done; and one that sent all is not told of.
struct answer {
	struct conn *conn;
	unsigned short number; // of its buffer
	int size, sent;
};

struct loop {
	int fd;
	unsigned *sq_head, *sq_tail, *sq_flags, *cq_head, *cq_tail;
	unsigned tail; // of the submissions, with those that the kernel knows not yet
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
	struct io_uring_buf_ring *ring;
	char *memory;
	unsigned short ring_tail;
	unsigned made; // buffers
	struct answer answers[ENTRIES];
	int answered;
	int hurry; // there is something to do when the answers are sent, which nothing else tells
};

static struct loop *loops[MAX_THREADS];
static int threads, listener;
static pthread_barrier_t opened;

static void die(const char *what) {
	perror(what);
	exit(1);
}

static void *map(size_t size, int fd, off_t offset) {
	int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED | MAP_POPULATE;
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, offset);
	if (p == MAP_FAILED)
		die("mmap");
	return p;
}

// unsubmitted is how many submissions the kernel has not taken.
static unsigned unsubmitted(struct loop *l) {
	return l->tail - atomic_load_explicit((_Atomic unsigned *)l->sq_head, memory_order_acquire);
}

// enter submits all there is, and waits for so many completions.
static void enter(struct loop *l, unsigned wait) {
	atomic_store_explicit((_Atomic unsigned *)l->sq_tail, l->tail, memory_order_release);
	do {
		if (syscall(SYS_io_uring_enter, l->fd, unsubmitted(l), wait, IORING_ENTER_GETEVENTS, NULL, 0) < 0 && errno != EINTR)
			die("io_uring_enter");
	} while (unsubmitted(l));
}

static struct io_uring_sqe *request(struct loop *l, int opcode, int fd, uint64_t user_data) {
	// What has no room goes without the rest of the turn. Its completions wait.
	if (unsubmitted(l) == ENTRIES)
		enter(l, 0);
	struct io_uring_sqe *s = &l->sqes[l->tail++ % ENTRIES];
	memset(s, 0, sizeof *s);
	s->opcode = opcode;
	s->fd = fd;
	s->user_data = user_data;
	return s;
}

static char *buffer(struct loop *l, unsigned short number) { return l->memory + (size_t)number * STRIDE; }

// give gives the kernel a buffer, and publish lets it know.
static void give(struct loop *l, unsigned short number) {
	struct io_uring_buf *b = &l->ring->bufs[l->ring_tail++ % BUFFERS];
	b->addr = (uintptr_t)buffer(l, number);
	b->len = BUFFER;
	b->bid = number;
}

static void publish(struct loop *l) {
	atomic_store_explicit((_Atomic unsigned short *)&l->ring->tail, l->ring_tail, memory_order_release);
}

static void give_more(struct loop *l, unsigned n) {
	for (; n && l->made < BUFFERS; n--)
		give(l, l->made++);
}

static void receive(struct loop *l, struct conn *c) {
	struct io_uring_sqe *s = request(l, IORING_OP_RECV, c->fd, (uintptr_t)c | RECV);
	s->ioprio = IORING_RECV_MULTISHOT | IORING_RECVSEND_POLL_FIRST;
	s->flags = IOSQE_BUFFER_SELECT;
	c->receiving = 1;
}

static void start(struct loop *l, int fd) {
	struct conn *c = calloc(1, sizeof *c);
	if (!c)
		die("calloc");
	c->fd = fd;
	receive(l, c);
}

// go_on does what is next on a connection.
static void go_on(struct loop *l, struct conn *c) {
	if (c->answering) {
		l->hurry = 1; // settle calls again
		return;
	}
	if (c->tail && !c->failed) {
		if (!c->waiting) {
			request(l, IORING_OP_POLL_ADD, c->fd, (uintptr_t)c | READY)->poll32_events = POLLOUT;
			c->waiting = 1;
		}
		if (c->receiving && !c->stopping) {
			request(l, IORING_OP_ASYNC_CANCEL, -1, NOTHING)->addr = (uintptr_t)c | RECV;
			c->stopping = 1;
		}
		return;
	}
	if (c->receiving || c->waiting)
		return;
	if (!c->ended && !c->failed) {
		receive(l, c);
		return;
	}
	close(c->fd);
	free(c->tail);
	free(c);
}

// fail has everything end that is under way on a connection.
static void fail(struct conn *c) {
	c->failed = 1;
	shutdown(c->fd, SHUT_RDWR);
}

// keep makes one piece and another the tail, which may be one of them.
static void keep(struct conn *c, const char *p, size_t n, const char *q, size_t m) {
	char *both = malloc(n + m);
	if (!both)
		die("malloc");
	if (n)
		memcpy(both, p, n);
	if (m)
		memcpy(both + n, q, m);
	free(c->tail);
	c->tail = both;
	c->from = 0;
	c->to = n + m;
}

// send_now returns how much the system took.
static size_t send_now(struct conn *c, const char *p, size_t n) {
	ssize_t sent = send(c->fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (sent < 0 && errno != EAGAIN)
		fail(c);
	return sent < 0 ? 0 : sent;
}

static void resume(struct conn *c) {
	c->from += send_now(c, c->tail + c->from, c->to - c->from);
	if (c->from < c->to)
		return;
	free(c->tail);
	c->tail = NULL;
	c->from = c->to = 0;
}

// echo answers with a buffer, and reports whether that is still needed.
static int echo(struct loop *l, struct conn *c, unsigned short number, int n) {
	const char *p = buffer(l, number);
	if (c->failed)
		return 0;
	if (c->tail || c->answering || l->answered == ENTRIES) {
		keep(c, c->tail + c->from, c->to - c->from, p, n);
		return 0;
	}
	if (n >= DIRECT) {
		int sent = send_now(c, p, n);
		if (sent < n)
			keep(c, p + sent, n - sent, NULL, 0);
		return 0;
	}
	struct io_uring_sqe *s = request(l, IORING_OP_SEND, c->fd, (uint64_t)l->answered * KINDS | SEND);
	s->flags = IOSQE_CQE_SKIP_SUCCESS;
	s->addr = (uintptr_t)p;
	s->len = n;
	s->msg_flags = MSG_NOSIGNAL | MSG_DONTWAIT | MSG_WAITALL;
	l->answers[l->answered++] = (struct answer){c, number, n, n};
	c->answering = 1;
	return 1;
}

// received takes what came of a connection.
static void received(struct loop *l, struct conn *c, struct io_uring_cqe *e) {
	unsigned short number = e->flags >> IORING_CQE_BUFFER_SHIFT;
	if (!(e->flags & IORING_CQE_F_MORE))
		c->receiving = c->stopping = 0;
	if (e->flags & IORING_CQE_F_BUFFER && (e->res <= 0 || !echo(l, c, number, e->res)))
		give(l, number);
	if (e->res == -ENOBUFS)
		give_more(l, l->made);
	else if (e->res == 0)
		c->ended = 1;
	else if (e->res < 0 && e->res != -ECANCELED && e->res != -EINTR && e->res != -EAGAIN)
		fail(c);
	if (!c->receiving || c->tail)
		go_on(l, c);
}

static void accepting(struct loop *l) {
	request(l, IORING_OP_ACCEPT, listener, ACCEPT)->ioprio = IORING_ACCEPT_MULTISHOT;
}

static void accepted(struct loop *l, struct io_uring_cqe *e) {
	static unsigned next;
	int one = 1;
	if (e->res >= 0) {
		struct loop *to = loops[next++ % threads];
		setsockopt(e->res, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		if (to == l) {
			start(l, e->res);
		} else {
			struct io_uring_sqe *s = request(l, IORING_OP_MSG_RING, to->fd, NOTHING);
			s->off = TAKE;
			s->len = e->res;
		}
	} else if (e->res != -ECONNABORTED) {
		errno = -e->res;
		die("accept");
	}
	if (!(e->flags & IORING_CQE_F_MORE))
		accepting(l);
}

// settle takes what became of the answers that the last turn made. Completions
// tell of those that did not send all.
static void settle(struct loop *l, unsigned head, unsigned tail) {
	for (; head != tail; head++) {
		struct io_uring_cqe *e = &l->cqes[head % COMPLETIONS];
		if (e->user_data % KINDS != SEND)
			continue;
		struct answer *a = &l->answers[e->user_data / KINDS];
		a->sent = e->res > 0 ? e->res : 0;
		if (e->res < 0 && e->res != -EAGAIN)
			fail(a->conn);
	}
	for (struct answer *a = l->answers; a < l->answers + l->answered; a++) {
		struct conn *c = a->conn;
		c->answering = 0;
		if (a->sent < a->size)
			keep(c, buffer(l, a->number) + a->sent, a->size - a->sent, c->tail + c->from, c->to - c->from);
		else if (c->tail)
			resume(c);
		give(l, a->number);
		if (!c->receiving || c->tail)
			go_on(l, c);
	}
	l->answered = 0;
}

static void complete(struct loop *l, struct io_uring_cqe *e) {
	struct conn *c = (struct conn *)(uintptr_t)(e->user_data & ~(uint64_t)(KINDS - 1));
	switch (e->user_data % KINDS) {
	case ACCEPT:
		accepted(l, e);
		break;
	case TAKE:
		start(l, e->res);
		break;
	case RECV:
		received(l, c, e);
		break;
	case READY:
		c->waiting = 0;
		if (!c->failed)
			resume(c);
		go_on(l, c);
	}
}

// open_ring makes the calling thread's ring and its buffers.
static struct loop *open_ring(void) {
	struct loop *l = calloc(1, sizeof *l);
	struct io_uring_params p = {
		.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CQSIZE,
		.cq_entries = COMPLETIONS,
	};
	if (!l)
		die("calloc");
	if ((l->fd = syscall(SYS_io_uring_setup, ENTRIES, &p)) < 0)
		die("io_uring_setup");
	// One mapping holds both rings, the completions last.
	char *rings = map(p.cq_off.cqes + p.cq_entries * sizeof *l->cqes + ENTRIES * sizeof(unsigned), l->fd, IORING_OFF_SQ_RING);
	l->sqes = map(ENTRIES * sizeof *l->sqes, l->fd, IORING_OFF_SQES);
	l->sq_head = (unsigned *)(rings + p.sq_off.head);
	l->sq_tail = (unsigned *)(rings + p.sq_off.tail);
	l->sq_flags = (unsigned *)(rings + p.sq_off.flags);
	l->cq_head = (unsigned *)(rings + p.cq_off.head);
	l->cq_tail = (unsigned *)(rings + p.cq_off.tail);
	l->cqes = (struct io_uring_cqe *)(rings + p.cq_off.cqes);
	for (unsigned i = 0; i < ENTRIES; i++)
		((unsigned *)(rings + p.sq_off.array))[i] = i;

	l->ring = map(BUFFERS * sizeof(struct io_uring_buf), -1, 0);
	l->memory = map((size_t)BUFFERS * STRIDE, -1, 0);
	struct io_uring_buf_reg reg = {.ring_addr = (uintptr_t)l->ring, .ring_entries = BUFFERS};
	if (syscall(SYS_io_uring_register, l->fd, IORING_REGISTER_PBUF_RING, &reg, 1) < 0)
		die("io_uring_register");
	give_more(l, FIRST);
	return l;
}

static void *run(void *arg) {
	int i = *(int *)arg;
	struct loop *l = loops[i] = open_ring();
	pthread_barrier_wait(&opened);
	if (i == 0)
		accepting(l);
	for (;;) {
		publish(l);
		enter(l, !l->hurry);
		l->hurry = 0;
		unsigned head = *l->cq_head, tail = atomic_load_explicit((_Atomic unsigned *)l->cq_tail, memory_order_acquire);
		if (*(volatile unsigned *)l->sq_flags & IORING_SQ_CQ_OVERFLOW) {
			fputs("too many completions\n", stderr);
			exit(1);
		}
		settle(l, head, tail);
		for (; head != tail; head++)
			complete(l, &l->cqes[head % COMPLETIONS]);
		atomic_store_explicit((_Atomic unsigned *)l->cq_head, head, memory_order_release);
	}
	return NULL;
}

static void start_listening(int port) {
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(port)};
	int one = 1;
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(listener, (struct sockaddr *)&addr, sizeof addr) < 0)
		die("bind");
	if (listen(listener, 65535) < 0)
		die("listen");
}

int main(int argc, char **argv) {
	static int numbers[MAX_THREADS];
	if (argc != 3 || (threads = atoi(argv[2])) < 1 || threads > MAX_THREADS) {
		fprintf(stderr, "usage: uring PORT THREADS (1 to %d)\n", MAX_THREADS);
		return 2;
	}
	start_listening(atoi(argv[1]));
	pthread_barrier_init(&opened, NULL, threads);
	for (int i = 1; i < threads; i++) {
		pthread_t t;
		numbers[i] = i;
		if (pthread_create(&t, NULL, run, &numbers[i]))
			die("pthread_create");
	}
	run(&numbers[0]);
}
