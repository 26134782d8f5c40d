/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Both sides of rdma_cm's endpoints in one process; the test uses each function of rdma_verbs.h:
 * endpoints NAME. Calls are synchronous, and the server is a thread. The exit status is 0 if all
 * checks pass.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "must.h"

#define ADDRESS "127.0.0.1"
#define PORT	"7190"
#define BYTES	4096
#define HALF	(BYTES / 2)

/* The data that the server's answer carries to the client. */
struct offer {
	uint64_t read_addr;
	uint64_t write_addr;
	uint32_t read_key;
	uint32_t write_key;
};

static char served[BYTES], written[BYTES], received[BYTES];
static char message[BYTES], fetched[BYTES];

static struct ibv_qp_init_attr attr_of(enum ibv_qp_type type)
{
	return (struct ibv_qp_init_attr){
		.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 2, .max_recv_sge = 2},
		.qp_type = type,
		.sq_sig_all = 1,
	};
}

static struct rdma_addrinfo *find(int flags, int port_space)
{
	const struct rdma_addrinfo hints = {.ai_flags = flags, .ai_port_space = port_space};
	struct rdma_addrinfo *info;

	MUST(rdma_getaddrinfo(ADDRESS, PORT, &hints, &info) == 0);
	return info;
}

static struct rdma_cm_id *create(int flags, int port_space, enum ibv_qp_type type)
{
	struct rdma_addrinfo *info = find(flags, port_space);
	struct ibv_qp_init_attr attr = attr_of(type);
	struct rdma_cm_id *id;

	MUST(rdma_create_ep(&id, info, NULL, &attr) == 0);
	rdma_freeaddrinfo(info);
	return id;
}

static void expect(struct rdma_cm_id *id, int (*get)(struct rdma_cm_id *, struct ibv_wc *),
		   const void *context)
{
	struct ibv_wc wc;

	MUST(get(id, &wc) == 1);
	MUST(wc.status == IBV_WC_SUCCESS);
	MUST(wc.wr_id == (uintptr_t)context);
}

/* Receive into two halves of the buffer, then into all of it. */
static void receive(struct rdma_cm_id *id, struct ibv_mr *mr)
{
	struct ibv_sge halves[] = {{(uintptr_t)received, HALF, mr->lkey},
				   {(uintptr_t)received + HALF, HALF, mr->lkey}};

	MUST(rdma_post_recvv(id, &halves, halves, 2) == 0);
	expect(id, rdma_get_recv_comp, &halves);
	MUST(memcmp(received, message, BYTES) == 0);
	MUST(rdma_post_recv(id, received, received, BYTES, mr) == 0);
}

static void *serve(void *arg)
{
	struct rdma_cm_id *listener = arg, *id;
	struct rdma_conn_param param = {.responder_resources = 1, .rnr_retry_count = 7};
	struct ibv_mr *read, *write, *mr;
	struct offer offer;

	MUST(rdma_get_request(listener, &id) == 0);
	read = rdma_reg_read(id, served, sizeof(served));
	write = rdma_reg_write(id, written, sizeof(written));
	mr = rdma_reg_msgs(id, received, sizeof(received));
	MUST(read && write && mr);
	offer = (struct offer){(uintptr_t)served, (uintptr_t)written, read->rkey, write->rkey};
	param.private_data = &offer;
	param.private_data_len = sizeof(offer);
	MUST(rdma_accept(id, &param) == 0);
	receive(id, mr);
	expect(id, rdma_get_recv_comp, received);
	/* The client disconnects first here; either side may. */
	MUST(rdma_disconnect(id) == 0);
	MUST(rdma_dereg_mr(read) == 0 && rdma_dereg_mr(write) == 0 && rdma_dereg_mr(mr) == 0);
	rdma_destroy_ep(id);
	return NULL;
}

