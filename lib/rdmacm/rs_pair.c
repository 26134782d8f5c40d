/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs for datagrams: one for each local address of a socket. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "rs_datagram.h"

#define PLACE	  (sizeof(struct ibv_grh) + RS_DATAGRAM_MAX) /* buffer bytes of one request */
#define POLL_MAX  16
#define WR_SEND	  (1ULL << 63)
#define MTU_SHIFT 7 /* of enum ibv_mtu, to bytes */

static uint8_t *place_of(const struct rs_pair *pair, uint32_t index)
{
	return pair->memory + index * PLACE;
}

static int post_receive(struct rs_pair *pair, uint32_t index)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)place_of(pair, index), .length = PLACE, .lkey = pair->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = index, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	return -ibv_post_recv(pair->id->qp, &wr, &bad);
}

static int create_queues(struct rsocket *s, struct rs_pair *pair)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = pair->send_requests,
			.max_recv_wr = pair->recv_requests,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_UD,
		.sq_sig_all = 1,
	};

	pair->channel = ibv_create_comp_channel(pair->id->verbs);
	if (!pair->channel || fcntl(pair->channel->fd, F_SETFL, O_NONBLOCK) != 0)
		return -errno;
	pair->cq = ibv_create_cq(pair->id->verbs, (int)(pair->send_requests + pair->recv_requests),
				 pair, pair->channel, 0);
	if (!pair->cq)
		return -errno;
	attr.send_cq = pair->cq;
	attr.recv_cq = pair->cq;
	if (rdma_create_qp(pair->id, NULL, &attr) != 0)
		return -errno;
	return rs_socket_watch(s, pair->channel->fd);
}

static int create_memory(struct rs_pair *pair)
{
	const size_t len = (size_t)(pair->send_requests + pair->recv_requests) * PLACE;
	int rc = 0;

	pair->memory = calloc(1, len);
	pair->free_sends = calloc(pair->send_requests, sizeof(*pair->free_sends));
	if (!pair->memory || !pair->free_sends)
		return -ENOMEM;
	pair->mr = ibv_reg_mr(pair->id->pd, pair->memory, len, IBV_ACCESS_LOCAL_WRITE);
	if (!pair->mr)
		return -errno;
	for (uint32_t i = 0; i < pair->send_requests; i++)
		pair->free_sends[pair->free_count++] = pair->recv_requests + i;
	for (uint32_t i = 0; i < pair->recv_requests && rc == 0; i++)
		rc = post_receive(pair, i);
	return rc;
}

/* Find our address in the device's GID table. */
static int find_gid(struct rs_pair *pair)
{
	struct ibv_port_attr port;
	uint8_t wanted[GID_LEN];

	address_gid((const struct sockaddr *)&pair->local, wanted);
	if (ibv_query_port(pair->id->verbs, pair->id->port_num, &port) != 0)
		return -EIO;
	pair->max_bytes = RTE_MIN(RS_DATAGRAM_MAX, 1U << (MTU_SHIFT + port.active_mtu));
	for (int i = 0; i < port.gid_tbl_len; i++) {
		struct ibv_gid_entry entry;

		if (ibv_query_gid_ex(pair->id->verbs, pair->id->port_num, (uint32_t)i, &entry, 0) ==
			    0 &&
		    entry.gid_type == IBV_GID_TYPE_ROCE_V2 &&
		    memcmp(entry.gid.raw, wanted, GID_LEN) == 0) {
			pair->sgid_index = (uint8_t)i;
			return 0;
		}
	}
	return -EADDRNOTAVAIL;
}

/* Bind the pair's id, which only selects the device: the port is the UDP socket's. */
static int bind_id(struct rsocket *s, struct rs_pair *pair)
{
	struct sockaddr_storage local = pair->local;

	if (rdma_create_id(s->datagrams->channel, &pair->id, pair, RDMA_PS_UDP) != 0)
		return -errno;
	address_set_port((struct sockaddr *)&local, 0);
	if (rdma_bind_addr(pair->id, (struct sockaddr *)&local) != 0)
		return -errno;
	return pair->id->verbs ? 0 : -EADDRNOTAVAIL;
}

static uint32_t requests(uint16_t wanted, uint32_t bytes)
{
	return RTE_MAX(1U, RTE_MIN((uint32_t)wanted, bytes / RS_DATAGRAM_MAX));
}

static int create(struct rsocket *s, struct rs_pair *pair)
{
	int rc = bind_id(s, pair);

	pair->recv_requests = requests(s->options.recv_requests, s->options.recv_bytes);
	pair->send_requests = requests(s->options.send_requests, s->options.send_bytes);
	rs_address_put(&pair->header, &pair->local);
	if (rc == 0)
		rc = find_gid(pair);
	if (rc == 0)
		rc = create_queues(s, pair);
	if (rc == 0)
		rc = create_memory(pair);
	/* Arm the new queue here: threads that already sleep on the rsocket have not armed it. */
	if (rc == 0)
		rc = -ibv_req_notify_cq(pair->cq, 0);
	return rc;
}

