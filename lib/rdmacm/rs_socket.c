/* SPDX-License-Identifier: BSD-3-Clause */
/* Create and close rsockets, listen and accept, and return addresses. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "rs.h"
#include "rs_datagram.h"

#define BACKLOG_MAX 1024
#define BURST	    16 /* requests of a listener in a row; the listener is locked meanwhile */

/* A copy of a request. The event itself is acknowledged before the request is accepted. */
struct request {
	struct rdma_cm_id *id;
	struct rdma_conn_param param;
	uint8_t hello[sizeof(struct rs_hello_wire)];
	size_t hello_len;
};

static int answer(struct rsocket *child, const struct request *request)
{
	struct rdma_conn_param param = request->param;
	struct rs_hello_wire hello;
	int rc = rs_link_create(child);

	if (rc == 0)
		rc = rs_link_take_hello(child, request->hello, request->hello_len);
	if (rc != 0)
		return rc;
	rs_link_say_hello(child, &hello);
	param.private_data = &hello;
	param.private_data_len = sizeof(hello);
	child->state = RS_ACCEPTED;
	return rdma_accept(child->id, &param) == 0 ? 0 : -errno;
}

/* Create an rsocket for a request and accept it. Return NULL if the request was rejected. */
static struct rsocket *accept_request(const struct rsocket *listener, const struct request *request)
{
	struct rsocket *child = rs_socket_create(listener->domain, SOCK_STREAM, listener);

	if (!child) {
		(void)rdma_reject(request->id, NULL, 0);
		rdma_destroy_id(request->id);
		return NULL;
	}
	child->id = request->id;
	child->id->context = child;
	if (rdma_migrate_id(child->id, child->channel) == 0 && answer(child, request) == 0)
		return child;
	(void)rdma_reject(child->id, NULL, 0);
	rs_table_remove(child);
	return NULL;
}

/* Take the oldest request out of the channel. Wake the program's threads if the device is lost. */
static bool take_request(struct rsocket *s, struct request *request)
{
	struct rdma_cm_event *event;

	while (rdma_get_cm_event(s->channel, &event) == 0) {
		const bool asked = event->event == RDMA_CM_EVENT_CONNECT_REQUEST;

		if (asked) {
			const struct rdma_conn_param *param = &event->param.conn;

			request->id = event->id;
			request->param = *param;
			request->hello_len =
				RTE_MIN(param->private_data ? param->private_data_len : 0,
					sizeof(request->hello));
			memcpy(request->hello, param->private_data, request->hello_len);
		} else if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL) {
			rs_wait_changed(s);
		}
		rdma_ack_cm_event(event);
		if (asked)
			return true;
	}
	return false;
}

void rs_listen_serve(struct rsocket *s)
{
	struct request request;

	pthread_mutex_lock(&s->lock);
	for (int i = 0; i < BURST && !s->closed && s->state == RS_LISTENING &&
			s->waiting < s->backlog_max && take_request(s, &request);
	     i++) {
		struct rsocket *child = accept_request(s, &request);

		if (!child)
			continue;
		rs_table_hold(child);
		STAILQ_INSERT_TAIL(&s->backlog, child, next);
		s->waiting++;
		rs_wait_changed(s);
	}
	/* Stop watching the channel, which may stay readable. raccept starts watching it again. */
	if (s->state == RS_LISTENING && s->waiting >= s->backlog_max)
		rs_service_remove(s->channel->fd);
	pthread_mutex_unlock(&s->lock);
}

static int start(struct rsocket *s, int backlog)
{
	int rc;

	if (s->type != SOCK_STREAM)
		return -EOPNOTSUPP;
	if (s->state == RS_LISTENING)
		return 0;
	if (s->state > RS_BOUND)
		return -EINVAL;
	s->backlog_max = (unsigned int)RTE_MAX(1, RTE_MIN(backlog, BACKLOG_MAX));
	if (rdma_listen(s->id, (int)s->backlog_max) != 0)
		return -errno;
	s->state = RS_LISTENING;
	rc = rs_service_add(s, s->channel->fd, RS_DUTY_LISTEN);
	if (rc != 0)
		s->state = RS_ENDED;
	return rc;
}

int rlisten(int socket, int backlog)
{
	struct rsocket *s = rs_table_lock(socket);
	int rc;

	if (!s)
		return id_result(-EBADF);
	rc = start(s, backlog);
	rs_table_unlock(s);
	return id_result(rc);
}

void rs_listen_end(struct rsocket *s)
{
	struct rsocket *child;

	if (s->state != RS_LISTENING)
		return;
	rs_service_remove(s->channel->fd);
	s->state = RS_ENDED;
	while ((child = STAILQ_FIRST(&s->backlog)) != NULL) {
		STAILQ_REMOVE_HEAD(&s->backlog, next);
		/* The program has sent nothing on it, so there is nothing to wait for. */
		child->options.linger.l_onoff = 1;
		child->options.linger.l_linger = 0;
		(void)rs_socket_close(child);
		rs_table_drop(child);
	}
	s->waiting = 0;
	/* The port is free when the caller returns, though other threads may still use the rsocket.
	 */
	rdma_destroy_id(s->id);
	s->id = NULL;
}

bool rs_listen_is_lost(const struct rsocket *s)
{
	return s->state == RS_LISTENING && id_state(cm_id_of(s->id)) == ID_REMOVED;
}

/* Return true if raccept need not wait. */
static bool is_ready(const struct rsocket *s)
{
	return !STAILQ_EMPTY(&s->backlog) || s->state != RS_LISTENING || rs_listen_is_lost(s);
}

static struct rsocket *take_child(struct rsocket *s)
{
	struct rsocket *child = STAILQ_FIRST(&s->backlog);

	STAILQ_REMOVE_HEAD(&s->backlog, next);
	if (s->waiting-- == s->backlog_max)
		(void)rs_service_add(s, s->channel->fd, RS_DUTY_LISTEN);
	return child;
}

static int accept_child(struct rsocket *s, struct sockaddr *addr, socklen_t *addrlen)
{
	struct rsocket *child;
	int rc;

	if (s->type != SOCK_STREAM)
		return -EOPNOTSUPP;
	if (s->state != RS_LISTENING)
		return -EINVAL;
	rc = rs_wait_for(s, is_ready, rs_is_nonblock(s, 0), s->options.recv_timeout_ms);
	if (rc != 0)
		return rc;
	if (s->state != RS_LISTENING)
		return -EINVAL;
	if (STAILQ_EMPTY(&s->backlog))
		return -ENETDOWN;
	child = take_child(s);
	rc = child->fd;
	if (addr && addrlen)
		(void)rgetpeername(rc, addr, addrlen);
	rs_table_drop(child);
	return rc;
}

int raccept(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct rsocket *s = rs_table_lock(socket);
	int rc;

	if (!s)
		return id_result(-EBADF);
	rc = accept_child(s, addr, addrlen);
	rs_table_unlock(s);
	return (int)rs_result(rc);
}

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
