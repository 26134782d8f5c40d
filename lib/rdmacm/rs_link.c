/* SPDX-License-Identifier: BSD-3-Clause */
/* Queues and memory of a connection. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "rs.h"

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
