/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The protocol of mode storage: what NVMe over Fabrics sends for a read and a write of one block.
 * The initiator SENDs a command, and the target answers it with a response. In between the target
 * WRITEs the block to the initiator, or READs it from there. A small block that is written comes
 * with its command, in the capsule, as far as the plan allows that.
 */
#ifndef TESTROCE_STORAGE_H
#define TESTROCE_STORAGE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <infiniband/verbs.h>

struct passive;
struct plan;
struct result;
struct run;

enum storage_op { STORAGE_READ, STORAGE_WRITE, STORAGE_OPS };

/* A command. Both sides run on machines of the same byte order (control_conn.h). */
struct storage_command {
	uint64_t block;
	uint64_t
		addr; /* of the block's bytes at the initiator; unused if they follow the command */
	uint32_t rkey;
	uint32_t number; /* identifies the request; the response returns it */
	uint32_t op;	 /* enum storage_op */
	uint8_t reserved[36];
};
static_assert(sizeof(struct storage_command) == 64, "the size of a command of NVMe");

struct storage_response {
	uint32_t number;
	int32_t status; /* 0, or -errno */
	uint64_t reserved;
};
static_assert(sizeof(struct storage_response) == 16, "the size of a completion of NVMe");

/* Offsets in a side's region, and its size. */
struct storage_layout {
	uint64_t disk;	   /* target: the blocks */
	uint64_t buffers;  /* a block of each request in flight */
	uint64_t capsules; /* the commands; at the target with room for the blocks they bring */
	uint64_t responses;
	uint64_t bytes;
	uint64_t buffer_bytes, capsule_bytes; /* strides */
};

/** Return the size of the disk in blocks. MT-safe. */
uint64_t storage_blocks(const struct plan *plan);

/** Return true if a written block comes with its command. MT-safe. */
bool storage_in_capsule(const struct plan *plan);

/** Lay out the region of a side. MT-safe. */
struct storage_layout storage_lay_initiator(const struct plan *plan);
struct storage_layout storage_lay_target(const struct plan *plan);

/**
 * Check a command, of which the peer determines every byte. MT-safe.
 *
 * @param bytes
 *   The length of the message.
 * @return
 *   0, or -EPROTO, -ERANGE.
 */
int storage_check_command(const struct plan *plan, const struct storage_command *command,
			  uint32_t bytes);

/* Work requests that wait until they are posted together, for each queue pair. */
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

/* The two sides, as struct mode has them. */
int storage_initiator_begin(struct run *run);
int storage_initiator_poll(struct run *run);
void storage_initiator_stats(const struct run *run, struct result *result);
uint64_t storage_initiator_qp_messages(const struct run *run, uint32_t qp);
void storage_initiator_end(struct run *run);

int storage_target_begin(struct passive *passive);
int storage_target_qp(struct passive *passive, unsigned int qp);
int storage_target_poll(struct passive *passive);

#endif
