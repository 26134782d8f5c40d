/* SPDX-License-Identifier: BSD-3-Clause */
/* The plan of one test: its values by name, and the checks that they fit each other. */
#include "plan.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_bitops.h>
#include <rte_common.h>

#include "base/tuning.h"
#include "device/limits.h"
#include "endpoint.h"
#include "nic.h"
#include "mode.h"

#define LINE_BYTES 64

const struct mode *const modes[MODE_COUNT] = {
	[MODE_WRITE] = &mode_write,	[MODE_READ] = &mode_read,
	[MODE_SEND] = &mode_send,	[MODE_ATOMIC] = &mode_atomic,
	[MODE_LATENCY] = &mode_latency, [MODE_SOURCE] = &mode_source,
	[MODE_SINK] = &mode_sink,	[MODE_NULL] = &mode_null,
	[MODE_STORAGE] = &mode_storage, [MODE_INCAST] = &mode_incast,
};

static const char *const op_names[] = {"write", "read", "send", "atomic"};

const char *const plan_names[] = {
	"mode",	    "size",   "qps",  "threads",      "depth",	    "mtu",    "batch",
	"signal",   "inline", "op",   "read-percent", "in-capsule", "region", "seconds",
	"messages", "verify", "seed", "loss",	      "without",    NULL,
};

#define TUNING_NAME(field, name, meaning) name,
static const char *const tunings[] = {TUNINGS(TUNING_NAME)};

static const struct number {
	const char *name;
	size_t offset;
	uint64_t min, max;
} numbers[] = {
	{"size", offsetof(struct plan, size_bytes), 1, UINT64_C(1) << 30},
	{"qps", offsetof(struct plan, qps), 1, PLAN_QPS_MAX},
	{"threads", offsetof(struct plan, threads), 1, PLAN_THREADS_MAX},
	{"depth", offsetof(struct plan, depth), 1, DEVICE_MAX_QP_WR / 2},
	{"mtu", offsetof(struct plan, path_mtu_bytes), 256, 4096},
	{"batch", offsetof(struct plan, batch), 1, PLAN_BATCH_MAX},
	{"signal", offsetof(struct plan, signal), 0, DEVICE_MAX_QP_WR},
	{"inline", offsetof(struct plan, inline_bytes), 0, DEVICE_MAX_INLINE},
	{"read-percent", offsetof(struct plan, read_percent), 0, 100},
	{"in-capsule", offsetof(struct plan, in_capsule_bytes), 0, PLAN_CAPSULE_MAX},
	{"region", offsetof(struct plan, region_bytes), 0, PLAN_REGION_MAX},
	{"messages", offsetof(struct plan, messages), 0, UINT64_MAX},
	{"loss", offsetof(struct plan, loss_ppm), 0, LOSS_PPM_MAX},
	{"seed", offsetof(struct plan, seed), 0, UINT64_MAX},
};

void plan_init(struct plan *plan)
{
	*plan = (struct plan){
		.size_bytes = 65536,
		.qps = 1,
		.threads = 1,
		.depth = 64,
		.path_mtu_bytes = 1024,
		.batch = 1,
		.inline_bytes = 64,
		.read_percent = 70,
		.in_capsule_bytes = 4096,
		.spread_bytes = PLAN_SPREAD_DEFAULT,
		.duration_ns = UINT64_C(2000000000),
		.seed = 1,
	};
}

void plan_default_size(struct plan *plan)
{
	const bool tagged = plan->verify && plan->op != PLAN_OP_ATOMIC;

	switch (plan->mode) {
	case MODE_ATOMIC:
		plan->size_bytes = sizeof(uint64_t);
		break;
	case MODE_LATENCY:
		plan->size_bytes = tagged ? 16 : 8;
		break;
	case MODE_STORAGE:
		plan->size_bytes = 4096;
		break;
	default:
		plan->size_bytes = 65536;
		break;
	}
}

