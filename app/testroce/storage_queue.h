/* SPDX-License-Identifier: BSD-3-Clause */
/* Work requests of mode storage that wait until they are posted together, for each queue pair. */
#ifndef TESTROCE_STORAGE_QUEUE_H
#define TESTROCE_STORAGE_QUEUE_H

#include <stdbool.h>
#include <sys/queue.h>

#include <infiniband/verbs.h>

struct storage_queue {
	struct ibv_qp *qp;
	struct ibv_send_wr *sends, **send_tail;
	struct ibv_recv_wr *receives, **receive_tail;
	bool is_ready; /* in the list of those that have something to post */
	STAILQ_ENTRY(storage_queue) link;
};

/* The queues that have something to post. */
STAILQ_HEAD(storage_ready, storage_queue);

void storage_queue_init(struct storage_queue *queue, struct ibv_qp *qp);

/** Add the requests from `first` to `last`, which are a chain. */
void storage_queue_send(struct storage_ready *ready, struct storage_queue *queue,
			struct ibv_send_wr *first, struct ibv_send_wr *last);
void storage_queue_receive(struct storage_ready *ready, struct storage_queue *queue,
			   struct ibv_recv_wr *wr);

/** Post what was added, by one call for each queue pair and direction. Returns 0 or -errno. */
int storage_queue_post(struct storage_ready *ready);

#endif
