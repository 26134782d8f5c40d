/* SPDX-License-Identifier: BSD-3-Clause */
/* Find the directory of a DPDK process, and ask its telemetry socket for the names of its ports. */
#include "dpdk_ports.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <json-c/json.h>

#define SOCKETS_MAX 4096
#define LISTENS	    0x10000 /* in Flags of /proc/net/unix */

static bool parse_line(const char *line, struct held_socket *socket)
{
	unsigned int flags;

	if (sscanf(line, "%*s %*x %*x %x %x %*x %" SCNu64 " %107[^\n]", &flags, &socket->type,
		   &socket->inode, socket->path) != 4)
		return false;
	socket->listens = (flags & LISTENS) != 0;
	return socket->path[0] == '/';
}

/* Find a socket in the list of the process's network namespace. */
static bool find_socket(FILE *list, uint64_t inode, struct held_socket *socket)
{
	char line[512];

	rewind(list);
	while (fgets(line, sizeof(line), list)) {
		if (parse_line(line, socket) && socket->inode == inode)
			return true;
	}
	return false;
}

bool held_each(const char *root, const char *pid,
	       void (*tell)(void *arg, const struct held_socket *socket), void *arg)
{
	char path[PATH_MAX], target[64];
	const struct dirent *entry;
	uint32_t looks = 0;
	FILE *list;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/proc/%s/net/unix", root, pid);
	list = fopen(path, "re");
	snprintf(path, sizeof(path), "%s/proc/%s/fd", root, pid);
	dir = opendir(path);
	while (list && dir && (entry = readdir(dir)) != NULL && looks < SOCKETS_MAX) {
		const ssize_t len =
			readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);
		struct held_socket socket;
		uint64_t inode;

		target[len < 0 ? 0 : len] = '\0';
		if (sscanf(target, "socket:[%" SCNu64 "]", &inode) != 1)
			continue;
		looks++;
		if (find_socket(list, inode, &socket))
			tell(arg, &socket);
	}
	if (list)
		fclose(list);
	if (!dir)
		return false;
	closedir(dir);
	return true;
}

#define ANSWER_MS    2000
#define ANSWER_BYTES 16385 /* of DPDK's longest answer, and a NUL */
#define TELEMETRY    "dpdk_telemetry.v2"
#define JOIN	     "/mp_socket" /* at which secondary processes join */
#define STAND_IN     "net_null_"
#define HANDED_OVER  STAND_IN "handed_over"

static void look_for_join(void *arg, const struct held_socket *socket)
{
	const size_t len = strlen(socket->path), join = strlen(JOIN);

	if (len > join && strcmp(socket->path + len - join, JOIN) == 0)
		snprintf(arg, sizeof(socket->path), "%.*s", (int)(len - join), socket->path);
}

/* Receive an answer. Returns false if none comes. */
static bool receive(int fd, char answer[ANSWER_BYTES])
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	ssize_t len = -1;

	if (poll(&poll_fd, 1, ANSWER_MS) > 0)
		len = recv(fd, answer, ANSWER_BYTES - 1, 0);
	answer[len < 0 ? 0 : len] = '\0';
	return len > 0;
}

/* Ask, and return the value behind the command's name; NULL: no such answer. */
static struct json_object *ask(int fd, const char *command, struct json_object **whole)
{
	static char answer[ANSWER_BYTES];
	struct json_object *value = NULL;
	char name[64];

	*whole = NULL;
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(command, ","), command);
	if (send(fd, command, strlen(command), MSG_NOSIGNAL) < 0 || !receive(fd, answer))
		return NULL;
	*whole = json_tokener_parse(answer);
	if (json_object_is_type(*whole, json_type_object))
		json_object_object_get_ex(*whole, name, &value);
	return value;
}

static void ask_port(int fd, uint32_t id, struct dpdk_ports *ports)
{
	struct dpdk_port *port = &ports->list[ports->count];
	struct json_object *whole, *info, *name;
	char command[64];

	snprintf(command, sizeof(command), "/ethdev/info,%u", id);
	info = ask(fd, command, &whole);
	if (json_object_is_type(info, json_type_object) &&
	    json_object_object_get_ex(info, "name", &name)) {
		port->id = id;
		snprintf(port->name, sizeof(port->name), "%s", json_object_get_string(name));
		ports->count++;
	}
	json_object_put(whole);
}

static void ask_ports(int fd, struct dpdk_ports *ports)
{
	struct json_object *whole, *list = ask(fd, "/ethdev/list", &whole);

	for (size_t i = 0; json_object_is_type(list, json_type_array) &&
			   i < json_object_array_length(list) && ports->count < DPDK_PORTS_MAX;
	     i++)
		ask_port(fd, (uint32_t)json_object_get_int(json_object_array_get_idx(list, i)),
			 ports);
	json_object_put(whole);
}

int dpdk_ports_ask(pid_t pid, struct dpdk_ports *ports)
{
	char directory[sizeof(((struct held_socket *)0)->path)] = "", text[16];
	static char banner[ANSWER_BYTES];
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, rc = 0;

	*ports = (struct dpdk_ports){.prefix = ""};
	snprintf(text, sizeof(text), "%d", pid);
	if (!held_each("", text, look_for_join, directory))
		return -EACCES;
	if (directory[0] == '\0')
		return 0;
	if (snprintf(address.sun_path, sizeof(address.sun_path), "%s/" TELEMETRY, directory) >=
	    (int)sizeof(address.sun_path))
		return -ENAMETOOLONG;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
		rc = -errno;
	else if (!receive(fd, banner))
		rc = -ETIMEDOUT;
	else
		ask_ports(fd, ports);
	close(fd);
	snprintf(ports->prefix, sizeof(ports->prefix), "%s", strrchr(directory, '/') + 1);
	return rc;
}

const struct dpdk_port *dpdk_ports_find(const struct dpdk_ports *ports, const char *port)
{
	const size_t len = strcspn(port, ",");

	for (uint32_t i = 0; i < ports->count; i++) {
		const char *name = ports->list[i].name;

		if (strncmp(name, STAND_IN, strlen(STAND_IN)) == 0 &&
		    strlen(name) == strlen(STAND_IN) + len &&
		    strncmp(name + strlen(STAND_IN), port, len) == 0)
			return &ports->list[i];
		if (strlen(name) == len && strncmp(name, port, len) == 0)
			return &ports->list[i];
	}
	return NULL;
}

/* uroced makes it directly after the port itself. */
const struct dpdk_port *dpdk_ports_find_handed_over(const struct dpdk_ports *ports,
						    const struct dpdk_port *port)
{
	for (uint32_t i = 0; i < ports->count; i++) {
		if (ports->list[i].id > port->id &&
		    strncmp(ports->list[i].name, HANDED_OVER, strlen(HANDED_OVER)) == 0)
			return &ports->list[i];
	}
	return NULL;
}
