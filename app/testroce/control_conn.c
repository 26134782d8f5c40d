/* SPDX-License-Identifier: BSD-3-Clause */
/* The control connection: messages of one size over TCP. */
#include "control_conn.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "nic.h"
#include "passive.h"

#define CONNECT_TRIES	100
#define CONTROL_BACKLOG 64 /* more than the connections of one client */
#define PAUSE_NS	100000000
#define ANSWER_NS	UINT64_C(60000000000)

/* Parse "ADDR:PORT", "[ADDR]:PORT", "ADDR" or, to listen, "PORT". */
static void split(const char *where, bool listens, char host[64], char port[16])
{
	const char *colon = strrchr(where, ':');
	const char *end = colon ? colon : where + strlen(where);
	const bool is_ipv6 =
		colon && memchr(where, ':', (size_t)(colon - where)) && where[0] != '[';

	snprintf(port, 16, "%s", colon && !is_ipv6 ? colon + 1 : CONTROL_PORT);
	if (is_ipv6)
		end = where + strlen(where);
	if (!colon && listens && strspn(where, "0123456789") == strlen(where)) {
		snprintf(port, 16, "%s", where[0] ? where : CONTROL_PORT);
		end = where;
	}
	if (where[0] == '[' && end > where && end[-1] == ']') {
		where++;
		end--;
	}
	snprintf(host, 64, "%.*s", (int)(end - where), where);
}

static int control_look_up(const char *where, bool listens, struct addrinfo **found, char *error,
			   size_t error_size)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
				       .ai_flags = listens ? AI_PASSIVE : 0};
	char host[64], port[16];
	int rc;

	split(where, listens, host, port);
	rc = getaddrinfo(host[0] ? host : NULL, port, &hints, found);
	if (rc == 0)
		return 0;
	snprintf(error, error_size, "%s: %s", where, gai_strerror(rc));
	return -EADDRNOTAVAIL;
}

int control_listen(const char *where, char *error, size_t error_size)
{
	const int one = 1;
	struct addrinfo *found;
	int fd, rc;

	rc = control_look_up(where, true, &found, error, error_size);
	if (rc != 0)
		return rc;
	fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (fd < 0 || bind(fd, found->ai_addr, found->ai_addrlen) != 0 ||
	    listen(fd, CONTROL_BACKLOG) != 0) {
		rc = -errno;
		snprintf(error, error_size, "cannot listen at %s: %s", where, strerror(errno));
		if (fd >= 0)
			close(fd);
	}
	freeaddrinfo(found);
	return rc != 0 ? rc : fd;
}