static void move_data(struct rdma_cm_id *id, const struct offer *offer)
{
	struct ibv_mr *from = rdma_reg_msgs(id, message, BYTES);
	struct ibv_mr *to = rdma_reg_msgs(id, fetched, BYTES);
	struct ibv_sge halves[] = {{(uintptr_t)message, HALF, from->lkey},
				   {(uintptr_t)message + HALF, HALF, from->lkey}};
	struct ibv_sge into[] = {{(uintptr_t)fetched, HALF, to->lkey},
				 {(uintptr_t)fetched + HALF, HALF, to->lkey}};

	MUST(rdma_post_read(id, fetched, fetched, BYTES, to, 0, offer->read_addr,
			    offer->read_key) == 0);
	expect(id, rdma_get_send_comp, fetched);
	MUST(memcmp(fetched, served, BYTES) == 0);
	memset(fetched, 0, BYTES);
	MUST(rdma_post_readv(id, into, into, 2, 0, offer->read_addr, offer->read_key) == 0);
	expect(id, rdma_get_send_comp, into);
	MUST(memcmp(fetched, served, BYTES) == 0);
	MUST(rdma_post_write(id, message, message, HALF, from, 0, offer->write_addr,
			     offer->write_key) == 0);
	expect(id, rdma_get_send_comp, message);
	MUST(memcmp(written, message, HALF) == 0);
	MUST(rdma_post_writev(id, halves, halves, 2, 0, offer->write_addr, offer->write_key) == 0);
	expect(id, rdma_get_send_comp, halves);
	MUST(memcmp(written, message, BYTES) == 0);
	MUST(rdma_post_sendv(id, halves, halves, 2, 0) == 0);
	expect(id, rdma_get_send_comp, halves);
	MUST(rdma_post_send(id, message, message, BYTES, from, 0) == 0);
	expect(id, rdma_get_send_comp, message);
	MUST(rdma_dereg_mr(from) == 0 && rdma_dereg_mr(to) == 0);
}

static void connected(void)
{
	struct rdma_conn_param param = {
		.initiator_depth = 1, .retry_count = 7, .rnr_retry_count = 7};
	struct rdma_cm_id *listener = create(RAI_PASSIVE, RDMA_PS_TCP, IBV_QPT_RC), *id;
	struct offer offer;
	pthread_t thread;

	MUST(rdma_listen(listener, 1) == 0);
	MUST(pthread_create(&thread, NULL, serve, listener) == 0);
	id = create(0, RDMA_PS_TCP, IBV_QPT_RC);
	MUST(rdma_connect(id, &param) == 0);
	MUST(id->event && id->event->param.conn.private_data_len >= sizeof(offer));
	memcpy(&offer, id->event->param.conn.private_data, sizeof(offer));
	move_data(id, &offer);
	MUST(rdma_disconnect(id) == 0);
	MUST(pthread_join(thread, NULL) == 0);
	rdma_destroy_ep(id);
	rdma_destroy_ep(listener);
}

static void *serve_datagrams(void *arg)
{
	struct rdma_cm_id *listener = arg, *id;
	struct rdma_conn_param param = {.qp_num = 0};
	char room[BYTES + sizeof(struct ibv_grh)];
	struct ibv_mr *mr;

	MUST(rdma_get_request(listener, &id) == 0);
	mr = rdma_reg_msgs(id, room, sizeof(room));
	MUST(mr && rdma_post_recv(id, room, room, HALF + sizeof(struct ibv_grh), mr) == 0);
	param.qp_num = id->qp->qp_num;
	MUST(rdma_accept(id, &param) == 0);
	expect(id, rdma_get_recv_comp, room);
	MUST(memcmp(room + sizeof(struct ibv_grh), message, HALF / 4) == 0);
	MUST(rdma_dereg_mr(mr) == 0);
	rdma_destroy_ep(id);
	return NULL;
}

static void datagrams(void)
{
	struct rdma_cm_id *listener = create(RAI_PASSIVE, RDMA_PS_UDP, IBV_QPT_UD), *id;
	struct rdma_ud_param *ud;
	struct ibv_mr *mr;
	struct ibv_ah *ah;
	pthread_t thread;

	MUST(rdma_listen(listener, 1) == 0);
	MUST(pthread_create(&thread, NULL, serve_datagrams, listener) == 0);
	id = create(0, RDMA_PS_UDP, IBV_QPT_UD);
	mr = rdma_reg_msgs(id, message, BYTES);
	MUST(rdma_connect(id, NULL) == 0);
	MUST(id->event && id->event->event == RDMA_CM_EVENT_ESTABLISHED);
	ud = &id->event->param.ud;
	MUST(ud->qkey == RDMA_UDP_QKEY);
	ah = ibv_create_ah(id->pd, &ud->ah_attr);
	MUST(mr && ah);
	MUST(rdma_post_ud_send(id, message, message, HALF / 4, mr, 0, ah, ud->qp_num) == 0);
	expect(id, rdma_get_send_comp, message);
	MUST(pthread_join(thread, NULL) == 0);
	MUST(ibv_destroy_ah(ah) == 0 && rdma_dereg_mr(mr) == 0);
	rdma_destroy_ep(id);
	rdma_destroy_ep(listener);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*expect)(void);
	} all[] = {{"connected", connected}, {"datagrams", datagrams}};

	for (size_t i = 0; i < BYTES; i++) {
		served[i] = (char)(i * 7);
		message[i] = (char)(i * 13 + 5);
	}
	for (size_t i = 0; argc == 2 && i < sizeof(all) / sizeof(all[0]); i++) {
		if (strcmp(argv[1], all[i].name) == 0) {
			all[i].expect();
			return 0;
		}
	}
	return 2;
}
