/* SPDX-License-Identifier: BSD-3-Clause */
/* Attaches this process to an owner: sends the hello, and maps the shared memory, at any
 * address. */
#include "attach/attach.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "base/own.h"
#include "client.h"
#include "net/link.h"

#define WELCOME_MS 10000

/* SO_PEERCRED would name the process that made the socket, which may be the service manager instead
 * of the owner. */
void attach_ask_sender(int fd, int ask)
{
	if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &ask, sizeof(ask)) != 0)
		log_debug("the owner's process id is unknown: %s", strerror(errno));
}

static int attach_connect(const struct sockaddr_un *address)
{
	int fd, rc;

	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	attach_ask_sender(fd, 1);
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0)
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

void attach_close_fds(int *fds)
{
	for (int i = 0; i < SHARE_FDS; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
}

/* A socket at which this process has attached. The mappings stay until the process ends or executes
 * another program, whose list is empty again. */
struct attached {
	SLIST_ENTRY(attached) link;
	pid_t pid; /* a child of fork(2) has a copy of the list, but none of the mappings */
	/* the socket's file, which may have several names */
	dev_t dev;
	ino_t ino;
};

static SLIST_HEAD(, attached) attached_list = SLIST_HEAD_INITIALIZER(attached_list);

/* Note that this process attaches at a socket. Return true if it has certainly not attached there
 * before. */
static bool attach_note(const struct sockaddr_un *address)
{
	struct attached *attached;
	struct stat file;

	if (stat(address->sun_path, &file) != 0)
		return false;
	SLIST_FOREACH(attached, &attached_list, link)
	{
		if (attached->pid == getpid() && attached->dev == file.st_dev &&
		    attached->ino == file.st_ino)
			return false;
	}
	attached = calloc(1, sizeof(*attached));
	if (!attached)
		return false;
	attached->pid = getpid();
	attached->dev = file.st_dev;
	attached->ino = file.st_ino;
	SLIST_INSERT_HEAD(&attached_list, attached, link);
	return true;
}

/* Wait for a message of the owner, or for the end of the connection. 0, -ETIMEDOUT or -errno. */
static int attach_wait(int fd)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	int rc;

	do
		rc = poll(&poll_fd, 1, WELCOME_MS);
	while (rc < 0 && errno == EINTR);
	if (rc == 0)
		return -ETIMEDOUT;
	return rc < 0 ? -errno : 0;
}

/* Send a hello, and receive the welcome into `message`. */
static int attach_hello(int fd, struct share_message *message, int report_fd, int *fds,
			pid_t *owner)
{
	int rc;

	message->type = SHARE_HELLO;
	message->version = SHARE_VERSION;
	rc = message_send(fd, message, &report_fd, report_fd >= 0);
	/* Go on after -EPIPE: an owner that refuses us before our hello has already sent the
	 * reason. */
	if (rc != 0 && rc != -EPIPE)
		return rc;
	rc = attach_wait(fd);
	if (rc != 0)
		return rc;
	rc = message_receive_from(fd, message, fds, owner);
	attach_ask_sender(fd, 0);
	if (rc == 0 && message->type != SHARE_WELCOME)
		rc = -EPROTO;
	if (rc == 0)
		rc = message->result;
	/* Close descriptors after an error, too: an owner of another version may have sent some. */
	if (rc != 0)
		attach_close_fds(fds);
	return rc;
}

int attach_begin(struct share_client *client, struct share_message *message, int report_fd,
		 int *fds)
{
	int rc = attach_connect(&client->address);

	if (rc < 0)
		return rc;
	client->socket = rc;
	own_mark(client->socket);
	rc = attach_hello(client->socket, message, report_fd, fds, &client->owner_pid);
	if (rc != 0) {
		close(client->socket);
		return rc;
	}
	client->slot = message->welcome.slot;
	client->generation = message->welcome.generation;
	client->engines = message->welcome.engines;
	client->away.ms = message->away_ms;
	client->away.owner = client_peer_user(client->socket);
	client->away.pid = getpid();
	client->away.report_fd = report_fd;
	memcpy(client->away.token, message->token, sizeof(client->away.token));
	return 0;
}

static struct share_client *attach_new(void)
{
	struct share_client *client = calloc(1, sizeof(*client));

	if (!client)
		return NULL;
	pthread_mutex_init(&client->lock, NULL);
	pthread_mutex_init(&client->directs_lock, NULL);
	pthread_mutex_init(&client->xrc_lock, NULL);
	STAILQ_INIT(&client->xrc_in);
	STAILQ_INIT(&client->xrc_out);
	TAILQ_INIT(&client->away.promises);
	return client;
}

int attach_open(const char *path, uint32_t number, int report_fd, uint32_t engines,
		struct share_client **out, struct share_message *welcome, int *fds)
{
	struct share_client *client = attach_new();
	int rc;

