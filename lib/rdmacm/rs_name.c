/* SPDX-License-Identifier: BSD-3-Clause */
/* The local and the peer address of an rsocket. */
#include <string.h>

#include "rs.h"
#include "rs_datagram.h"

void rs_name_copy(const void *from, struct sockaddr *addr, socklen_t *len)
{
	const socklen_t full = address_len(from);

	memcpy(addr, from, RTE_MIN(*len, full));
	*len = full;
}

/* Copy the local address. An unbound rsocket has an address of its family with all zeros. */
static void copy_own(const struct rsocket *s, struct sockaddr *addr, socklen_t *len)
{
	struct sockaddr_storage none = {.ss_family = (sa_family_t)s->domain};
	const struct sockaddr *own = s->id ? rdma_get_local_addr(s->id) : NULL;

	rs_name_copy(own && address_len(own) > 0 ? (const void *)own : &none, addr, len);
}

static int name_of(struct rsocket *s, bool peer, struct sockaddr *addr, socklen_t *len)
{
	if (!len || (!addr && *len > 0))
		return -EFAULT;
	if (s->datagrams)
		return rs_datagram_name(s, peer, addr, len);
	if (!peer) {
		copy_own(s, addr, len);
		return 0;
	}
	if (s->state < RS_ACCEPTED || (s->state == RS_ENDED && !s->link.qp))
		return -ENOTCONN;
	rs_name_copy(rdma_get_peer_addr(s->id), addr, len);
	return 0;
}

static int get_name(int socket, bool peer, struct sockaddr *addr, socklen_t *len)
{
	struct rsocket *s = rs_table_lock(socket);
	int rc;

	if (!s)
		return id_result(-EBADF);
	rs_wait_progress(s);
	rc = name_of(s, peer, addr, len);
	rs_table_unlock(s);
	return id_result(rc);
}

int rgetpeername(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	return get_name(socket, true, addr, addrlen);
}

int rgetsockname(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	return get_name(socket, false, addr, addrlen);
}
