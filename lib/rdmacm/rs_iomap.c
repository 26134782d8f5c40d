/* SPDX-License-Identifier: BSD-3-Clause */
/* Mappings: memory of a program that the program on the other side writes directly. */
#include <stdlib.h>
#include <sys/mman.h>

#include "rs.h"

#define CHUNK 16384 /* bytes of one WRITE */

/*
 * Read a mapping once. The peer may overwrite it at the same time with the next mapping of this
 * index. The message for that mapping then makes us read again. The bytes are in local byte order.
 */
__attribute__((no_sanitize("thread"))) static struct rs_iomap
read_once(const volatile struct rs_iomap_wire *wire)
{
	return (struct rs_iomap){
		.offset = wire->offset,
		.window = {.addr = wire->window.addr,
			   .key = wire->window.key,
			   .length = wire->window.length},
	};
}

int rs_iomap_take(struct rsocket *s, uint32_t index)
{
	if (index >= s->options.iomaps)
		return -EPROTO;
	s->iomaps[index] = read_once(&s->link.target->iomaps[index]);
	return 0;
}

static void forget(struct rsocket *s, struct rs_mapping *mapping)
{
	TAILQ_REMOVE(&s->mappings, mapping, next);
	s->untold -= mapping->untold;
	if (mapping->index >= 0)
		s->taken_indices[mapping->index] = 0;
	free(mapping);
}

void rs_iomap_end(struct rsocket *s)
{
	struct rs_mapping *mapping;

	while ((mapping = TAILQ_FIRST(&s->mappings)) != NULL) {
		if (mapping->mr)
			ibv_dereg_mr(mapping->mr);
		forget(s, mapping);
	}
}

/* Skip the end of the buffer if it is too short for the message. Return the bytes skipped. */
static uint32_t skip_end(struct rsocket *s, uint32_t len)
{
	const uint32_t fit = rs_out_fit(&s->out, len);

	if (fit == len || len <= s->link.inline_bytes)
		return 0;
	rs_out_take_buffer(&s->out, fit);
	return fit;
}

static int tell(struct rsocket *s, const struct rs_mapping *mapping)
{
	const struct rs_hello *peer = &s->peer;
	const struct rs_iomap iomap = {
		.offset = mapping->offset,
		.window = {.addr = (uint64_t)(uintptr_t)mapping->memory,
			   .key = mapping->mr ? mapping->mr->rkey : 0,
			   .length = mapping->mr ? (uint32_t)mapping->len : 0},
	};
	const uint32_t skipped = skip_end(s, sizeof(struct rs_iomap_wire));
	const bool is_inline = sizeof(struct rs_iomap_wire) <= s->link.inline_bytes;
	struct rs_iomap_wire wire;
	void *place = is_inline ? (void *)&wire : s->out.buffer + s->out.tail;
	struct ibv_sge sge = {
		.addr = (uintptr_t)place, .length = sizeof(wire), .lkey = s->link.buffer_mr->lkey};
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.send_flags = is_inline ? IBV_SEND_INLINE : 0,
		.sg_list = &sge,
		.num_sge = 1,
		.imm_data = rte_cpu_to_be_32(rs_imm(RS_OP_IOMAP, (uint32_t)mapping->index)),
		.wr.rdma.remote_addr = peer->target.addr +
				       peer->target.length * sizeof(struct rs_window_wire) +
				       (uint32_t)mapping->index * sizeof(wire),
		.wr.rdma.rkey = peer->target.key,
	};

	rs_wire_put_iomap(&wire, &iomap, peer->big_endian);
	if (!is_inline) {
		/* A place in the buffer is not aligned. */
		memcpy(place, &wire, sizeof(wire));
		rs_out_take_buffer(&s->out, sizeof(wire));
	}
	wr.wr_id = rs_message_wr_id(RS_OP_DATA, is_inline ? 0 : skipped + sizeof(wire));
	rs_out_take_message(&s->out);
	return rs_message_post(s, &wr);
}

int rs_iomap_tell(struct rsocket *s)
{
	struct rs_mapping *mapping, *next;

	for (mapping = TAILQ_FIRST(&s->mappings); mapping && s->untold > 0; mapping = next) {
		int rc;

		next = TAILQ_NEXT(mapping, next);
		if (!mapping->untold)
			continue;
		if (s->state != RS_CONNECTED || !rs_out_may_message(&s->out))
			return -EAGAIN;
		rc = tell(s, mapping);
		if (rc != 0)
			return rc;
		mapping->untold = false;
		s->untold--;
		if (!mapping->mr)
			forget(s, mapping);
	}
	return 0;
}

/* Take a free index of the peer's table. */
static int take_index(struct rsocket *s, struct rs_mapping *mapping)
{
	uint8_t *place;

	if (!s->taken_indices)
		s->taken_indices = calloc((size_t)s->peer.iomaps + 1, 1);
	if (!s->taken_indices)
		return -ENOMEM;
	place = memchr(s->taken_indices, 0, s->peer.iomaps);
	if (!place)
		return -ENOMEM;
	*place = 1;
	mapping->index = (int)(place - s->taken_indices);
	mapping->untold = true;
	s->untold++;
	return 0;
}

static int check_map(const struct rsocket *s, size_t len, int prot, int flags)
{
	if (s->type != SOCK_STREAM)
		return -EOPNOTSUPP;
	/* The peer's hello is known in these states. */
	if (s->state != RS_ACCEPTED && s->state != RS_CONNECTED)
		return -ENOTCONN;
	/* The wire format has 32 bits for a length. */
	if (prot & ~PROT_WRITE || flags != 0 || len == 0 || len > UINT32_MAX)
		return -EINVAL;
	return 0;
}

