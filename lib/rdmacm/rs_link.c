/* SPDX-License-Identifier: BSD-3-Clause */
/* Queues and memory of a connection, and its messages. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rs.h"

#define POLL_MAX    RS_POST_MAX
#define WR_KIND	    32
#define WR_SEND	    (1ULL << 63)
#define CREDIT_MASK 0xffff

uint64_t rs_message_wr_id(enum rs_op op, uint32_t bytes)
{
	return WR_SEND | (uint64_t)op << WR_KIND | bytes;
}

int rs_message_post(struct rsocket *s, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	const int rc = ibv_post_send(s->link.qp, wr, &bad);

	if (rc != 0)
		rs_connect_end(s, rc);
	return -rc;
}

bool rs_message_control(struct rsocket *s, enum rs_control control)
{
	struct ibv_send_wr wr = {
		.wr_id = rs_message_wr_id(RS_OP_CONTROL, control),
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.imm_data = rte_cpu_to_be_32(rs_imm(RS_OP_CONTROL, control)),
	};

	if (s->out.control == 0 || s->state != RS_CONNECTED)
		return false;
	/* A WRITE of 0 bytes without immediate data takes no receive request of the peer. */
	if (control == RS_CONTROL_KEEPALIVE)
		wr.opcode = IBV_WR_RDMA_WRITE;
	s->out.control--;
	return rs_message_post(s, &wr) == 0;
}

/* Grant a part of the ring by a write to the peer's target list. */
static void grant_window(struct rsocket *s, const struct rs_grant *grant, struct ibv_send_wr *wr,
			 struct ibv_sge *sge)
{
	struct rs_link *link = &s->link;
	const struct rs_window window = {
		.addr = (uint64_t)(uintptr_t)(link->ring + grant->offset),
		.key = link->ring_mr->rkey,
		.length = grant->length,
	};
	struct rs_window_wire wire;
	uint8_t *place = link->buffer + s->options.send_bytes +
			 link->control_next++ % RS_CONTROL_SLOTS * sizeof(wire);

	/* Copy the bytes: the buffer may have any size, so the windows behind it are not aligned.
	 */
	rs_wire_put_window(&wire, &window, s->peer.big_endian);
	memcpy(place, &wire, sizeof(wire));
	*sge = (struct ibv_sge){
		.addr = (uintptr_t)place, .length = sizeof(wire), .lkey = link->buffer_mr->lkey};
	wr->sg_list = sge;
	wr->num_sge = 1;
	wr->send_flags = sizeof(wire) <= link->inline_bytes ? IBV_SEND_INLINE : 0;
	wr->wr.rdma.remote_addr = s->peer.target.addr + s->peer_slot * sizeof(wire);
	wr->wr.rdma.rkey = s->peer.target.key;
	s->peer_slot = (s->peer_slot + 1) % s->peer.target.length;
}

void rs_message_grant(struct rsocket *s)
{
	struct ibv_send_wr wr = {
		.wr_id = rs_message_wr_id(RS_OP_GRANT, 0),
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
	};
	struct rs_grant grant;
	struct ibv_sge sge;

	/* A peer that sends no more needs no grants, and may have closed its side. */
	if (s->state != RS_CONNECTED || s->shut & RS_SHUT_PEER || s->out.control == 0 ||
	    !rs_in_is_due(&s->in))
		return;
	rs_in_grant(&s->in, &grant);
	if (grant.length > 0)
		grant_window(s, &grant, &wr, &sge);
	wr.imm_data = rte_cpu_to_be_32(rs_imm(RS_OP_GRANT, grant.credits));
	s->out.control--;
	(void)rs_message_post(s, &wr);
}

/* Take credits, and the window if the peer has written the next slot. The peer may be writing it
 * now, with a later grant. The length is stored last (place_strict), so read it first. */
static int take_grant(struct rsocket *s, uint32_t value)
{
	volatile struct rs_window_wire *slot = &s->link.target->slots[s->out.slot];
	const uint32_t length = __atomic_load_n(&slot->length, __ATOMIC_ACQUIRE);
	const struct rs_window window = {.addr = slot->addr, .key = slot->key, .length = length};
	int rc = rs_out_allow(&s->out, (uint16_t)(value & CREDIT_MASK));

	if (rc != 0 || window.length == 0)
		return rc;
	slot->length = 0;
	return rs_out_add_window(&s->out, &window);
}

static int take_control(struct rsocket *s, uint32_t value)
{
	switch (value) {
	case RS_CONTROL_DISCONNECT:
		s->shut |= RS_SHUT_PEER;
		rs_connect_end(s, 0);
		return 0;
	case RS_CONTROL_SHUTDOWN:
		s->shut |= RS_SHUT_PEER;
		return 0;
	default:
		return value == RS_CONTROL_KEEPALIVE ? 0 : -EPROTO;
	}
}

static int take_data(struct rsocket *s, uint32_t len)
{
	rs_in_count(&s->in);
	return s->shut & RS_SHUT_PEER ? -EPROTO : rs_in_data(&s->in, len);
}

