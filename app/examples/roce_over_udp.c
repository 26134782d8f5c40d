/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A RoCEv2 endpoint on an ordinary UDP socket, by libroce: no device, no thread, no privileges.
 *
 * roce_over_udp SOCKET ADDRESS writes a megabyte into the memory of a waiting program, reads it
 * back and verifies it, 8 times. roce_over_udp -s SOCKET ADDRESS is the waiting program. ADDRESS is
 * an IPv4 address of this host, which no other program uses for RoCE. The two programs exchange the
 * data of their queue pairs over the Unix socket at SOCKET as remote_write does, so each side may
 * also be that program on uroce.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <roce/roce.h>

#include "meet.h"
#include "rc.h"

#define ROUNDS	  8
#define ROCE_PORT 4791
#define HEADERS	  42 /* Ethernet, IPv4, UDP: the kernel has the last two */
#define MTU_BYTES 1500
#define LINGER_MS 200 /* time in which a peer asks again that has lost our last answer */
#define ACCESS	  (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)
#define NS_PER_MS UINT64_C(1000000)

struct endpoint {
	int fd; /* the UDP socket */
	struct in_addr address;
	struct roce *roce;
	struct roce_qp *qp;
	uint8_t *memory; /* MEET_BYTES, which the peer reads and writes */
	uint32_t key;
	struct meet_card peer;
	uint8_t out[ROCE_FRAME_MAX], in[ROCE_FRAME_MAX];
};

/* Check the result of a function of libroce: a negative errno. */
static void check(int rc, const char *what)
{
	errno = abs(rc);
	meet_check(rc != 0, what);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The kernel makes the IP and UDP headers, with the same addresses, ports and identification. */
static void send_frame(void *user, uint8_t *frame, size_t len)
{
	struct endpoint *end = user;
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(ROCE_PORT)};

	memcpy(&to.sin_addr, frame + 30, sizeof(to.sin_addr));
	/* A packet that the kernel does not take is lost, as on any network. */
	(void)!sendto(end->fd, frame + HEADERS, len - HEADERS, 0, (struct sockaddr *)&to,
		      sizeof(to));
}

static uint8_t *next_frame(void *user)
{
	return ((struct endpoint *)user)->out;
}

static const struct roce_host host = {.frame = next_frame, .send = send_frame};

static void put16(uint8_t *at, size_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

/* Write the headers that the kernel has taken off: the ICRC covers them. */
static void write_headers(const struct endpoint *end, uint8_t *frame,
			  const struct sockaddr_in *from, size_t payload)
{
	memset(frame, 0, HEADERS);
	put16(frame + 12, 0x0800); /* IPv4 */
	frame[14] = 0x45;	   /* version 4, no options */
	put16(frame + 16, payload + 28);
	put16(frame + 20, 0x4000); /* may not be fragmented */
	frame[23] = IPPROTO_UDP;
	memcpy(frame + 26, &from->sin_addr, sizeof(from->sin_addr));
	memcpy(frame + 30, &end->address, sizeof(end->address));
	memcpy(frame + 34, &from->sin_port, sizeof(from->sin_port));
	put16(frame + 36, ROCE_PORT);
	put16(frame + 38, payload + 8);
}

/* Give all packets that have come to the library. Return true if there were any. */
static bool receive(struct endpoint *end)
{
	bool any = false;

	for (;;) {
		struct sockaddr_in from;
		socklen_t from_len = sizeof(from);
		const ssize_t len = recvfrom(end->fd, end->in + HEADERS, sizeof(end->in) - HEADERS,
					     MSG_DONTWAIT, (struct sockaddr *)&from, &from_len);

		if (len < 0)
			return any;
		write_headers(end, end->in, &from, (size_t)len);
		roce_receive(end->roce, end->in, HEADERS + (size_t)len,
			     ROCE_SUMS_GOOD | ROCE_ID_UNKNOWN, now_ns());
		any = true;
	}
}

/* Receive and send. If there is nothing to do, sleep until a packet comes or a timer expires, at
 * most LINGER_MS. Return false if neither happened. */
static bool run(struct endpoint *end)
{
	struct pollfd fd = {.fd = end->fd, .events = POLLIN};
	const bool received = receive(end);
	uint64_t deadline_ns, now;
	int left_ms = LINGER_MS;

	if (roce_run(end->roce, now_ns()) || received)
		return true;
	deadline_ns = roce_deadline_ns(end->roce);
	now = now_ns();
	if (deadline_ns <= now)
		return true;
	if (deadline_ns - now < LINGER_MS * NS_PER_MS)
		left_ms = (int)((deadline_ns - now) / NS_PER_MS) + 1;
	return poll(&fd, 1, left_ms) > 0 || left_ms < LINGER_MS;
}

static void wait_done(struct endpoint *end)
{
	struct ibv_wc wc;

	while (roce_poll(end->roce, 1, &wc) == 0)
		run(end);
	if (wc.status == IBV_WC_SUCCESS)
		return;
	fprintf(stderr, "a request failed with status %d\n", wc.status);
	exit(1);
}

static void post(struct endpoint *end, enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)end->memory, .length = MEET_BYTES, .lkey = end->key};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = opcode == IBV_WR_SEND ? 0 : 1,
		.opcode = opcode,
		.wr.rdma = {.remote_addr = end->peer.addr, .rkey = end->peer.rkey},
	};
	struct ibv_send_wr *bad;

	check(roce_post_send(end->qp, &wr, &bad), "roce_post_send");
}