int rs_pair_get(struct rsocket *s, const struct sockaddr_storage *local, struct rs_pair **found)
{
	struct rs_pair *pair;
	int rc;

	LIST_FOREACH (pair, &s->datagrams->pairs, next) {
		if (rs_datagram_is_same(&pair->local, local)) {
			*found = pair;
			return 0;
		}
	}
	pair = calloc(1, sizeof(*pair));
	if (!pair)
		return -ENOMEM;
	pair->local = *local;
	rc = create(s, pair);
	if (rc != 0) {
		rs_pair_end(pair);
		return rc;
	}
	LIST_INSERT_HEAD(&s->datagrams->pairs, pair, next);
	*found = pair;
	return 0;
}

void rs_pair_end(struct rs_pair *pair)
{
	if (pair->id)
		rdma_destroy_qp(pair->id);
	if (pair->cq) {
		ibv_ack_cq_events(pair->cq, pair->unacked);
		ibv_destroy_cq(pair->cq);
	}
	if (pair->channel)
		ibv_destroy_comp_channel(pair->channel);
	if (pair->mr)
		ibv_dereg_mr(pair->mr);
	if (pair->id)
		rdma_destroy_id(pair->id);
	free(pair->memory);
	free(pair->free_sends);
	free(pair);
}

int rs_pair_send(struct rs_pair *pair, const struct rs_dest *dest, const struct iovec *iov,
		 size_t len)
{
	struct rs_cursor from = {.iov = iov};
	struct ibv_send_wr *bad;
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .num_sge = 1};
	struct ibv_sge sge = {.lkey = pair->mr->lkey};
	uint8_t *place;
	uint32_t index;
	int rc;

	if (pair->free_count == 0)
		return -EAGAIN;
	index = pair->free_sends[--pair->free_count];
	place = place_of(pair, index);
	memcpy(place, &pair->header, pair->header.length);
	rs_vector_gather(&from, place + pair->header.length, len);
	sge.addr = (uintptr_t)place;
	sge.length = (uint32_t)(pair->header.length + len);
	wr.wr_id = WR_SEND | index;
	wr.sg_list = &sge;
	wr.wr.ud.ah = dest->ah;
	wr.wr.ud.remote_qpn = dest->qpn;
	wr.wr.ud.remote_qkey = RDMA_UDP_QKEY;
	rc = ibv_post_send(pair->id->qp, &wr, &bad);
	if (rc != 0)
		pair->free_sends[pair->free_count++] = index;
	return -rc;
}

static void take_received(struct rsocket *s, struct rs_pair *pair, const struct ibv_wc *wc)
{
	const uint8_t *place = place_of(pair, (uint32_t)wc->wr_id);
	const uint8_t *data = place + sizeof(struct ibv_grh);
	struct sockaddr_storage from;
	struct rs_dest *dest;
	size_t len, header;

	if (wc->byte_len < sizeof(struct ibv_grh) || !(wc->wc_flags & IBV_WC_GRH))
		return;
	len = wc->byte_len - sizeof(struct ibv_grh);
	header = rs_address_get(data, len, (const struct ibv_grh *)(const void *)place, &from);
	if (header == 0)
		return;
	/* A peer that has our number sends no more by UDP. Only here does it contradict a forged
	 * number. */
	if (rs_dest_get(s, &from, false, &dest) == 0 && dest->qpn != 0)
		rs_dest_learn(s, dest, wc->src_qp);
	rs_datagram_deliver(s, &from, data + header, len - header);
}

static void take_completion(struct rsocket *s, struct rs_pair *pair, const struct ibv_wc *wc)
{
	if (wc->wr_id & WR_SEND) {
		pair->free_sends[pair->free_count++] = (uint32_t)wc->wr_id;
		rs_wait_changed(s);
		return;
	}
	if (wc->status != IBV_WC_SUCCESS)
		return;
	take_received(s, pair, wc);
	(void)post_receive(pair, (uint32_t)wc->wr_id);
}

static void poll_pair(struct rsocket *s, struct rs_pair *pair)
{
	const uint32_t limit = pair->send_requests + pair->recv_requests;
	struct ibv_wc wc[POLL_MAX];
	int count;

	/*
	 * A peer may send faster than we poll, so stop after as many completions as the queue
	 * holds. Completions that are left arrived after the caller armed the queue, so they raise
	 * an event.
	 */
	for (uint32_t seen = 0; seen < limit; seen += (uint32_t)count) {
		count = ibv_poll_cq(pair->cq, POLL_MAX, wc);
		for (int i = 0; i < count; i++)
			take_completion(s, pair, &wc[i]);
		if (count <= 0)
			return;
	}
}

void rs_datagram_poll(struct rsocket *s)
{
	struct rs_pair *pair;

	LIST_FOREACH (pair, &s->datagrams->pairs, next)
		poll_pair(s, pair);
}

void rs_datagram_arm(struct rsocket *s)
{
	struct rs_pair *pair;

	LIST_FOREACH (pair, &s->datagrams->pairs, next)
		(void)ibv_req_notify_cq(pair->cq, 0);
}

void rs_datagram_drop_events(struct rsocket *s)
{
	struct rs_pair *pair;
	struct ibv_cq *cq;
	void *context;

	LIST_FOREACH (pair, &s->datagrams->pairs, next) {
		while (ibv_get_cq_event(pair->channel, &cq, &context) == 0)
			pair->unacked++;
	}
}
