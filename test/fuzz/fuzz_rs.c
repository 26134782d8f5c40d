/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fuzz target for the data that a peer sends to an rsocket: private data, writes into the granted
 * memory, messages, failed completions, and headers of datagrams, with calls of the program in
 * between. The queue pair is simulated: all data to send must lie in our memory, and no more
 * requests may be in flight than the queues hold.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "corpus.h"
#include "rs.h"
#include "rs_datagram.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

#define RECORDS_MAX 256
#define REQUESTS    RS_QUEUE_MIN
#define RING_BYTES  1024
#define SEND_BYTES  4098 /* the memory behind the buffer is not aligned */
#define INLINE	    20	 /* a window is sent inline, a mapping is not */
#define IOMAPS	    3
#define CREDITS	    12
#define CHUNK_MAX   16384
#define OPS	    8

enum kind {
	KIND_MESSAGE, /* a message of kind `what`, with the value */
	KIND_IMM,     /* the value is all of the immediate data */
	KIND_RING,    /* the bytes are written at that offset, without a message */
	KIND_TARGET,
	KIND_SENT,  /* so many requests complete */
	KIND_FAIL,  /* a completion with the status and the opcode */
	KIND_CALL,  /* a call of the program */
	KIND_HELLO, /* another connection */
	KIND_UDP,
	KIND_ADDRESS,
	KINDS,
};

enum call {
	CALL_RECV,
	CALL_PEEK,
	CALL_SEND,
	CALL_WRITE,
	CALL_POLL,
	CALL_SHUTDOWN,
	CALLS,
};

struct record {
	uint32_t value;
	uint16_t at;
	uint8_t kind;
	uint8_t what;
	uint8_t len;
	uint8_t reserved[3];
};

static struct rsocket s;
static struct ibv_context context;
static struct ibv_qp qp = {.context = &context};
static struct ibv_cq cq = {.context = &context};
static struct ibv_mr mr = {.lkey = 1, .rkey = 2};
static struct rdma_event_channel channel = {.fd = -1};
static size_t target_len;

static struct ibv_wc completion; /* the peer's request; opcode IBV_WC_SEND: there is none */
static uint64_t in_flight[REQUESTS];
static unsigned int flying, completing, posted;

static struct {
	uint64_t taken, refused;
} ops[OPS], hellos, headers[KINDS];

static void check(bool condition)
{
	if (!condition)
		abort();
}

static bool is_ours(uint64_t addr, uint32_t length)
{
	const uint64_t size = SEND_BYTES + RS_CONTROL_SLOTS * sizeof(struct rs_window_wire);
	const uint64_t from = addr - (uintptr_t)s.link.buffer;

	return from <= size && length <= size - from;
}

/* Read the inline data, which may be anywhere. */
static void read_all(const struct ibv_sge *sge)
{
	const volatile uint8_t *byte = (const uint8_t *)(uintptr_t)sge->addr;

	for (uint32_t i = 0; i < sge->length; i++)
		(void)byte[i];
}

static int post_send(struct ibv_qp *pair, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	const struct ibv_sge *sge = wr->num_sge ? wr->sg_list : NULL;

	(void)pair;
	(void)bad;
	check(flying < REQUESTS && !wr->next && wr->num_sge <= 1);
	if (sge && wr->send_flags & IBV_SEND_INLINE) {
		check(sge->length <= INLINE);
		read_all(sge);
	} else if (sge) {
		check(sge->length <= CHUNK_MAX && is_ours(sge->addr, sge->length));
	}
	in_flight[flying++] = wr->wr_id;
	return 0;
}

static int post_recv(struct ibv_qp *pair, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	(void)pair;
	(void)bad;
	for (; wr; wr = wr->next)
		posted++;
	check(posted <= REQUESTS);
	return 0;
}

static int poll_cq(struct ibv_cq *queue, int count, struct ibv_wc *wc)
{
	(void)queue;
	check(count > 0);
	if (completion.opcode != IBV_WC_SEND) {
		*wc = completion;
		completion.opcode = IBV_WC_SEND;
		posted--;
		return 1;
	}
	if (completing == 0 || flying == 0)
		return 0;
	completing--;
	*wc = (struct ibv_wc){.wr_id = in_flight[0]};
	memmove(&in_flight[0], &in_flight[1], --flying * sizeof(in_flight[0]));
	return 1;
}

static int notify(struct ibv_cq *queue, int solicited)
{
	(void)queue;
	(void)solicited;
	return 0;
}

/* Check the invariants that hold whatever the peer has done. */
static void check_all(void)
{
	check((uint64_t)s.in.ready + s.in.promised + s.in.freed == 2 * (uint64_t)s.in.part);
	check(s.in.head < 2 * s.in.part);
	check(s.out.used <= s.out.size && s.out.tail < s.out.size);
	check(s.out.window_count <= RS_TARGET_SLOTS && s.out.slot < RS_TARGET_SLOTS);
	check(s.out.slots + s.out.control + flying == REQUESTS);
	check(s.state == RS_CONNECTED || s.state == RS_ENDED);
}