	if (!client)
		return -ENOMEM;
	rc = share_socket_path(path, number, &client->address);
	memset(welcome, 0, sizeof(*welcome));
	welcome->engine.count = engines;
	welcome->holds_nothing = rc == 0 && attach_note(&client->address);
	if (rc == 0)
		rc = attach_begin(client, welcome, report_fd, fds);
	if (rc == 0)
		*out = client;
	else
		free(client);
	return rc;
}

void attach_learn(struct share_client *client, struct share_message *message,
		  struct share_facts *facts)
{
	struct share_welcome *welcome = &message->welcome;

	facts->qpn_first = welcome->qpn_first;
	facts->qpn_count = welcome->qpn_count;
	facts->ports = welcome->ports;
	welcome->name[sizeof(welcome->name) - 1] = '\0';
	snprintf(facts->name, sizeof(facts->name), "%s", welcome->name);
	facts->max_qp = welcome->max_qp;
	facts->max_memory = welcome->max_memory;
	welcome->cc[sizeof(welcome->cc) - 1] = '\0';
	snprintf(facts->cc, sizeof(facts->cc), "%s", welcome->cc);
	client->id_mask = welcome->id_mask;
	client->id_value = welcome->id_value;
	facts->owner_pid = client->owner_pid;
	welcome->unique[sizeof(welcome->unique) - 1] = '\0';
	snprintf(facts->unique, sizeof(facts->unique), "%s", welcome->unique);
}

static void *attach_map(int fd, size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (memory == MAP_FAILED)
		return NULL;
	/* A core file needs no packets, which are also those of other programs. */
	madvise(memory, bytes, MADV_DONTDUMP);
	return memory;
}

size_t attach_arena_bytes(const struct share_client *client, int fd)
{
	const size_t bytes = (size_t)client->buffers * client->buffer_stride;
	struct stat status;

	return fstat(fd, &status) == 0 ? RTE_MAX((size_t)status.st_size, bytes) : bytes;
}

void attach_init_rings(struct share_client *client)
{
	for (int kind = 0; kind < SHARE_RINGS; kind++)
		share_ring_init(&client->rings[kind],
				(uint8_t *)client->page +
					share_ring_offset((enum share_ring_kind)kind),
				share_ring_words((enum share_ring_kind)kind));
}