static void open_socket(struct endpoint *end, const char *address)
{
	/* Packets that may not be fragmented have the identification 0, which the ICRC covers. */
	const int discover = IP_PMTUDISC_DO;
	struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(ROCE_PORT)};

	meet_check(inet_pton(AF_INET, address, &end->address) != 1, address);
	own.sin_addr = end->address;
	end->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	meet_check(end->fd < 0, "socket");
	meet_check(setsockopt(end->fd, IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof(discover)) !=
				   0 ||
			   bind(end->fd, (struct sockaddr *)&own, sizeof(own)) != 0,
		   address);
}

static void make(struct endpoint *end)
{
	const struct roce_qp_init init = {
		.type = IBV_QPT_RC,
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
		.signal_all = true,
	};
	const struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ACCESS};
	struct roce_config config = {
		.gid = {[10] = 0xff, [11] = 0xff}, .mtu_bytes = MTU_BYTES, .completions = 64};
	struct ibv_recv_wr recv = {.wr_id = 1}, *bad;

	memcpy(config.gid + 12, &end->address, sizeof(end->address));
	check(roce_create(&config, &host, end, &end->roce), "roce_create");
	end->memory = calloc(1, MEET_BYTES);
	meet_check(!end->memory, "calloc");
	check(roce_register(end->roce, end->memory, MEET_BYTES, ACCESS, &end->key),
	      "roce_register");
	check(roce_qp_create(end->roce, &init, &end->qp), "roce_qp_create");
	check(roce_qp_modify(end->qp, &attr, RC_INIT_MASK, NULL), "roce_qp_modify to INIT");
	check(roce_post_recv(end->qp, &recv, &bad), "roce_post_recv");
}

/* Bring the queue pair to RTR and RTS. */
static void connect_qp(struct endpoint *end)
{
	const struct roce_hop hop = {.udp_sport = ROCE_PORT};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = end->peer.qpn,
		.max_dest_rd_atomic = 4,
		.max_rd_atomic = 4,
		.min_rnr_timer = 1,
		.timeout = 14, /* 67 ms */
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh.dgid = end->peer.gid},
	};

	check(roce_qp_modify(end->qp, &attr, RC_RTR_MASK, &hop), "roce_qp_modify to RTR");
	attr.qp_state = IBV_QPS_RTS;
	check(roce_qp_modify(end->qp, &attr, RC_RTS_MASK, NULL), "roce_qp_modify to RTS");
}

/* Exchange the data of both queue pairs, and connect them, as meet.c does. */
static void meet(struct endpoint *end, int fd)
{
	struct meet_card own = {.gid.raw = {[10] = 0xff, [11] = 0xff},
				.qpn = roce_qp_number(end->qp),
				.rkey = end->key,
				.addr = (uintptr_t)end->memory};
	char ready;

	memcpy(own.gid.raw + 12, &end->address, sizeof(end->address));
	meet_check(write(fd, &own, sizeof(own)) != (ssize_t)sizeof(own) ||
			   recv(fd, &end->peer, sizeof(end->peer), MSG_WAITALL) !=
				   (ssize_t)sizeof(end->peer),
		   "exchange");
	connect_qp(end);
	meet_check(write(fd, "", 1) != 1 || recv(fd, &ready, 1, MSG_WAITALL) != 1, "exchange");
	close(fd);
}

static void verify(const struct endpoint *end, uint32_t round)
{
	for (uint32_t i = 0; i < MEET_BYTES; i++) {
		errno = EIO;
		meet_check(end->memory[i] != meet_byte(i, round), "a byte of the memory");
	}
}

static void call(struct endpoint *end)
{
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		for (uint32_t i = 0; i < MEET_BYTES; i++)
			end->memory[i] = meet_byte(i, round);
		post(end, IBV_WR_RDMA_WRITE);
		wait_done(end);
		memset(end->memory, 0, MEET_BYTES);
		post(end, IBV_WR_RDMA_READ);
		wait_done(end);
		verify(end, round);
	}
	/* Tell the peer that it may verify its memory, and wait for its answer. */
	post(end, IBV_WR_SEND);
	wait_done(end);
	wait_done(end);
	printf("%d bytes written and read back, %d times\n", MEET_BYTES, ROUNDS);
}

static void serve(struct endpoint *end)
{
	wait_done(end);
	verify(end, ROUNDS);
	post(end, IBV_WR_SEND);
	wait_done(end);
	printf("%d bytes were written correctly\n", MEET_BYTES);
}

int main(int argc, char **argv)
{
	const bool serves = argc == 4 && strcmp(argv[1], "-s") == 0;
	static struct endpoint end;

	if (argc != 3 && !serves) {
		fprintf(stderr, "usage: roce_over_udp [-s] SOCKET ADDRESS\n");
		return 1;
	}
	open_socket(&end, argv[argc - 1]);
	make(&end);
	meet(&end, serves ? meet_accept(argv[2]) : meet_connect(argv[1]));
	if (serves)
		serve(&end);
	else
		call(&end);
	while (run(&end))
		;
	roce_qp_destroy(end.qp);
	check(roce_deregister(end.roce, end.key), "roce_deregister");
	check(roce_destroy(end.roce), "roce_destroy");
	free(end.memory);
	close(end.fd);
	return 0;
}