static void free_memory(void)
{
	free(s.link.ring);
	free(s.link.buffer);
	free(s.link.target);
	free(s.iomaps);
}

/* Begin in the state that rs_link_create leaves, with separately allocated memory for the
 * sanitizer. */
static void begin(void)
{
	const int fd = s.fd;

	s = (struct rsocket){.fd = fd,
			     .type = SOCK_STREAM,
			     .domain = AF_INET,
			     .refs = 1,
			     .flags = O_NONBLOCK,
			     .keepalive_fd = -1,
			     .channel = &channel};
	pthread_mutex_init(&s.lock, NULL);
	LIST_INIT(&s.wakers);
	STAILQ_INIT(&s.backlog);
	TAILQ_INIT(&s.mappings);
	s.options = (struct rs_options){.send_bytes = SEND_BYTES,
					.recv_bytes = RING_BYTES,
					.iomaps = IOMAPS,
					.linger = {.l_onoff = 1}};
	target_len = sizeof(*s.link.target) + IOMAPS * sizeof(struct rs_iomap_wire);
	s.link = (struct rs_link){
		.cq = &cq,
		.qp = &qp,
		.ring = calloc(1, RING_BYTES),
		.buffer = calloc(1, SEND_BYTES + RS_CONTROL_SLOTS * sizeof(struct rs_window_wire)),
		.target = calloc(1, target_len),
		.ring_mr = &mr,
		.buffer_mr = &mr,
		.target_mr = &mr,
		.send_requests = REQUESTS,
		.recv_requests = REQUESTS,
		.inline_bytes = INLINE,
	};
	s.iomaps = calloc(IOMAPS, sizeof(*s.iomaps));
	check(s.link.ring && s.link.buffer && s.link.target && s.iomaps);
	rs_in_init(&s.in, s.link.ring, RING_BYTES, REQUESTS - RS_CONTROL_SLOTS);
	flying = completing = 0;
	posted = REQUESTS;
	completion = (struct ibv_wc){.opcode = IBV_WC_SEND};
	check(rs_table_add(&s) == 0);
}

static void end(void)
{
	check(rs_table_remove(&s));
	check(s.refs == 1);
	pthread_mutex_destroy(&s.lock);
	free_memory();
}

static bool greet(const void *data, size_t len)
{
	if (rs_link_take_hello(&s, data, len) != 0) {
		hellos.refused++;
		return false;
	}
	hellos.taken++;
	s.state = RS_CONNECTED;
	return true;
}

static void greet_honestly(void)
{
	const struct rs_hello hello = {
		.credits = CREDITS,
		.iomaps = IOMAPS,
		.target = {.addr = 0x1000, .key = 7, .length = 2},
		.data = {.addr = 0x2000, .key = 8, .length = 600},
	};
	struct rs_hello_wire wire;

	rs_wire_put_hello(&wire, &hello);
	check(greet(&wire, sizeof(wire)));
}

static void progress(void)
{
	pthread_mutex_lock(&s.lock);
	rs_wait_progress(&s);
	pthread_mutex_unlock(&s.lock);
}

static void complete(struct ibv_wc wc)
{
	/* The peer waits while no receive request is posted. */
	if (posted == 0)
		return;
	completion = wc;
	progress();
	completion.opcode = IBV_WC_SEND;
}

static void message(uint32_t imm)
{
	const unsigned int op = imm >> RS_IMM_SHIFT;
	const bool open = s.state == RS_CONNECTED;

	complete((struct ibv_wc){.opcode = IBV_WC_RECV_RDMA_WITH_IMM,
				 .wc_flags = IBV_WC_WITH_IMM,
				 .imm_data = rte_cpu_to_be_32(imm)});
	if (!open)
		return;
	if (s.error == EPROTO)
		ops[op].refused++;
	else
		ops[op].taken++;
}

static void write_to(void *memory, size_t size, uint16_t at, const uint8_t *data, size_t len)
{
	const size_t from = at % size;

	memcpy((uint8_t *)memory + from, data, RTE_MIN(len, size - from));
}

