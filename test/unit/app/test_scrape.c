/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of app/uroced/scrape.c. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "report/metrics.h"
#include "report/write.h"
#include "scrape.h"
#include "test.h"

static char directory[] = "/tmp/uroce-scrape-XXXXXX";
static char path[64], answer[65536];
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

static void add_report(void)
{
	struct report *report;
	int fd;

	assert_int_equal(report_create(&fd, &report), 0);
	close(fd);
	strcpy(report->facts.device, "uroce0");
	report_begin(report);
	report_add_stat(report, "rx_packets", 77);
	report_add(report, &(struct report_record){.kind = REPORT_QP, .number = 5});
	report_end(report);
	assert_int_equal(report_set_add(&reports, getpid(), 0, report), 0);
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
	/* A silent client is disconnected after its time, and the next one is served. */
	fd = dial();
	expect_status("GET /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK\r\n");
	close(fd);
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
