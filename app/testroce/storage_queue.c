/* SPDX-License-Identifier: BSD-3-Clause */
/* Collects work requests of mode storage, and posts them together. */
#include "storage_queue.h"

static void queue_clear(struct storage_queue *queue)
{
	queue->sends = NULL;
	queue->send_tail = &queue->sends;
	queue->receives = NULL;
	queue->receive_tail = &queue->receives;
}

void storage_queue_init(struct storage_queue *queue, struct ibv_qp *qp)
{
	queue->qp = qp;
	queue->is_ready = false;
	queue_clear(queue);
}

static void queue_make_ready(struct storage_ready *ready, struct storage_queue *queue)
{
	if (queue->is_ready)
		return;
	queue->is_ready = true;
	STAILQ_INSERT_TAIL(ready, queue, link);
}

void storage_queue_send(struct storage_ready *ready, struct storage_queue *queue,
			struct ibv_send_wr *first, struct ibv_send_wr *last)
{
	last->next = NULL;
	*queue->send_tail = first;
	queue->send_tail = &last->next;
	queue_make_ready(ready, queue);
}

void storage_queue_receive(struct storage_ready *ready, struct storage_queue *queue,
			   struct ibv_recv_wr *wr)
{
	wr->next = NULL;
	*queue->receive_tail = wr;
	queue->receive_tail = &wr->next;
	queue_make_ready(ready, queue);
}

/* The receive requests go first: what is sent makes the peer send messages for them. */
int storage_queue_post(struct storage_ready *ready)
{
	struct ibv_recv_wr *bad_receive;
	struct ibv_send_wr *bad_send;
	struct storage_queue *queue;
	int rc = 0;

	while (rc == 0 && (queue = STAILQ_FIRST(ready))) {
		STAILQ_REMOVE_HEAD(ready, link);
		queue->is_ready = false;
		if (queue->receives)
			rc = ibv_post_recv(queue->qp, queue->receives, &bad_receive);
		if (rc == 0 && queue->sends)
			rc = ibv_post_send(queue->qp, queue->sends, &bad_send);
		queue_clear(queue);
	}
	return -rc;
}
