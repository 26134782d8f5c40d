/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures an iSCSI target by libiscsi, over TCP (iscsi://) or iSER (iser://):
 *
 *     iscsi_load URL read|write BYTES DEPTH SECONDS
 *
 * DEPTH requests of BYTES are in flight, reads of random places or writes one after the other. The
 * program prints the number of requests a second and the latencies as one line of JSON.
 */
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <iscsi/iscsi.h>
#include <iscsi/scsi-lowlevel.h>

#define INITIATOR   "iqn.2026-11.test.uroce:initiator"
#define DEPTH_MAX   256
#define LATENCY_MAX (64 << 20)
#define NS_PER_S    UINT64_C(1000000000)

struct request {
	uint8_t *bytes;
	struct scsi_iovec iov;
	uint64_t begin_ns;
};

static struct iscsi_context *iscsi;
static bool writes;
static int lun;
static uint32_t bytes, sector_bytes;
static uint64_t places, next_place; /* of that size on the disk */
static uint64_t end_ns;
static unsigned int in_flight;
static uint32_t *latencies_ns;
static size_t completed;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static void fail(const char *what)
{
	fprintf(stderr, "iscsi_load: %s: %s\n", what, iscsi ? iscsi_get_error(iscsi) : "");
	exit(EXIT_FAILURE);
}

static void start(struct request *request);

static void done(struct iscsi_context *context, int status, void *task, void *arg)
{
	struct request *request = arg;
	const uint64_t now = now_ns();

	(void)context;
	if (status != SCSI_STATUS_GOOD || completed == LATENCY_MAX)
		fail("a request");
	latencies_ns[completed++] = (uint32_t)(now - request->begin_ns);
	scsi_free_scsi_task(task);
	in_flight--;
	if (now < end_ns)
		start(request);
}

static void start(struct request *request)
{
	const uint64_t place = writes ? next_place++ % places : (uint64_t)random() % places;
	const uint32_t lba = (uint32_t)(place * (bytes / sector_bytes));
	const int sector = (int)sector_bytes;
	struct scsi_task *task;

	request->begin_ns = now_ns();
	task = writes ? iscsi_write10_iov_task(iscsi, lun, lba, NULL, bytes, sector, 0, 0, 0, 0, 0,
					       done, request, &request->iov, 1)
		      : iscsi_read10_iov_task(iscsi, lun, lba, bytes, sector, 0, 0, 0, 0, 0, done,
					      request, &request->iov, 1);
	if (!task)
		fail("a request");
	in_flight++;
}

static void connect_to(const char *text)
{
	struct iscsi_url *url;
	struct scsi_task *task;
	struct scsi_readcapacity10 *capacity;

	iscsi = iscsi_create_context(INITIATOR);
	url = iscsi ? iscsi_parse_full_url(iscsi, text) : NULL;
	if (!url)
		fail(text);
	iscsi_set_targetname(iscsi, url->target);
	iscsi_set_session_type(iscsi, ISCSI_SESSION_NORMAL);
	iscsi_set_header_digest(iscsi, ISCSI_HEADER_DIGEST_NONE);
	lun = url->lun;
	if (iscsi_full_connect_sync(iscsi, url->portal, lun) != 0)
		fail(text);
	iscsi_destroy_url(url);
	task = iscsi_readcapacity10_sync(iscsi, lun, 0, 0);
	capacity = task ? scsi_datain_unmarshall(task) : NULL;
	if (!capacity || task->status != SCSI_STATUS_GOOD)
		fail("the capacity");
	sector_bytes = capacity->block_size;
	places = ((uint64_t)capacity->lba + 1) * sector_bytes / bytes;
	scsi_free_scsi_task(task);
	if (places == 0 || bytes % sector_bytes != 0)
		fail("the size of a request");
}

static void serve(void)
{
	struct pollfd poll_fd = {.fd = iscsi_get_fd(iscsi),
				 .events = (short)iscsi_which_events(iscsi)};

	if (poll(&poll_fd, 1, 1000) < 0 || iscsi_service(iscsi, poll_fd.revents) < 0)
		fail("the connection");
}

static int compare(const void *a, const void *b)
{
	const uint32_t first = *(const uint32_t *)a, second = *(const uint32_t *)b;

	return (first > second) - (first < second);
}

static double share_us(double share)
{
	return latencies_ns[(size_t)(share * (double)(completed - 1))] / 1e3;
}

int main(int argc, char **argv)
{
	static struct request requests[DEPTH_MAX];
	unsigned long depth;
	uint64_t begin_ns;
	double seconds;

	if (argc != 6)
		fail("usage: iscsi_load URL read|write BYTES DEPTH SECONDS");
	writes = strcmp(argv[2], "write") == 0;
	bytes = (uint32_t)strtoul(argv[3], NULL, 10);
	depth = strtoul(argv[4], NULL, 10);
	latencies_ns = malloc(LATENCY_MAX * sizeof(latencies_ns[0]));
	if (bytes == 0 || depth == 0 || depth > DEPTH_MAX || !latencies_ns)
		fail("the size or the depth");
	connect_to(argv[1]);
	begin_ns = now_ns();
	end_ns = begin_ns + (uint64_t)(strtod(argv[5], NULL) * (double)NS_PER_S);
	for (unsigned long i = 0; i < depth; i++) {
		requests[i].bytes = aligned_alloc(4096, (bytes + 4095) & ~4095u);
		if (!requests[i].bytes)
			fail("memory");
		memset(requests[i].bytes, (int)i, bytes);
		requests[i].iov = (struct scsi_iovec){requests[i].bytes, bytes};
		start(&requests[i]);
	}
	while (in_flight > 0)
		serve();
	seconds = (double)(now_ns() - begin_ns) / 1e9;
	qsort(latencies_ns, completed, sizeof(latencies_ns[0]), compare);
	printf("{\"iops\": %.1f, \"p50_us\": %.1f, \"p99_us\": %.1f}\n",
	       (double)completed / seconds, share_us(0.5), share_us(0.99));
	return EXIT_SUCCESS;
}