static int control_try(const struct addrinfo *address)
{
	const int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int rc;

	if (fd < 0)
		return -errno;
	if (connect(fd, address->ai_addr, address->ai_addrlen) == 0)
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

/* Connect. Retry a refused connection up to so many times. */
static int control_dial(struct control *control, struct nic *nic, const char *where, int tries,
			char *error, size_t error_size)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	const int one = 1;
	struct addrinfo *found;
	int fd, rc;

	rc = control_look_up(where, false, &found, error, error_size);
	if (rc != 0)
		return rc;
	while ((fd = control_try(found)) == -ECONNREFUSED && --tries > 0) {
		nic_poll(nic);
		nanosleep(&pause, NULL);
	}
	freeaddrinfo(found);
	if (fd < 0) {
		snprintf(error, error_size, "cannot connect to %s: %s", where, strerror(-fd));
		return fd;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	fcntl(fd, F_SETFL, O_NONBLOCK);
	*control = (struct control){.nic = nic, .fd = fd, .where = where};
	return 0;
}

int control_connect(struct control *control, struct nic *nic, const char *where, char *error,
		    size_t error_size)
{
	/* Users often start both sides at the same moment. */
	return control_dial(control, nic, where, CONNECT_TRIES, error, error_size);
}

int control_renew(struct control *control, char *error, size_t error_size)
{
	if (!control->where || control->fd >= 0)
		return 0;
	return control_dial(control, control->nic, control->where, 1, error, error_size);
}

int control_connect_more(struct control *control, const struct control *first, struct nic *nic,
			 struct passive *local, char *error, size_t error_size)
{
	if (first->where)
		return control_dial(control, nic, first->where, 1, error, error_size);
	passive_init(local, nic);
	*control = (struct control){.nic = nic, .fd = -1, .local = local};
	return 0;
}

void control_init(struct control_message *message, enum control_kind kind)
{
	memset(message, 0, sizeof(*message));
	message->magic = CONTROL_MAGIC;
	message->kind = kind;
}

static bool is_to_be_tried_again(ssize_t n)
{
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* Give the engine a poll. Returns an error if the caller must not wait any longer. */
static int control_wait(struct nic *nic, uint64_t start_tsc, const volatile sig_atomic_t *stop)
{
	nic_poll(nic);
	if (stop && __atomic_load_n(stop, __ATOMIC_RELAXED))
		return -ECANCELED;
	return nic_ns(nic, rte_rdtsc() - start_tsc) > ANSWER_NS ? -ETIMEDOUT : 0;
}

int control_send(int fd, const struct control_message *message, struct nic *nic,
		 const volatile sig_atomic_t *stop)
{
	const uint64_t start_tsc = rte_rdtsc();
	size_t done = 0;
	int rc = 0;

	while (rc == 0 && done < sizeof(*message)) {
		const ssize_t n = send(fd, (const char *)message + done, sizeof(*message) - done,
				       MSG_NOSIGNAL);

		if (n < 0 && !is_to_be_tried_again(n))
			return -errno;
		done += n > 0 ? (size_t)n : 0;
		rc = control_wait(nic, start_tsc, stop);
	}
	return done == sizeof(*message) ? 0 : rc;
}

int control_recv(int fd, struct control_message *message, struct nic *nic,
		 const volatile sig_atomic_t *stop)
{
	const uint64_t start_tsc = rte_rdtsc();
	size_t done = 0;
	int rc = 0;

	while (rc == 0 && done < sizeof(*message)) {
		const ssize_t n = recv(fd, (char *)message + done, sizeof(*message) - done, 0);

		if (n == 0)
			return -ECONNRESET;
		if (n < 0 && !is_to_be_tried_again(n))
			return -errno;
		done += n > 0 ? (size_t)n : 0;
		rc = control_wait(nic, start_tsc, stop);
	}
	if (done < sizeof(*message))
		return rc;
	message->text[sizeof(message->text) - 1] = '\0';
	return message->magic == CONTROL_MAGIC ? 0 : -EPROTO;
}

int control_call(struct control *control, struct control_message *message)
{
	const uint32_t kind = message->kind;
	int rc = 0;

	if (!control->where) {
		passive_answer(control->local, message);
	} else {
		rc = control_send(control->fd, message, control->nic, NULL);
		if (rc == 0)
			rc = control_recv(control->fd, message, control->nic, NULL);
		if (rc == 0 && message->kind != kind)
			rc = -EPROTO;
	}
	if (rc != 0) {
		snprintf(message->text, sizeof(message->text), "the server: %s", strerror(-rc));
		control_close(control);
	}
	return rc != 0 ? rc : message->status;
}

void control_refuse(int fd, int rc, const char *reason)
{
	struct control_message message;

	control_init(&message, CONTROL_OPEN);
	message.status = rc;
	snprintf(message.text, sizeof(message.text), "%s", reason);
	/* The socket is new, so its buffer has room for a message. */
	send(fd, &message, sizeof(message), MSG_NOSIGNAL | MSG_DONTWAIT);
	close(fd);
}

void control_close(struct control *control)
{
	if (control->fd >= 0)
		close(control->fd);
	control->fd = -1;
}