static void call(const struct record *record)
{
	static uint8_t bytes[UINT16_MAX];
	struct pollfd fd = {.fd = s.fd, .events = (short)record->value};
	ssize_t rc = 0;

	switch (record->what % CALLS) {
	case CALL_RECV:
		rc = rrecv(s.fd, bytes, record->at, record->len % 2 ? MSG_WAITALL : 0);
		break;
	case CALL_PEEK:
		rc = rrecv(s.fd, bytes, record->at, MSG_PEEK);
		break;
	case CALL_SEND:
		rc = rsend(s.fd, bytes, record->at, 0);
		break;
	case CALL_WRITE:
		rc = (ssize_t)riowrite(s.fd, bytes, record->at, (off_t)record->value, 0);
		break;
	case CALL_POLL:
		check(rpoll(&fd, 1, 0) >= 0);
		break;
	default:
		(void)rshutdown(s.fd, (int)(record->at % 3));
		break;
	}
	check(rc <= (ssize_t)record->at);
}

/* Check that a header is no longer than its datagram, and reports only what the packet contains. */
static void datagram(const struct record *record, const uint8_t *data, size_t len)
{
	const bool by_udp = record->kind % KINDS == KIND_UDP;
	struct sockaddr_storage from;
	struct ibv_grh grh = {0};
	uint32_t qpn = 0;
	enum rs_op op;
	size_t header;

	/* The packet comes from the address in the header, unless the input gives another
	 * address. */
	if (!by_udp && record->what % 2 == 0 && len >= RS_DATAGRAM_IPV4_LEN)
		memcpy((uint8_t *)&grh + 32, data + 4, 4);
	if (!by_udp && record->what % 2 == 1 && len >= RS_DATAGRAM_IPV6_LEN)
		memcpy((uint8_t *)&grh + 8, data + 8, 16);
	header = by_udp ? rs_udp_get(data, len, record->what % 2 ? AF_INET6 : AF_INET, &op, &qpn)
			: rs_address_get(data, len, &grh, &from);
	check(header <= len && qpn <= WIRE_QPN_MASK);
	if (header > 0)
		headers[record->kind % KINDS].taken++;
	else
		headers[record->kind % KINDS].refused++;
}

static void play(const struct record *record, const uint8_t *data, size_t len)
{
	switch (record->kind % KINDS) {
	case KIND_MESSAGE:
		message(rs_imm(record->what % OPS, record->value));
		break;
	case KIND_IMM:
		message(record->value);
		break;
	case KIND_RING:
		write_to(s.link.ring, RING_BYTES, record->at, data, len);
		break;
	case KIND_TARGET:
		write_to(s.link.target, target_len, record->at, data, len);
		break;
	case KIND_SENT:
		completing = record->what;
		progress();
		completing = 0;
		break;
	case KIND_FAIL:
		complete((struct ibv_wc){.status = record->what % 2 ? IBV_WC_WR_FLUSH_ERR
								    : IBV_WC_SUCCESS,
					 .opcode = IBV_WC_RECV | (record->what & 1)});
		break;
	case KIND_CALL:
		call(record);
		break;
	case KIND_HELLO:
		end();
		begin();
		if (!greet(data, len))
			greet_honestly();
		break;
	default:
		datagram(record, data, len);
		break;
	}
	check_all();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	begin();
	greet_honestly();
	for (int i = 0; i < RECORDS_MAX && size >= sizeof(struct record); i++) {
		struct record record;
		uint8_t *copy;
		size_t len;

		memcpy(&record, data, sizeof(record));
		data += sizeof(record);
		size -= sizeof(record);
		len = RTE_MIN(record.len, size);
		/* A separate allocation lets the sanitizer detect a read beyond the end. */
		copy = malloc(len);
		check(copy || len == 0);
		if (len > 0)
			memcpy(copy, data, len);
		play(&record, copy, len);
		free(copy);
		data += len;
		size -= len;
	}
	end();
	return 0;
}

static void put(FILE *file, struct record record, const void *data, size_t len)
{
	record.len = (uint8_t)len;
	fwrite(&record, sizeof(record), 1, file);
	fwrite(data, len, 1, file);
}

static void put_call(FILE *file, enum call call_kind, uint16_t len)
{
	const struct record record = {.kind = KIND_CALL, .what = (uint8_t)call_kind, .at = len};

	put(file, record, "", 0);
}

static void put_message(FILE *file, enum rs_op op, uint32_t value)
{
	const struct record record = {.kind = KIND_MESSAGE, .what = (uint8_t)op, .value = value};

	put(file, record, "", 0);
}

static void put_window(FILE *file, size_t at)
{
	struct rs_window_wire wire;

	rs_wire_put_window(&wire, &(struct rs_window){.addr = 0x9000, .key = 9, .length = 300},
			   rs_wire_is_big_endian());
	put(file, (struct record){.kind = KIND_TARGET, .at = (uint16_t)at}, &wire, sizeof(wire));
}

