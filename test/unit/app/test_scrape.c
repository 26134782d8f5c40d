/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of app/uroced/scrape.c. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_common.h>

#include "report/metrics.h"
#include "report/write.h"
#include "scrape.h"
#include "test.h"

#define MANY 100  /* more clients than there are places */
#define QPS  5000 /* more than the buffer of a socket has room for */

static char directory[] = "/tmp/uroce-scrape-XXXXXX";
static char path[64], answer[1 << 24];
static struct report_set reports;
static struct scrape_config config;

static int set_up(TEST_STATE)
{
	strcpy(directory, "/tmp/uroce-scrape-XXXXXX");
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/metrics.sock", directory);
	report_set_init(&reports);
	config = (struct scrape_config){.path = path,
					.mode = 0640,
					.owner = (uid_t)-1,
					.group = (gid_t)-1,
					.reports = &reports};
	return 0;
}

static int tear_down(TEST_STATE)
{
	scrape_stop();
	report_set_fini(&reports);
	return rmdir(directory);
}

TEST_FIXTURE(set_up, tear_down);

static int dial(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(address.sun_path, path);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

/* Read until the server closes. */
static const char *hear(int fd)
{
	size_t len = 0;
	ssize_t n;

	while ((n = recv(fd, answer + len, sizeof(answer) - 1 - len, 0)) > 0)
		len += (size_t)n;
	answer[len] = '\0';
	close(fd);
	return answer;
}

static const char *request(const char *text)
{
	const int fd = dial();

	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
	return hear(fd);
}

static void expect_status(const char *text, const char *status)
{
	const char *got = request(text);

	if (strncmp(got, status, strlen(status)) != 0)
		fail_msg("%s: %s", text, got);
}

static void add_report_of(uint32_t qps)
{
	struct report *report;
	int fd;

	assert_int_equal(report_create(&fd, &report), 0);
	close(fd);
	strcpy(report->facts.device, "uroce0");
	report_begin(report);
	report_add_stat(report, "rx_packets", 77);
	for (uint32_t i = 0; i < qps; i++)
		report_add(report, &(struct report_record){.kind = REPORT_QP, .number = 5 + i});
	report_end(report);
	assert_int_equal(report_set_add(&reports, getpid(), 0, report), 0);
}

static void add_report(void)
{
	add_report_of(1);
}

TEST(scrape_parse__requests)
{
	assert_int_equal(scrape_parse("GET /metrics HTTP/1.1"), SCRAPE_METRICS);
	assert_int_equal(scrape_parse("GET /metrics HTTP/1.0"), SCRAPE_METRICS);
	assert_int_equal(scrape_parse("GET /metrics?qp HTTP/1.1"), SCRAPE_METRICS_QP);
	assert_int_equal(scrape_parse("GET / HTTP/1.1"), SCRAPE_NOT_FOUND);
	assert_int_equal(scrape_parse("GET /metrics2 HTTP/1.1"), SCRAPE_NOT_FOUND);
	assert_int_equal(scrape_parse("POST /metrics HTTP/1.1"), SCRAPE_NOT_ALLOWED);
	assert_int_equal(scrape_parse("GET /metrics"), SCRAPE_BAD);
	assert_int_equal(scrape_parse("GET /metrics SPDY/1"), SCRAPE_BAD);
	assert_int_equal(scrape_parse(""), SCRAPE_BAD);
}

TEST(scrape_start__answers)
{
	struct stat file;
	const char *body;

	add_report();
	assert_int_equal(scrape_start(&config), 0);
	assert_int_equal(stat(path, &file), 0);
	assert_int_equal(file.st_mode & 0777, 0640);
	expect_status("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 OK\r\n");
	assert_non_null(strstr(answer, "Content-Type: " METRICS_TYPE "\r\n"));
	body = strstr(answer, "\r\n\r\n");
	assert_non_null(body);
	assert_int_equal(strlen(body + 4),
			 strtoul(strstr(answer, "Content-Length: ") + 16, NULL, 10));
	assert_non_null(strstr(body, "\nuroce_rx_packets_total{device=\"uroce0\","));
	assert_null(strstr(body, "lqpn"));
	expect_status("GET /metrics?qp HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK\r\n");
	assert_non_null(strstr(answer, "lqpn=\"5\""));
	expect_status("GET /x HTTP/1.1\r\n\r\n", "HTTP/1.1 404 ");
	expect_status("PUT /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 405 ");
	expect_status("nonsense\r\n\r\n", "HTTP/1.1 400 ");
}

TEST(scrape_start__clients_may_do_anything)
{
	static char much[8192];
	const char *part = "GET /metr";
	int fd;

	add_report();
	assert_int_equal(scrape_start(&config), 0);
	close(dial());
	fd = dial();
	send(fd, part, strlen(part), MSG_NOSIGNAL);
	close(fd);
	/* A client sends a request without an end. */
	memset(much, 'x', sizeof(much));
	fd = dial();
	send(fd, much, sizeof(much), MSG_NOSIGNAL | MSG_DONTWAIT);
	hear(fd);
	/* A client does not read its answer. */
	fd = dial();
	assert_true(send(fd, "GET /metrics HTTP/1.1\r\n\r\n", 25, MSG_NOSIGNAL) > 0);
	close(fd);
}

static bool is_open(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN;
}

TEST(scrape_start__silent_clients_block_nobody)
{
	int silent[8];

	add_report();
	assert_int_equal(scrape_start(&config), 0);
	for (size_t i = 0; i < RTE_DIM(silent); i++)
		silent[i] = dial();
	expect_status("GET /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK\r\n");
	/* They were not disconnected for it. */
	for (size_t i = 0; i < RTE_DIM(silent); i++) {
		assert_true(is_open(silent[i]));
		close(silent[i]);
	}
}

/* Each takes a place, until the oldest ones have to leave. */
TEST(scrape_start__many_silent_clients)
{
	int silent[MANY];

	add_report();
	assert_int_equal(scrape_start(&config), 0);
	for (size_t i = 0; i < MANY; i++)
		silent[i] = dial();
	expect_status("GET /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK\r\n");
	assert_false(is_open(silent[0]));
	assert_true(is_open(silent[MANY - 1]));
	for (size_t i = 0; i < MANY; i++)
		close(silent[i]);
}

/* The answer is longer than a socket's buffer, so it is sent in pieces. */
TEST(scrape_start__clients_that_do_not_read_block_nobody)
{
	static const char ask[] = "GET /metrics?qp HTTP/1.1\r\n\r\n";
	int slow;

	add_report_of(QPS);
	assert_int_equal(scrape_start(&config), 0);
	slow = dial();
	assert_int_equal(send(slow, ask, strlen(ask), MSG_NOSIGNAL), (ssize_t)strlen(ask));
	expect_status("GET /x HTTP/1.1\r\n\r\n", "HTTP/1.1 404 ");
	hear(slow);
	assert_int_equal(strlen(strstr(answer, "\r\n\r\n") + 4),
			 strtoul(strstr(answer, "Content-Length: ") + 16, NULL, 10));
}

TEST(scrape_start__takes_the_place_of_a_dead_one)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(address.sun_path, path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
	assert_int_equal(scrape_start(&config), 0);
	scrape_stop();
	assert_int_not_equal(access(path, F_OK), 0);
	/* The socket of a live process is not removed. */
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(scrape_start(&config), -EADDRINUSE);
	assert_int_equal(access(path, F_OK), 0);
	close(fd);
	unlink(path);
	/* A file that is not a socket is not removed. */
	fclose(fopen(path, "w"));
	assert_int_equal(scrape_start(&config), -EEXIST);
	assert_int_equal(unlink(path), 0);
}