static int map(struct rsocket *s, void *buf, size_t len, int prot, uint64_t offset)
{
	const bool remote = (prot & PROT_WRITE) != 0;
	struct rs_mapping *mapping = calloc(1, sizeof(*mapping));
	int rc = 0;

	if (!mapping)
		return -ENOMEM;
	*mapping = (struct rs_mapping){.memory = buf, .len = len, .offset = offset, .index = -1};
	TAILQ_INSERT_TAIL(&s->mappings, mapping, next);
	mapping->mr = ibv_reg_mr(s->id->pd, buf, len,
				 IBV_ACCESS_LOCAL_WRITE | (remote ? IBV_ACCESS_REMOTE_WRITE : 0));
	if (!mapping->mr)
		rc = -errno;
	if (rc == 0 && remote)
		rc = take_index(s, mapping);
	if (rc == 0)
		return 0;
	if (mapping->mr)
		ibv_dereg_mr(mapping->mr);
	forget(s, mapping);
	return rc;
}

off_t riomap(int socket, void *buf, size_t len, int prot, int flags, off_t offset)
{
	struct rsocket *s = rs_table_lock(socket);
	int rc;

	if (!s)
		return id_result(-EBADF);
	if (offset == -1)
		offset = (off_t)(uintptr_t)buf;
	rs_wait_progress(s);
	rc = check_map(s, len, prot, flags);
	if (rc == 0)
		rc = map(s, buf, len, prot, (uint64_t)offset);
	/* Send the mapping now if possible; otherwise the next send call sends it before its data.
	 */
	if (rc == 0)
		(void)rs_iomap_tell(s);
	rs_table_unlock(s);
	return rc == 0 ? offset : id_result(rc);
}

static struct rs_mapping *find_mapping(struct rsocket *s, const void *buf, size_t len)
{
	struct rs_mapping *mapping;

	TAILQ_FOREACH (mapping, &s->mappings, next) {
		if (mapping->mr && mapping->memory == buf && mapping->len == len)
			return mapping;
	}
	return NULL;
}

/* Unmap memory. The peer is told that the index is empty before another mapping gets the index. */
static int unmap(struct rsocket *s, const void *buf, size_t len)
{
	struct rs_mapping *mapping = find_mapping(s, buf, len);

	if (!mapping)
		return -EINVAL;
	ibv_dereg_mr(mapping->mr);
	mapping->mr = NULL;
	if (mapping->index < 0 || mapping->untold || s->state == RS_ENDED) {
		forget(s, mapping);
		return 0;
	}
	mapping->untold = true;
	s->untold++;
	(void)rs_iomap_tell(s);
	return 0;
}

int riounmap(int socket, void *buf, size_t len)
{
	struct rsocket *s = rs_table_lock(socket);
	int rc;

	if (!s)
		return id_result(-EBADF);
	rc = unmap(s, buf, len);
	rs_table_unlock(s);
	return id_result(rc);
}

static bool is_direct_ready(const struct rsocket *s)
{
	return s->state != RS_CONNECTED || s->shut & RS_SHUT_WRITE || rs_out_has_room(&s->out);
}

/* Find the peer's memory at an offset. */
static bool find_window(const struct rsocket *s, uint64_t offset, struct rs_window *at)
{
	for (size_t i = 0; i < s->options.iomaps; i++) {
		const struct rs_iomap *iomap = &s->iomaps[i];
		const uint64_t from = offset - iomap->offset;

		if (from >= iomap->window.length)
			continue;
		*at = iomap->window;
		at->addr += from;
		at->length -= (uint32_t)from;
		return true;
	}
	return false;
}

/* Write as many bytes as are contiguous in the source and in the peer's memory. Return the bytes,
 * or -errno. */
static ssize_t write_chunk(struct rsocket *s, struct rs_cursor *from, size_t left, uint64_t offset)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};
	struct rs_window at;
	bool is_inline;
	uint32_t len;
	int rc;

	if (!find_window(s, offset, &at))
		return -EINVAL;
	at.length = RTE_MIN(at.length, (uint32_t)CHUNK);
	len = rs_out_choose(&s->out, RTE_MIN(left, (size_t)at.length), s->link.inline_bytes,
			    &is_inline);
	wr.wr.rdma.remote_addr = at.addr;
	wr.wr.rdma.rkey = at.key;
	rs_out_take_request(&s->out);
	rc = rs_send_write(s, from, len, is_inline, &wr);
	return rc == 0 ? (ssize_t)len : rc;
}

static ssize_t write_direct(struct rsocket *s, const struct iovec *iov, uint64_t offset, int flags)
{
	const bool nonblock = rs_is_nonblock(s, flags);
	struct rs_cursor from = {.iov = iov};
	size_t sent = 0;
	ssize_t rc = 0;

	if (s->type != SOCK_STREAM || flags & RS_FLAGS_REFUSED)
		return -EOPNOTSUPP;
	while (rc >= 0 && sent < iov->iov_len) {
		rc = rs_wait_for(s, is_direct_ready, nonblock, s->options.send_timeout_ms);
		if (rc == 0)
			rc = rs_send_check(s);
		if (rc == 0)
			rc = write_chunk(s, &from, iov->iov_len - sent, offset + sent);
		if (rc > 0)
			sent += (size_t)rc;
	}
	return rs_send_result(s, sent, rc);
}

size_t riowrite(int socket, const void *buf, size_t count, off_t offset, int flags)
{
	const struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = count};
	struct rsocket *s = rs_table_lock(socket);
	ssize_t rc;

	if (!s)
		return (size_t)rs_result(-EBADF);
	rc = write_direct(s, &iov, (uint64_t)offset, flags);
	rs_table_unlock(s);
	return (size_t)rs_result(rc);
}
