/* SPDX-License-Identifier: BSD-3-Clause */
/* Takes the place of a running uroced. */
#include "replace.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_common.h>

#include "base/log.h"
#include "config/settings.h"
#include "owner/serve.h"
#include "service.h"
#include "share/message.h"

#define ANSWER_MS 5000
#define LEAVE_MS  10000
/* in place of the new main process: the other uroced goes on */
#define REFUSED 0

static int others[SETTINGS_PORTS_MAX]; /* connections to the other uroced, by port */
static size_t other_count;
static size_t own_count;    /* ports of these that this uroced has, too */
static int command_fd = -1; /* the command that the service manager waits for has the other end */

static int replace_connect(const struct settings *settings, uint32_t number)
{
	struct sockaddr_un address;
	int fd, rc;

	rc = share_socket_path(settings->socket, number, &address);
	if (rc != 0)
		return rc;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

/* Wait for a message, or for the end of the connection. */
static int replace_wait(int fd, int ms)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	int rc;

	do
		rc = poll(&poll_fd, 1, ms);
	while (rc < 0 && errno == EINTR);
	if (rc == 0)
		return -ETIMEDOUT;
	return rc < 0 ? -errno : 0;
}

static int replace_tell(int fd, enum share_replace number)
{
	const struct share_message message = {
		.type = SHARE_REPLACE, .version = SHARE_VERSION, .number = number};

	return message_send(fd, &message, NULL, 0);
}

static void replace_keep_socket(struct serve_passed *passed, int fd, bool removes)
{
	if (fd < 0)
		return;
	if (passed->count == SERVE_PASSED) {
		close(fd);
		return;
	}
	passed->removes[passed->count] = removes;
	passed->fds[passed->count++] = fd;
}

/* Ask for what a port has, and how many ports there are. 0 or -errno. */
static int replace_ask_port(int fd, struct serve_passed *passed, int *table, size_t *ports)
{
	struct share_message answer;
	int fds[SHARE_FDS];
	int rc = replace_tell(fd, SHARE_REPLACE_ASK);

	if (rc == 0)
		rc = replace_wait(fd, ANSWER_MS);
	if (rc == 0)
		rc = message_receive(fd, &answer, fds);
	if (rc != 0)
		return rc;
	if (answer.type != SHARE_REPLACE || answer.result != 0 || fds[SHARE_REPLACE_FD_TABLE] < 0) {
		for (int i = 0; i < SHARE_FDS; i++) {
			if (fds[i] >= 0)
				close(fds[i]);
		}
		return answer.result < 0 ? answer.result : -EPROTO;
	}
	*table = fds[SHARE_REPLACE_FD_TABLE];
	*ports = RTE_MIN((size_t)answer.welcome.ports, (size_t)SETTINGS_PORTS_MAX);
	replace_keep_socket(passed, fds[SHARE_REPLACE_FD_TRUSTED], answer.number & 1);
	replace_keep_socket(passed, fds[SHARE_REPLACE_FD_ISOLATED], answer.number & 2);
	return 0;
}

/* Say the last word to the command that the service manager waits for. */
static void replace_tell_command(const void *word, size_t size)
{
	if (command_fd < 0)
		return;
	if (send(command_fd, word, size, MSG_NOSIGNAL) != (ssize_t)size)
		log_warn("--replace: the command has ended before: %s", strerror(errno));
	close(command_fd);
	command_fd = -1;
}

/* The other uroced goes on. */
static int replace_say_why(const char *path, int rc)
{
	const pid_t refused = REFUSED;

	if (rc == -EPERM)
		log_error("--replace: the uroced at %s is another user's", path);
	else if (rc == -EBUSY)
		log_error("--replace: another uroced takes the place of the one at %s just now",
			  path);
	else if (rc == -EOPNOTSUPP)
		log_error("--replace: the uroced at %s has a port that starts anew with it: stop "
			  "it first; its programs get a fatal event",
			  path);
	else if (rc == -EPROTO)
		log_error("--replace: the uroced at %s is of another version: stop it first; its "
			  "programs get a fatal event",
			  path);
	else
		log_error("--replace: the uroced at %s: %s", path, strerror(-rc));
	replace_tell_command(&refused, sizeof(refused));
	return rc;
}

/* Connect to the ports that the other uroced has, and this one has not: it leaves only if all of
 * its ports are told. 0 or -errno. */