static int attach_memory(struct share_client *client, const struct share_welcome *welcome,
			 const int *fds)
{
	const size_t mbufs_bytes = welcome->buffers * sizeof(struct rte_mbuf);
	void *mbufs;

	client->buffers = welcome->buffers;
	client->buffer_bytes = welcome->buffer_bytes;
	client->buffer_stride = welcome->buffer_stride;
	client->quota = welcome->quota;
	client->arena_bytes = attach_arena_bytes(client, fds[SHARE_FD_ARENA]);
	client->page_bytes = share_ring_offset(SHARE_RINGS);
	memcpy(client->mac, welcome->mac, sizeof(client->mac));
	client->spares_icrc = welcome->spares_icrc;
	client->wake_fd = -1;
	client->owner_fd = fds[SHARE_FD_OWNER];
	client->process_fd = fds[SHARE_FD_PROCESS];
	own_mark(client->owner_fd);
	own_mark(client->process_fd);
	client->arena = attach_map(fds[SHARE_FD_ARENA], client->arena_bytes);
	client->page = attach_map(fds[SHARE_FD_PAGE], client->page_bytes);
	/* Map an mbuf for each buffer. Pages that are never used cost nothing. */
	mbufs = mmap(NULL, mbufs_bytes, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	close(fds[SHARE_FD_ARENA]);
	close(fds[SHARE_FD_PAGE]);
	client->mbufs = mbufs == MAP_FAILED ? NULL : mbufs;
	if (!client->arena || !client->page || !client->mbufs)
		return -ENOMEM;
	/* A child process does not need these mappings, and would keep the memory. */
	madvise(client->arena, client->arena_bytes, MADV_DONTFORK);
	madvise(client->page, client->page_bytes, MADV_DONTFORK);
	attach_init_rings(client);
	return client_make_pool(client);
}

/* Give back what attach_memory has taken before it failed. */
static void attach_release(const struct share_client *client)
{
	if (client->arena)
		munmap(client->arena, client->arena_bytes);
	if (client->page)
		munmap(client->page, client->page_bytes);
	if (client->mbufs)
		munmap(client->mbufs, client->buffers * sizeof(struct rte_mbuf));
	close(client->owner_fd);
	close(client->process_fd);
}

void attach_end(struct share_client *client)
{
	close(client->socket);
	free(client);
}

static void attach_give_up(struct share_client *client)
{
	attach_release(client);
	attach_end(client);
}

/* Make a port a client's. */
static void attach_set_port(struct share_client *client, struct port *port)
{
	client->port = port;
	taker_init(&client->taker);
	port->ops = &client_port_ops;
	port->ops_arg = client;
	port->pool = client->pool;
	port->kernel_beyond = client->psock != NULL;
	port->no_cancel_points = !client->psock;
	port->wake_fd = client->psock ? client->wake_fd : client->process_fd;
}

int attach_open_further(const struct share_client *first, uint32_t number, struct port *port,
			struct share_client **out)
{
	struct share_message message = {.engine = {.number = number,
						   .count = first->engines,
						   .slot = first->slot,
						   .generation = first->generation}};
	struct share_client *client = attach_new();
	int fds[SHARE_FDS];
	int rc;

	if (!client)
		return -ENOMEM;
	client->address = first->address;
	client->engine = number;
	rc = attach_begin(client, &message, -1, fds);
	if (rc != 0) {
		free(client);
		return rc;
	}
	client->engines = first->engines;
	rc = attach_memory(client, &message.welcome, fds);
	if (rc == 0 && fds[SHARE_FD_PSOCK] >= 0)
		(void)client_use_psock(client, &message.welcome, fds[SHARE_FD_PSOCK]);
	else if (fds[SHARE_FD_PSOCK] >= 0)
		close(fds[SHARE_FD_PSOCK]);
	if (rc != 0) {
		attach_give_up(client);
		return rc;
	}
	attach_set_port(client, port);
	*out = client;
	return 0;
}

static void attach_fill_link(struct link *link, struct share_client *client,
			     const struct share_message *message)
{
	const struct share_welcome *welcome = &message->welcome;
	struct port *port = &link->port;

	link_init_remote(link, &client_link_remote, client, &message->addresses);
	port_init(port, welcome->mtu_bytes);
	attach_set_port(client, port);
	/* A pool of its own for packets that are held back, because the process has few of the
	 * owner's buffers. */
	port->make_pool = client_make_private_pool;
	port->queues = client->engines;
	port->mbuf_bytes = welcome->buffer_bytes - RTE_PKTMBUF_HEADROOM;
	port->link_mbps = welcome->link_mbps;
	port->tsc_hz = welcome->tsc_hz;
	port->spares_icrc = welcome->spares_icrc;
	port->own_qpn_first = welcome->qpn_first;
	port->own_qpn_count = welcome->qpn_count;
	port->mac_is_random = welcome->mac_is_random;
	memcpy(port->mac, welcome->mac, sizeof(port->mac));
	port->started = true;
}

/* A program that has started before an upgrade has the libraries of that time. */
static void attach_say_version(const char *path, uint32_t version)
{
	if (version > SHARE_VERSION)
		log_error("uroced at %s is newer than the libraries of this program: start the "
			  "program again",
			  path);
	else
		log_error("uroced at %s is of another version than the libraries of this program: "
			  "restart uroced",
			  path);
}

int attach_error(const char *path, int rc, const struct share_message *welcome)
{
	switch (rc) {
	case -ENOENT:
	case -ECONNREFUSED:
		log_error(
			"no uroced answers at %s: start it, or name a port with --netdev or --port",
			path);
		break;
	case -EACCES:
		log_error("no permission to attach to uroced at %s: only the socket's owner and "
			  "group may",
			  path);
		break;
	case -EPROTO:
		attach_say_version(path, welcome->version);
		break;
	case -ENODEV:
		log_error("uroced at %s has lost its port: the device was unplugged", path);
		break;
	case -EBUSY:
		log_error("this process is attached to uroced at %s already", path);
		break;
	case -EUSERS:
		log_error("uroced at %s has no further slot for this process: the process has "
			  "closed its earlier sockets to uroced but has not ended, so it may still "
			  "use the memory of its earlier slots",
			  path);
		break;
	case -EAGAIN:
		log_error("uroced at %s has seen too many programs of this user end in the last "
			  "seconds: try again",
			  path);
		break;
	case -EDQUOT:
		log_error("the other programs of this user have all the queue pairs that uroced "
			  "at %s gives to them",
			  path);
		break;
	case -ENOSPC:
		log_error("uroced at %s can take no more processes", path);
		break;
	default:
		log_error("cannot attach to uroced at %s: %s", path, strerror(-rc));
	}
	return rc;
}

int share_attach(struct link *link, const char *socket_path, uint32_t number, int report_fd,
		 struct share_facts *facts)
{
	struct share_message message = {.welcome.ports = 0};
	struct share_client *client;
	int fds[SHARE_FDS];
	int rc;

	rc = attach_open(socket_path, number, report_fd, RTE_MAX(link->port.engines, 1u), &client,
			 &message, fds);
	facts->ports = message.welcome.ports;
	if (rc != 0)
		return attach_error(socket_path, rc, &message);
	rc = attach_memory(client, &message.welcome, fds);
	if (rc == 0)
		rc = client_open_psock(client, &message.welcome, fds[SHARE_FD_PSOCK]);
	else if (fds[SHARE_FD_PSOCK] >= 0)
		close(fds[SHARE_FD_PSOCK]);
	if (rc != 0) {
		attach_give_up(client);
		return attach_error(socket_path, rc, &message);
	}
	attach_fill_link(link, client, &message);
	attach_learn(client, &message, facts);
	return 0;
}
