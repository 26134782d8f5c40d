/* A thread listens and receives; main connects and sends. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <rdma/rdma_verbs.h>

static struct rdma_cm_id *endpoint(int flags)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.sq_sig_all = 1,
	};
	struct rdma_addrinfo hints = {.ai_flags = flags, .ai_port_space = RDMA_PS_TCP}, *address;
	struct rdma_cm_id *id;

	assert(rdma_getaddrinfo("198.18.0.1", "7471", &hints, &address) == 0);
	assert(rdma_create_ep(&id, address, NULL, &attr) == 0);
	rdma_freeaddrinfo(address);
	return id;
}

static void *receive(void *listener)
{
	static char text[16];
	struct rdma_cm_id *id;
	struct ibv_wc wc;
	struct ibv_mr *mr;

	assert(rdma_get_request(listener, &id) == 0);
	mr = rdma_reg_msgs(id, text, sizeof(text));
	assert(mr && rdma_post_recv(id, NULL, text, sizeof(text), mr) == 0);
	assert(rdma_accept(id, NULL) == 0);
	assert(rdma_get_recv_comp(id, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	assert(rdma_dereg_mr(mr) == 0);
	return text;
}

int main(void)
{
	static char text[16] = "over RDMA";
	struct rdma_cm_id *listener = endpoint(RAI_PASSIVE), *id;
	pthread_t thread;
	struct ibv_wc wc;
	struct ibv_mr *mr;
	void *received;

	assert(rdma_listen(listener, 1) == 0);
	assert(pthread_create(&thread, NULL, receive, listener) == 0);
	id = endpoint(0);
	mr = rdma_reg_msgs(id, text, sizeof(text));
	assert(rdma_connect(id, NULL) == 0);
	assert(rdma_post_send(id, NULL, text, sizeof(text), mr, 0) == 0);
	assert(rdma_get_send_comp(id, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	assert(rdma_dereg_mr(mr) == 0);
	pthread_join(thread, &received);
	assert(strcmp(received, text) == 0);
	puts("received what was sent");
	return 0;
}