/* Send in both directions until the ring and the windows have been reused. */
static void write_stream(FILE *file)
{
	for (int i = 0; i < 8; i++) {
		put(file, (struct record){.kind = KIND_RING, .at = (uint16_t)(i * 128)}, "data", 4);
		put_message(file, RS_OP_DATA, 128);
		put_call(file, CALL_PEEK, 500);
		put_call(file, CALL_RECV, 100);
		put_call(file, CALL_SEND, 700);
		put_window(file, (size_t)(1 - i % 2) * sizeof(struct rs_window_wire));
		put_message(file, RS_OP_GRANT, (uint32_t)(CREDITS + i));
		put(file, (struct record){.kind = KIND_SENT, .what = 4}, "", 0);
		put_call(file, CALL_POLL, 0);
	}
	put_message(file, RS_OP_CONTROL, RS_CONTROL_KEEPALIVE);
	put_call(file, CALL_SHUTDOWN, 1);
	put_message(file, RS_OP_CONTROL, RS_CONTROL_SHUTDOWN);
}

static void write_mappings(FILE *file)
{
	const struct rs_iomap iomap = {.offset = 64,
				       .window = {.addr = 0x8000, .key = 5, .length = 4096}};
	struct rs_iomap_wire wire;

	rs_wire_put_iomap(&wire, &iomap, rs_wire_is_big_endian());
	put(file, (struct record){.kind = KIND_TARGET, .at = sizeof(struct rs_target)}, &wire,
	    sizeof(wire));
	put_message(file, RS_OP_IOMAP, 0);
	put(file, (struct record){.kind = KIND_CALL, .what = CALL_WRITE, .at = 99, .value = 70}, "",
	    0);
	put_message(file, RS_OP_IOMAP, IOMAPS);
}

static void write_headers(FILE *file)
{
	const struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = 0x01020304};
	const struct rs_udp_wire udp = {.tag = rte_cpu_to_be_32(RS_UDP_TAG),
					.version = 4,
					.op = RS_OP_DATA,
					.length = RS_UDP_IPV4_LEN};
	struct rs_datagram_wire wire;

	put(file, (struct record){.kind = KIND_UDP}, &udp, RS_UDP_IPV4_LEN);
	put(file, (struct record){.kind = KIND_UDP}, &udp, RS_UDP_IPV4_LEN - 1);
	rs_address_put(&wire, (const struct sockaddr_storage *)(const void *)&in);
	put(file, (struct record){.kind = KIND_ADDRESS}, &wire, RS_DATAGRAM_IPV4_LEN);
	put(file, (struct record){.kind = KIND_ADDRESS}, &wire, RS_DATAGRAM_IPV4_LEN - 1);
	put(file, (struct record){.kind = KIND_HELLO}, "hello", 5);
}

/* A message that the protocol forbids ends the connection. */
static void write_refused(FILE *file, enum rs_op op)
{
	put_message(file, op, op == RS_OP_GRANT ? 2 * CREDITS + 1 : RS_IMM_VALUE);
	put_call(file, CALL_RECV, 10);
	put_call(file, CALL_SEND, 10);
	put_call(file, CALL_POLL, 0);
}

static void write_all(void)
{
	static void (*const writers[])(FILE *) = {write_stream, write_mappings, write_headers};
	char name[32];
	FILE *file;

	for (size_t i = 0; i < RTE_DIM(writers) + OPS; i++) {
		snprintf(name, sizeof(name), "conversation-%zu", i);
		file = corpus_file(name);
		if (!file)
			return;
		if (i < RTE_DIM(writers))
			writers[i](file);
		else
			write_refused(file, (enum rs_op)(i - RTE_DIM(writers)));
		fclose(file);
	}
}

static unsigned int tell(const char *what, unsigned int number, uint64_t taken, uint64_t refused,
			 bool is_known)
{
	const bool reached = refused > 0 && (taken > 0) == is_known;

	printf("fuzz: %-8s %u %8llu taken, %8llu refused%s\n", what, number,
	       (unsigned long long)taken, (unsigned long long)refused, reached ? "" : "  MISSING");
	return !reached;
}

static unsigned int report(void)
{
	unsigned int missing = tell("hello", 0, hellos.taken, hellos.refused, true);

	for (unsigned int op = 0; op < OPS; op++)
		missing += tell("message", op, ops[op].taken, ops[op].refused,
				op == RS_OP_DATA || op == RS_OP_GRANT || op == RS_OP_IOMAP ||
					op == RS_OP_CONTROL);
	for (unsigned int kind = KIND_UDP; kind <= KIND_ADDRESS; kind++)
		missing += tell("header", kind, headers[kind].taken, headers[kind].refused, true);
	fflush(stdout);
	return missing;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	context.ops.post_send = post_send;
	context.ops.post_recv = post_recv;
	context.ops.poll_cq = poll_cq;
	context.ops.req_notify_cq = notify;
	s.fd = epoll_create1(EPOLL_CLOEXEC);
	check(s.fd >= 0);
	corpus_begin(argc, argv, write_all, report);
	return 0;
}
