/* SPDX-License-Identifier: BSD-3-Clause */
/* Exchange connection data over a socket, and create a reliable connection. */
#include "meet.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rc.h"

#define ACCESS	  (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)
#define IPV4_BYTE 10 /* the GID of an IPv4 address is ::ffff:a.b.c.d */

/* Return the GID of the first IPv4 address. */
static struct ibv_gid_entry own_gid(struct ibv_context *context)
{
	struct ibv_gid_entry gid;

	for (uint32_t i = 0; i < 256; i++) {
		if (ibv_query_gid_ex(context, 1, i, &gid, 0) == 0 &&
		    gid.gid_type == IBV_GID_TYPE_ROCE_V2 && gid.gid.raw[0] == 0 &&
		    gid.gid.raw[IPV4_BYTE] == 0xff)
			return gid;
	}
	errno = ENOENT;
	meet_check(1, "an IPv4 address");
	return gid;
}

static void make(struct meet *meet)
{
	int count = 0;
	struct ibv_device **list = ibv_get_device_list(&count);
	struct ibv_context *context =
		meet->device < count ? ibv_open_device(list[meet->device]) : NULL;
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct ibv_recv_wr recv = {.wr_id = 1}, *bad;

	meet_check(!context, "no RDMA device");
	meet->memory = calloc(1, MEET_BYTES);
	meet->pd = ibv_alloc_pd(context);
	meet_check(!meet->memory || !meet->pd, "ibv_alloc_pd");
	meet->mr = ibv_reg_mr(meet->pd, meet->memory, MEET_BYTES, ACCESS);
	meet->cq = ibv_create_cq(context, 64, NULL, NULL, 0);
	meet_check(!meet->mr || !meet->cq, "ibv_reg_mr, ibv_create_cq");
	init.send_cq = init.recv_cq = meet->cq;
	meet->qp = ibv_create_qp(meet->pd, &init);
	meet_check(!meet->qp, "ibv_create_qp");
	rc_init(meet->qp, ACCESS);
	meet_check(ibv_post_recv(meet->qp, &recv, &bad), "ibv_post_recv");
	ibv_free_device_list(list);
}

/* Exchange connection data and connect. The peer is ready to receive when this returns. */
static void exchange(struct meet *meet, int fd)
{
	const struct ibv_gid_entry gid = own_gid(meet->qp->context);
	const struct meet_card own = {.gid = gid.gid,
				      .qpn = meet->qp->qp_num,
				      .rkey = meet->mr->rkey,
				      .addr = (uintptr_t)meet->memory};
	struct meet_card peer;

	meet_check(write(fd, &own, sizeof(own)) != (ssize_t)sizeof(own) ||
			   recv(fd, &peer, sizeof(peer), MSG_WAITALL) != (ssize_t)sizeof(peer),
		   "exchange");
	rc_connect(meet->qp, peer.qpn, &peer.gid, (uint8_t)gid.gid_index);
	meet->peer_addr = peer.addr;
	meet->peer_rkey = peer.rkey;
	meet_check(write(fd, "", 1) != 1 || recv(fd, &peer, 1, MSG_WAITALL) != 1, "exchange");
	close(fd);
}

void meet_serve(struct meet *meet, const char *path)
{
	make(meet);
	exchange(meet, meet_accept(path));
}

void meet_call(struct meet *meet, const char *path)
{
	make(meet);
	exchange(meet, meet_connect(path));
}

void meet_post(struct meet *meet, enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)meet->memory, .length = MEET_BYTES, .lkey = meet->mr->lkey};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = opcode == IBV_WR_SEND ? 0 : 1,
		.opcode = opcode,
		.wr.rdma = {.remote_addr = meet->peer_addr, .rkey = meet->peer_rkey},
	};
	struct ibv_send_wr *bad;

	meet_check(ibv_post_send(meet->qp, &wr, &bad), "ibv_post_send");
}

void meet_wait(struct meet *meet)
{
	struct ibv_wc wc;
	int n;

	do
		n = ibv_poll_cq(meet->cq, 1, &wc);
	while (n == 0);
	if (n == 1 && wc.status == IBV_WC_SUCCESS)
		return;
	fprintf(stderr, "completion: %s\n", n < 0 ? "ibv_poll_cq" : ibv_wc_status_str(wc.status));
	exit(1);
}