static int replace_find_more(const struct settings *settings, size_t ports)
{
	while (other_count < ports) {
		const int fd = replace_connect(settings, (uint32_t)other_count);

		if (fd < 0)
			return replace_say_why(settings->socket, fd);
		others[other_count++] = fd;
	}
	return 0;
}

int replace_ask(const struct settings *settings, size_t count, struct serve_passed *passed,
		int *tables)
{
	size_t ports = 0;

	for (size_t i = 0; i < count; i++) {
		const int fd = replace_connect(settings, (uint32_t)i);
		int rc;

		if (i == 0 && (fd == -ENOENT || fd == -ECONNREFUSED) && command_fd < 0) {
			log_info("no uroced is there to be replaced");
			return 0;
		}
		/* The other uroced has fewer ports. */
		if (fd < 0 && i > 0)
			break;
		if (fd < 0)
			return replace_say_why(settings->socket, fd);
		others[other_count++] = fd;
		rc = replace_ask_port(fd, passed, &tables[i], &ports);
		if (rc != 0)
			return replace_say_why(settings->socket, rc);
	}
	own_count = other_count;
	return replace_find_more(settings, ports);
}

/* Do what the process that takes over says, and end as it says. The service manager believes the
 * service's main process and its own commands, and not yet the process that takes over
 * (NotifyAccess=exec of systemd). If the other uroced goes on, it reads its settings again. */
static void replace_be_command(int fd)
{
	pid_t pid;
	char byte;
	int rc;

	if (read(fd, &pid, sizeof(pid)) != sizeof(pid))
		_exit(EXIT_FAILURE);
	if (pid == REFUSED)
		_exit(kill(service_main(), SIGHUP) == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
	rc = service_set_main(pid);
	if (send(fd, &rc, sizeof(rc), MSG_NOSIGNAL) != sizeof(rc))
		_exit(EXIT_FAILURE);
	_exit(read(fd, &byte, sizeof(byte)) == sizeof(byte) ? EXIT_SUCCESS : EXIT_FAILURE);
}

/* Let the command tell that this is the service's main process from now on. 0 or -errno. */
static int replace_become_main(void)
{
	const pid_t pid = getpid();
	int rc;

	if (send(command_fd, &pid, sizeof(pid), MSG_NOSIGNAL) != sizeof(pid))
		return -errno;
	return read(command_fd, &rc, sizeof(rc)) == sizeof(rc) ? rc : -EPIPE;
}

int replace_leave_command(void)
{
	int fds[2];
	pid_t child;

	if (service_main() == 0)
		return 0;
	child = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0 ? fork() : -1;
	if (child < 0) {
		log_error("--replace: cannot start a process: %s", strerror(errno));
		return -errno;
	}
	if (child > 0) {
		close(fds[1]);
		replace_be_command(fds[0]);
	}
	/* The service manager hears of the end of its own children only, and adopts a child of one
	 * that has ended. */
	child = fork();
	if (child != 0)
		_exit(child < 0);
	close(fds[0]);
	command_fd = fds[1];
	return 0;
}

void replace_end_command(void)
{
	const char byte = 0;

	replace_tell_command(&byte, sizeof(byte));
}

/* End without a trace: the listening sockets are the other one's. */
static void replace_give_up(const char *why)
{
	log_error("--replace: %s: the other uroced goes on", why);
	exit(EXIT_FAILURE);
}

void replace_take_over(bool ready)
{
	if (other_count == 0)
		return;
	if (!ready) {
		const pid_t refused = REFUSED;

		replace_tell_command(&refused, sizeof(refused));
		replace_give_up("not all is ready");
	}
	/* Before the other one ends: else the service would end with it. */
	if (command_fd >= 0 && replace_become_main() != 0)
		replace_give_up("the service manager cannot be told of this process");
	for (size_t i = 0; i < other_count; i++)
		(void)replace_tell(others[i],
				   i < own_count ? SHARE_REPLACE_LEAVE : SHARE_REPLACE_END);
	/* They end with the process. */
	for (size_t i = 0; i < other_count; i++) {
		if (replace_wait(others[i], LEAVE_MS) != 0) {
			log_error("--replace: the other uroced does not end");
			exit(EXIT_FAILURE);
		}
		close(others[i]);
	}
	other_count = 0;
}