bool plan_parse_number(const char *text, uint64_t *value)
{
	unsigned int shift = 0;
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	*value = strtoull(text, &end, 0);
	if (errno != 0)
		return false;
	switch (toupper((unsigned char)*end)) {
	case 'K':
		shift = 10;
		break;
	case 'M':
		shift = 20;
		break;
	case 'G':
		shift = 30;
		break;
	default:
		break;
	}
	if (*value > UINT64_MAX >> shift)
		return false;
	*value <<= shift;
	return end[shift > 0] == '\0';
}

static uint64_t *number_of(struct plan *plan, const struct number *number)
{
	return (uint64_t *)(void *)((char *)plan + number->offset);
}

static const struct number *number_find(const char *name)
{
	for (size_t i = 0; i < RTE_DIM(numbers); i++)
		if (strcmp(numbers[i].name, name) == 0)
			return &numbers[i];
	return NULL;
}

static int refuse(char *error, size_t error_size, const char *name, const char *value,
		  const char *what)
{
	snprintf(error, error_size, "%s: '%s' is not %s", name, value, what);
	return -EINVAL;
}

static int set_op(struct plan *plan, const char *value, char *error, size_t error_size)
{
	for (size_t i = 0; i < RTE_DIM(op_names); i++) {
		if (strcmp(op_names[i], value) == 0) {
			plan->op = i;
			return 0;
		}
	}
	return refuse(error, error_size, "op", value, "write, read, send or atomic");
}

static int mode_find(const char *name)
{
	for (int i = 0; i < MODE_COUNT; i++)
		if (strcmp(modes[i]->name, name) == 0)
			return i;
	return -ENOENT;
}

static void mode_list(char *text, size_t size)
{
	size_t len = 0;

	text[0] = '\0';
	for (int i = 0; i < MODE_COUNT && len < size; i++)
		len += (size_t)snprintf(text + len, size - len, "%s%s", i ? ", " : "",
					modes[i]->name);
}

static int set_mode(struct plan *plan, const char *value, char *error, size_t error_size)
{
	const int mode = mode_find(value);
	char names[128];

	if (mode >= 0) {
		plan->mode = (uint64_t)mode;
		return 0;
	}
	mode_list(names, sizeof(names));
	snprintf(error, error_size, "mode: '%s' is none of %s", value, names);
	return -EINVAL;
}

static int set_seconds(struct plan *plan, const char *value, char *error, size_t error_size)
{
	char *end;
	const double seconds = strtod(value, &end);

	if (end == value || *end != '\0' || !(seconds == 0 || (seconds >= 0.01 && seconds <= 1e6)))
		return refuse(error, error_size, "seconds", value, "a time from 0.01, or 0");
	plan->duration_ns = (uint64_t)(seconds * 1e9);
	return 0;
}

static int set_verify(struct plan *plan, const char *value, char *error, size_t error_size)
{
	if (strcmp(value, "on") != 0 && strcmp(value, "off") != 0)
		return refuse(error, error_size, "verify", value, "on or off");
	plan->verify = strcmp(value, "on") == 0;
	return 0;
}

static int set_without(struct plan *plan, const char *value, char *error, size_t error_size)
{
	uint64_t without = 0;

	if (!tuning_knows(value) && strcmp(value, "none") != 0)
		return refuse(error, error_size, "without", value, tuning_names());
	for (const char *at = value; *at != '\0'; at += strspn(at, ",")) {
		const size_t len = strcspn(at, ",");

		for (size_t i = 0; i < RTE_DIM(tunings); i++)
			if (strlen(tunings[i]) == len && strncmp(tunings[i], at, len) == 0)
				without |= UINT64_C(1) << i;
		at += len;
	}
	plan->without = without;
	return 0;
}

void plan_without_names(uint64_t without, char *names, size_t size)
{
	size_t len = 0;

	names[0] = '\0';
	for (size_t i = 0; i < RTE_DIM(tunings) && len < size; i++)
		if (without & UINT64_C(1) << i)
			len += (size_t)snprintf(names + len, size - len, "%s%s", len ? "," : "",
						tunings[i]);
}

