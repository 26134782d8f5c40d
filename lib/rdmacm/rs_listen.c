/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Listen and accept. The service's thread accepts requests as they arrive, as the kernel does for
 * TCP. So a peer is connected before the program calls raccept. The thread stops accepting when the
 * backlog is full. Further requests then wait in the connection manager, which drops requests when
 * its own backlog is full.
 */
#include <fcntl.h>
#include <string.h>

#include "rs.h"

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