static int take_message(struct rsocket *s, const struct ibv_wc *wc)
{
	const uint32_t imm = rte_be_to_cpu_32(wc->imm_data);
	const uint32_t value = imm & RS_IMM_VALUE;

	if (!(wc->wc_flags & IBV_WC_WITH_IMM) || wc->opcode != IBV_WC_RECV_RDMA_WITH_IMM)
		return -EPROTO;
	/* A message proves that the peer has our REP, even if its RTU is late or lost. */
	if (s->state == RS_ACCEPTED)
		rs_connect_done(s);
	switch (imm >> RS_IMM_SHIFT) {
	case RS_OP_DATA:
		return take_data(s, value);
	case RS_OP_GRANT:
		return take_grant(s, value);
	case RS_OP_IOMAP:
		rs_in_count(&s->in);
		return rs_iomap_take(s, value);
	case RS_OP_CONTROL:
		return take_control(s, value);
	default:
		return -EPROTO;
	}
}

static void take_sent(struct rsocket *s, uint64_t wr_id)
{
	const uint32_t bytes = (uint32_t)wr_id;

	switch ((wr_id & ~WR_SEND) >> WR_KIND) {
	case RS_OP_CONTROL:
		s->out.control++;
		if (bytes == RS_CONTROL_DISCONNECT)
			rs_connect_end(s, 0);
		break;
	case RS_OP_GRANT:
		s->out.control++;
		break;
	default:
		rs_out_done(&s->out, bytes);
		break;
	}
}

/* Convert the status of a failed completion to a socket error. */
static int error_of(enum ibv_wc_status status)
{
	return status == IBV_WC_RETRY_EXC_ERR ? ETIMEDOUT : ECONNRESET;
}

/* Handle a completion. Return true for a receive completion. */
static bool take_completion(struct rsocket *s, const struct ibv_wc *wc)
{
	int rc = 0;

	if (wc->wr_id & WR_SEND)
		take_sent(s, wc->wr_id);
	else if (wc->status == IBV_WC_SUCCESS && s->state != RS_ENDED)
		rc = take_message(s, wc);
	if (wc->status != IBV_WC_SUCCESS)
		rs_connect_end(s, error_of(wc->status));
	else if (rc != 0)
		rs_connect_end(s, -rc);
	return !(wc->wr_id & WR_SEND);
}

void rs_message_poll(struct rsocket *s)
{
	const int limit = s->link.send_requests + s->link.recv_requests;
	struct ibv_wc wc[POLL_MAX];
	int seen = 0, count;

	/* Messages that come before the peer's hello wait in the completion queue. */
	if (s->state < RS_ACCEPTED)
		return;
	/*
	 * A peer may send faster than we poll, so stop after as many completions as the queue
	 * holds. Completions that are left arrived after the caller armed the queue, so they raise
	 * an event.
	 */
	while (seen < limit && (count = ibv_poll_cq(s->link.cq, POLL_MAX, wc)) > 0) {
		unsigned int received = 0;
		int rc = 0;

		for (int i = 0; i < count; i++)
			received += take_completion(s, &wc[i]);
		if (s->state != RS_ENDED)
			rc = rs_link_post_receives(s, received);
		if (rc != 0)
			rs_connect_end(s, -rc);
		seen += count;
	}
	/* Both directions are closed, and the peer has acknowledged all: this is the end. */
	if (rs_is_over(s->shut) && rs_out_is_idle(&s->out))
		rs_connect_end(s, 0);
	rs_message_grant(s);
	if (seen > 0)
		rs_wait_changed(s);
}

static void limit_requests(struct rs_link *link, const struct rs_options *options, int device_max)
{
	const int max = RTE_MAX(RTE_MIN(device_max, RS_QUEUE_MAX), RS_QUEUE_MIN);

	link->send_requests = (uint16_t)RTE_MIN(options->send_requests, max);
	link->recv_requests = (uint16_t)RTE_MIN(options->recv_requests, max);
}

static int create_queue_pair(struct rsocket *s)
{
	struct rs_link *link = &s->link;
	struct ibv_qp_init_attr attr = {
		.qp_context = s,
		.send_cq = link->cq,
		.recv_cq = link->cq,
		.cap = {.max_send_wr = link->send_requests,
			.max_recv_wr = link->recv_requests,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = s->options.inline_bytes},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};

	if (rdma_create_qp(s->id, NULL, &attr) != 0)
		return -errno;
	link->qp = s->id->qp;
	link->inline_bytes = (uint16_t)RTE_MIN(attr.cap.max_inline_data, (uint32_t)RS_INLINE_MAX);
	return 0;
}