int plan_set(struct plan *plan, const char *name, const char *value, char *error, size_t error_size)
{
	const struct number *number = number_find(name);
	uint64_t parsed;

	if (strcmp(name, "mode") == 0)
		return set_mode(plan, value, error, error_size);
	if (strcmp(name, "op") == 0)
		return set_op(plan, value, error, error_size);
	if (strcmp(name, "seconds") == 0)
		return set_seconds(plan, value, error, error_size);
	if (strcmp(name, "verify") == 0)
		return set_verify(plan, value, error, error_size);
	if (strcmp(name, "without") == 0)
		return set_without(plan, value, error, error_size);
	if (!number) {
		snprintf(error, error_size, "there is no setting '%s' of a test", name);
		return -ENOENT;
	}
	if (!plan_parse_number(value, &parsed) || parsed < number->min || parsed > number->max) {
		snprintf(error, error_size, "%s: '%s' is not a number from %" PRIu64 " to %" PRIu64,
			 name, value, number->min, number->max);
		return -EINVAL;
	}
	if (number->offset == offsetof(struct plan, path_mtu_bytes) &&
	    !rte_is_power_of_2((uint32_t)parsed))
		return refuse(error, error_size, name, value, "256, 512, 1024, 2048 or 4096");
	*number_of(plan, number) = parsed;
	return 0;
}

void plan_get(const struct plan *plan, const char *name, char *value, size_t size)
{
	const struct number *number = number_find(name);
	struct plan copy = *plan;

	value[0] = '\0';
	if (number)
		snprintf(value, size, "%" PRIu64, *number_of(&copy, number));
	else if (strcmp(name, "mode") == 0)
		snprintf(value, size, "%s", modes[plan->mode]->name);
	else if (strcmp(name, "op") == 0)
		snprintf(value, size, "%s", op_names[plan->op]);
	else if (strcmp(name, "seconds") == 0)
		snprintf(value, size, "%g", (double)plan->duration_ns / 1e9);
	else if (strcmp(name, "without") == 0 && plan->without != 0)
		plan_without_names(plan->without, value, size);
	else if (strcmp(name, "without") == 0)
		snprintf(value, size, "none");
	else if (strcmp(name, "verify") == 0)
		snprintf(value, size, "%s", plan->verify ? "on" : "off");
}

uint64_t plan_signal(const struct plan *plan)
{
	if (plan->signal > 0)
		return plan->signal;
	return RTE_MAX(RTE_MIN(plan->depth / 4, 16u), 1u);
}

/*
 * Return the acknowledgement timeout. Without loss it is 1.07 s, with seven retries: a busy machine
 * takes the CPU away from one side, then from the other, for a long time. With loss it is 268 ms,
 * because some losses are retransmitted only after this timeout.
 */
uint8_t plan_timeout(const struct plan *plan)
{
	return plan->loss_ppm == 0 ? 18 : 16;
}

/* Return true if messages may share slots. Verified messages, and those of mode latency, are read
 * where they arrive, so each needs its own slot while it is in flight. */
static bool plan_shares_places(const struct plan *plan)
{
	return !plan->verify && plan->mode != MODE_LATENCY;
}

struct slots plan_slots(const struct plan *plan, uint64_t depth)
{
	struct slots slots = {.stride_bytes =
				      RTE_ALIGN_CEIL(plan->size_bytes, (uint64_t)LINE_BYTES)};
	const uint64_t qp_bytes = plan->qps * slots.stride_bytes;
	uint64_t limit_bytes = plan->region_bytes > 0 ? plan->region_bytes : plan->spread_bytes;

	if (!plan_shares_places(plan))
		limit_bytes = UINT64_MAX;
	slots.per_qp = RTE_MAX(depth, plan->region_bytes / qp_bytes);
	slots.total = RTE_MIN(slots.per_qp * plan->qps,
			      RTE_MAX(limit_bytes / slots.stride_bytes, (uint64_t)1));
	return slots;
}

/* Return how many of `count` things a thread gets, which are dealt to the threads in turn. */
static uint64_t dealt(const struct plan *plan, uint64_t count, uint64_t thread)
{
	return count / plan->threads + (thread < count % plan->threads);
}

