/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answers HTTP requests (GET /metrics) in a thread, one client at a time. A client may be any
 * process that the socket's mode admits, so the length of a request and the time for it are
 * limited.
 */
#include "scrape.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/unix_socket.h"
#include "report/metrics.h"

#define BACKLOG	      16
#define REQUEST_BYTES 4096
#define REQUEST_MS    2000
#define ANSWER_MS     5000
#define COLLECT_MS    500 /* a sleeping process looks for requests more often than this */

static struct {
	bool started;
	int fd, stop_fd;
	char path[108];
	struct report_set *reports;
	pthread_t thread;
} scrape = {.fd = -1, .stop_fd = -1};

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Wait for events on a descriptor. Return false if the time is over, or if uroced ends. */
static bool wait_for(int fd, short events, int64_t until_ms)
{
	struct pollfd fds[] = {{.fd = fd, .events = events},
			       {.fd = scrape.stop_fd, .events = POLLIN}};
	const int64_t left_ms = until_ms - now_ms();

	return left_ms > 0 && poll(fds, 2, (int)left_ms) > 0 && fds[1].revents == 0;
}

/* ---- a request ---- */

enum scrape_request scrape_parse(const char *line)
{
	char method[16], target[64], version[16];

	if (sscanf(line, "%15s %63s %15s", method, target, version) != 3 ||
	    strncmp(version, "HTTP/1.", 7) != 0)
		return SCRAPE_BAD;
	if (strcmp(method, "GET") != 0)
		return SCRAPE_NOT_ALLOWED;
	if (strcmp(target, "/metrics") == 0)
		return SCRAPE_METRICS;
	return strcmp(target, "/metrics?qp") == 0 ? SCRAPE_METRICS_QP : SCRAPE_NOT_FOUND;
}

/* Read a request up to its empty line. Return false if it does not arrive in time. */
static bool read_request(int fd, char request[REQUEST_BYTES])
{
	const int64_t until_ms = now_ms() + REQUEST_MS;
	size_t len = 0;

	while (len < REQUEST_BYTES - 1 && wait_for(fd, POLLIN, until_ms)) {
		const ssize_t n = recv(fd, request + len, REQUEST_BYTES - 1 - len, MSG_DONTWAIT);

		if (n <= 0)
			return false;
		len += (size_t)n;
		request[len] = '\0';
		if (strstr(request, "\r\n\r\n"))
			return true;
	}
	return false;
}

static void send_all(int fd, const char *text, size_t len, int64_t until_ms)
{
	while (len > 0 && wait_for(fd, POLLOUT, until_ms)) {
		const ssize_t n = send(fd, text, len, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0)
			return;
		text += n;
		len -= (size_t)n;
	}
}

static void answer(int fd, const char *status, const char *type, const char *body, size_t len)
{
	const int64_t until_ms = now_ms() + ANSWER_MS;
	char head[256];

	snprintf(head, sizeof(head),
		 "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nConnection: "
		 "close\r\n\r\n",
		 status, type, len);
	send_all(fd, head, strlen(head), until_ms);
	send_all(fd, body, len, until_ms);
}

static void answer_error(int fd, const char *status)
{
	answer(fd, status, "text/plain", "", 0);
}

/* Write the metrics into a new text. 0 or -ENOMEM. */
static int collect(bool qps, char **text, size_t *len)
{
	const struct report_filter all = {.device = NULL};
	struct report_devices devices;
	struct report_views views;
	FILE *file;
	int rc;

	*text = NULL;
	rc = report_set_collect(scrape.reports, COLLECT_MS, &views);
	if (rc == 0)
		rc = devices_sort(&devices, &views);
	if (rc != 0)
		return rc;
	file = open_memstream(text, len);
	if (file)
		metrics_write(file, &devices, &all, qps);
	rc = file && fclose(file) == 0 ? 0 : -ENOMEM;
	devices_release(&devices);
	return rc;
}

static void answer_metrics(int fd, bool qps)
{
	char *text;
	size_t len;

	if (collect(qps, &text, &len) == 0)
		answer(fd, "200 OK", METRICS_TYPE, text, len);
	else
		answer_error(fd, "503 Service Unavailable");
	free(text);
}

static void serve_client(int fd)
{
	char request[REQUEST_BYTES];

	if (!read_request(fd, request))
		return;
	request[strcspn(request, "\r\n")] = '\0';
	switch (scrape_parse(request)) {
	case SCRAPE_METRICS:
		answer_metrics(fd, false);
		break;
	case SCRAPE_METRICS_QP:
		answer_metrics(fd, true);
		break;
	case SCRAPE_NOT_FOUND:
		answer_error(fd, "404 Not Found");
		break;
	case SCRAPE_NOT_ALLOWED:
		answer_error(fd, "405 Method Not Allowed");
		break;
	case SCRAPE_BAD:
		answer_error(fd, "400 Bad Request");
		break;
	}
}

/* ---- the socket ---- */

static void *scrape_run(void *arg)
{
	struct pollfd fds[] = {{.fd = scrape.fd, .events = POLLIN},
			       {.fd = scrape.stop_fd, .events = POLLIN}};

	pthread_setname_np(pthread_self(), "uroced-metrics");
	while (poll(fds, 2, -1) >= 0 || errno == EINTR) {
		int fd;

		if (fds[1].revents != 0)
			break;
		fd = accept4(scrape.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0) {
			/* Descriptors may have run out: do not spin until one is free. */
			wait_for(-1, 0, now_ms() + 100);
			continue;
		}
		serve_client(fd);
		close(fd);
	}
	return arg;
}

static int listen_at(const struct scrape_config *config)
{
	const struct unix_socket_config where = {.path = config->path,
						 .type = SOCK_STREAM,
						 .backlog = BACKLOG,
						 .owner = config->owner,
						 .group = config->group,
						 .mode = config->mode};

	scrape.fd = unix_socket_listen(&where);
	if (scrape.fd < 0)
		return scrape.fd;
	snprintf(scrape.path, sizeof(scrape.path), "%s", config->path);
	return 0;
}

/* Start the thread with all signals blocked: the main thread handles them. */
static int start_thread(void)
{
	sigset_t all, before;
	int rc;

	scrape.stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (scrape.stop_fd < 0)
		return -errno;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = -pthread_create(&scrape.thread, NULL, scrape_run, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	scrape.started = rc == 0;
	return rc;
}

int scrape_start(const struct scrape_config *config)
{
	int rc;

	scrape.reports = config->reports;
	rc = listen_at(config);
	if (rc == 0)
		rc = start_thread();
	if (rc == -EADDRINUSE)
		log_error("metrics: another process answers at %s", config->path);
	else if (rc != 0)
		log_error("metrics: cannot answer at %s: %s", config->path, strerror(-rc));
	if (rc != 0)
		scrape_stop();
	return rc;
}

void scrape_stop(void)
{
	if (scrape.started) {
		eventfd_write(scrape.stop_fd, 1);
		pthread_join(scrape.thread, NULL);
	}
	if (scrape.path[0] != '\0')
		unlink(scrape.path);
	if (scrape.fd >= 0)
		close(scrape.fd);
	if (scrape.stop_fd >= 0)
		close(scrape.stop_fd);
	scrape.started = false;
	scrape.path[0] = '\0';
	scrape.fd = scrape.stop_fd = -1;
}