static int create_queues(struct rsocket *s)
{
	struct rs_link *link = &s->link;
	struct ibv_device_attr device;

	if (ibv_query_device(s->id->verbs, &device) != 0)
		return -EIO;
	limit_requests(link, &s->options, device.max_qp_wr);
	link->channel = ibv_create_comp_channel(s->id->verbs);
	if (!link->channel || fcntl(link->channel->fd, F_SETFL, O_NONBLOCK) != 0)
		return -errno;
	link->cq = ibv_create_cq(s->id->verbs, link->send_requests + link->recv_requests, s,
				 link->channel, 0);
	if (!link->cq)
		return -errno;
	return create_queue_pair(s);
}

/* Allocate whole pages, so that fork() cannot make registered memory share a page with other data.
 */
static void *map(struct rsocket *s, size_t len, int access, struct ibv_mr **mr)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *memory;

	len = RTE_ALIGN_CEIL(len, page);
	if (posix_memalign(&memory, page, len) != 0) {
		errno = ENOMEM;
		return NULL;
	}
	memset(memory, 0, len);
	*mr = ibv_reg_mr(s->id->pd, memory, len, access);
	if (*mr)
		return memory;
	free(memory);
	return NULL;
}

static int create_memory(struct rsocket *s)
{
	const int remote = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	const struct rs_options *options = &s->options;
	struct rs_link *link = &s->link;
	const size_t target_len =
		sizeof(*link->target) + options->iomaps * sizeof(link->target->iomaps[0]);

	if (options->iomaps > 0) {
		s->iomaps = calloc(options->iomaps, sizeof(*s->iomaps));
		if (!s->iomaps)
			return -ENOMEM;
	}
	link->target = map(s, target_len, remote, &link->target_mr);
	if (!link->target)
		return -errno;
	link->ring = map(s, options->recv_bytes, remote, &link->ring_mr);
	if (!link->ring)
		return -errno;
	link->buffer =
		map(s, options->send_bytes + RS_CONTROL_SLOTS * sizeof(struct rs_window_wire),
		    IBV_ACCESS_LOCAL_WRITE, &link->buffer_mr);
	if (!link->buffer)
		return -errno;
	/* Reserve RS_CONTROL_SLOTS receive requests for messages that take no credit. */
	rs_in_init(&s->in, link->ring, options->recv_bytes,
		   (uint16_t)(link->recv_requests - RS_CONTROL_SLOTS));
	return 0;
}

int rs_link_post_receives(struct rsocket *s, unsigned int count)
{
	struct ibv_recv_wr wr[RS_POST_MAX] = {0};
	struct ibv_recv_wr *bad;

	while (count > 0) {
		const unsigned int run = RTE_MIN(count, (unsigned int)RS_POST_MAX);
		int rc;

		for (unsigned int i = 0; i < run; i++)
			wr[i].next = i + 1 < run ? &wr[i + 1] : NULL;
		rc = ibv_post_recv(s->link.qp, wr, &bad);
		if (rc != 0)
			return -rc;
		count -= run;
	}
	return 0;
}

int rs_link_create(struct rsocket *s)
{
	int rc = create_queues(s);

	if (rc == 0)
		rc = create_memory(s);
	if (rc == 0)
		rc = rs_link_post_receives(s, s->link.recv_requests);
	if (rc == 0)
		rc = rs_socket_watch(s, s->link.channel->fd);
	return rc;
}

static void unmap(void *memory, struct ibv_mr *mr)
{
	if (mr)
		ibv_dereg_mr(mr);
	free(memory);
}

void rs_link_destroy(struct rsocket *s)
{
	struct rs_link *link = &s->link;

	if (link->qp)
		rdma_destroy_qp(s->id);
	if (link->cq) {
		ibv_ack_cq_events(link->cq, link->unacked);
		ibv_destroy_cq(link->cq);
	}
	if (link->channel)
		ibv_destroy_comp_channel(link->channel);
	unmap(link->buffer, link->buffer_mr);
	unmap(link->ring, link->ring_mr);
	unmap(link->target, link->target_mr);
	*link = (struct rs_link){0};
}

static struct rs_window window_of(const void *memory, const struct ibv_mr *mr, uint32_t length)
{
	return (struct rs_window){
		.addr = (uint64_t)(uintptr_t)memory, .key = mr->rkey, .length = length};
}

void rs_link_say_hello(const struct rsocket *s, struct rs_hello_wire *wire)
{
	const struct rs_link *link = &s->link;
	const struct rs_hello hello = {
		.big_endian = rs_wire_is_big_endian(),
		.credits = s->in.requests,
		.iomaps = s->options.iomaps,
		.target = window_of(link->target, link->target_mr, RS_TARGET_SLOTS),
		.data = window_of(link->ring, link->ring_mr, s->in.part),
	};

	rs_wire_put_hello(wire, &hello);
}

int rs_link_take_hello(struct rsocket *s, const void *data, size_t len)
{
	const int rc = rs_wire_get_hello(data, len, &s->peer);

	if (rc != 0)
		return rc;
	/* The window in our hello fills the first slot. */
	s->peer_slot = 1 % s->peer.target.length;
	rs_out_init(&s->out, s->link.buffer, s->options.send_bytes, s->link.send_requests,
		    &s->peer);
	return 0;
}