static uint64_t share_region(const struct plan *plan, uint64_t qps)
{
	const uint64_t whole = plan->region_bytes == 0 && plan->mode == MODE_STORAGE
				       ? PLAN_DISK_DEFAULT
				       : plan->region_bytes;

	return whole == 0 ? 0 : RTE_MAX(whole / plan->qps * qps, (uint64_t)1);
}

/*
 * The queue pairs are dealt to the threads, and each keeps the messages that it has in a test of
 * one thread: some queue pairs, the first ones, have one message more than the others. The seeds
 * differ, so a message that arrives at the wrong thread is found to be wrong.
 */
void plan_share(const struct plan *plan, uint64_t thread, struct plan *share)
{
	*share = *plan;
	if (plan->threads <= 1)
		return;
	share->threads = 1;
	share->qps = dealt(plan, plan->qps, thread);
	share->messages = plan->messages / plan->qps * share->qps +
			  dealt(plan, plan->messages % plan->qps, thread);
	share->region_bytes = share_region(plan, share->qps);
	share->spread_bytes = plan->spread_bytes / plan->qps * share->qps;
	share->seed = plan->seed + thread;
}

/* Return the larger region of the two sides. The mode computes both. */
static uint64_t share_memory(const struct plan *share)
{
	struct endpoint_config active = {.qps = (uint32_t)share->qps}, passive = active;

	modes[share->mode]->shape(share, &active, &passive);
	return RTE_MAX(active.region_bytes, passive.region_bytes);
}

/* Check the parts of all threads. */
static int check_shares(const struct plan *plan, char *error, size_t error_size)
{
	uint64_t bytes = 0;
	struct plan share;
	int rc = 0;

	if (plan->threads > plan->qps || (plan->messages > 0 && plan->messages < plan->threads)) {
		snprintf(error, error_size,
			 "%" PRIu64 " threads need at least as many queue pairs and messages",
			 plan->threads);
		return -EINVAL;
	}
	for (uint64_t thread = 0; rc == 0 && thread < plan->threads; thread++) {
		plan_share(plan, thread, &share);
		bytes += share_memory(&share);
		if (bytes > PLAN_REGION_MAX) {
			snprintf(error, error_size,
				 "size, qps, depth and region together take more than %d GiB",
				 (int)(PLAN_REGION_MAX >> 30));
			return -EINVAL;
		}
		rc = modes[share.mode]->check(&share, error, error_size);
	}
	return rc;
}

/* Check all ranges: a plan from the control connection has not passed plan_set. */
static int check_ranges(const struct plan *plan, char *error, size_t error_size)
{
	struct plan copy = *plan;

	for (size_t i = 0; i < RTE_DIM(numbers); i++) {
		const uint64_t value = *number_of(&copy, &numbers[i]);

		if (value < numbers[i].min || value > numbers[i].max) {
			snprintf(error, error_size, "%s: %" PRIu64 " is out of range",
				 numbers[i].name, value);
			return -EINVAL;
		}
	}
	if (plan->mode >= MODE_COUNT || plan->op >= RTE_DIM(op_names) || plan->verify > 1 ||
	    plan->without >> RTE_DIM(tunings) != 0 || plan->spread_bytes > PLAN_SPREAD_DEFAULT ||
	    !rte_is_power_of_2((uint32_t)plan->path_mtu_bytes)) {
		snprintf(error, error_size,
			 "the plan has an unknown mode, operation or MTU, or too much memory");
		return -EINVAL;
	}
	return 0;
}

int plan_check(const struct plan *plan, char *error, size_t error_size)
{
	int rc = check_ranges(plan, error, error_size);

	if (rc != 0)
		return rc;
	if (plan->batch > plan->depth || plan_signal(plan) > plan->depth) {
		snprintf(error, error_size, "batch and signal are at most depth, %" PRIu64,
			 plan->depth);
		return -EINVAL;
	}
	return check_shares(plan, error, error_size);
}
