/* SPDX-License-Identifier: BSD-3-Clause */
/* Create and close rsockets, and return their addresses. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "rs.h"
#include "rs_datagram.h"

int rs_socket_watch(struct rsocket *s, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	return epoll_ctl(s->fd, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

/* Create the event channel and the id of a stream. */
static int prepare_stream(struct rsocket *s, bool is_child)
{
	s->channel = rdma_create_event_channel();
	if (!s->channel)
		return -errno;
	if (fcntl(s->channel->fd, F_SETFL, O_NONBLOCK) != 0)
		return -errno;
	if (!is_child && rdma_create_id(s->channel, &s->id, s, RDMA_PS_TCP) != 0)
		return -errno;
	return rs_socket_watch(s, s->channel->fd);
}

static struct rsocket *allocate(int domain, int type, const struct rsocket *listener)
{
	struct rsocket *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->domain = domain;
	s->type = type;
	s->pid = getpid();
	s->keepalive_fd = -1;
	if (listener) {
		s->options = listener->options;
	} else {
		rs_config_get(&s->options);
		rs_option_init(&s->options);
	}
	pthread_mutex_init(&s->lock, NULL);
	LIST_INIT(&s->wakers);
	STAILQ_INIT(&s->backlog);
	TAILQ_INIT(&s->mappings);
	s->fd = epoll_create1(0);
	return s;
}

struct rsocket *rs_socket_create(int domain, int type, const struct rsocket *listener)
{
	struct rsocket *s = allocate(domain, type, listener);
	int rc;

	if (!s) {
		errno = ENOMEM;
		return NULL;
	}
	rc = s->fd < 0 ? -errno : 0;
	if (rc == 0)
		rc = type == SOCK_STREAM ? prepare_stream(s, listener != NULL)
					 : rs_datagram_prepare(s);
	if (rc == 0)
		rc = rs_table_add(s);
	if (rc == 0)
		return s;
	rs_socket_free(s);
	errno = -rc;
	return NULL;
}

void rs_socket_free(struct rsocket *s)
{
	/* Do not touch the connections in a child after fork(): they belong to the parent. */
	if (s->pid == getpid()) {
		rs_iomap_end(s);
		rs_link_destroy(s);
		rs_datagram_end(s);
		if (s->id)
			rdma_destroy_id(s->id);
		rdma_destroy_event_channel(s->channel);
	}
	if (s->fd >= 0)
		close(s->fd);
	pthread_mutex_destroy(&s->lock);
	free(s->route);
	free(s->iomaps);
	free(s->taken_indices);
	free(s);
}

int rs_socket_close(struct rsocket *s)
{
	if (!rs_table_remove(s))
		return -EBADF;
	/* Do not take the lock in a child: another thread of the parent may have held it during
	 * fork(). */
	if (s->pid != getpid())
		return 0;
	pthread_mutex_lock(&s->lock);
	if (s->type == SOCK_STREAM)
		(void)rs_shutdown_stream(s, SHUT_RDWR);
	rs_keepalive_end(s);
	rs_listen_end(s);
	rs_datagram_close(s);
	s->closed = true;
	rs_wait_changed(s);
	pthread_mutex_unlock(&s->lock);
	return 0;
}

static int check_kind(int domain, int type, int protocol)
{
	if (domain != AF_INET && domain != AF_INET6)
		return -EAFNOSUPPORT;
	if (type == SOCK_STREAM)
		return protocol == 0 || protocol == IPPROTO_TCP ? 0 : -EPROTONOSUPPORT;
	if (type == SOCK_DGRAM)
		return protocol == 0 || protocol == IPPROTO_UDP ? 0 : -EPROTONOSUPPORT;
	return -ESOCKTNOSUPPORT;
}

int rsocket(int domain, int type, int protocol)
{
	const int kind = type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK);
	const int rc = check_kind(domain, kind, protocol);
	struct rsocket *s;

	if (rc != 0)
		return id_result(rc);
	s = rs_socket_create(domain, kind, NULL);
	if (!s)
		return -1;
	if (type & SOCK_CLOEXEC)
		(void)fcntl(s->fd, F_SETFD, FD_CLOEXEC);
	if (type & SOCK_NONBLOCK)
		s->flags = O_NONBLOCK;
	return s->fd;
}

int rclose(int socket)
{
	struct rsocket *s = rs_table_get(socket);
	int rc;

	if (!s)
		return id_result(-EBADF);
	rc = rs_socket_close(s);
	/* The last reference closes the descriptor. The program may use the number again when this
	 * call returns, as dup2(2) does. */
	if (rc == 0 && s->pid == getpid())
		rs_table_await(s);
	rs_table_put(s);
	return id_result(rc);
}

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
