/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a test's cycles go: samples of a timer, by the names of functions. */
#include "stages.h"

#include <errno.h>
#include <stdbool.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <rte_common.h>

#include "symbols.h"

#ifdef __x86_64__
#define CODE_OF(context)  ((uintptr_t)(context)->uc_mcontext.gregs[REG_RIP])
#define STACK_OF(context) ((const void *)(context)->uc_mcontext.gregs[REG_RSP])
#else
#define CODE_OF(context)  ((uintptr_t)(context)->uc_mcontext.pc)
#define STACK_OF(context) ((const void *)(context)->uc_mcontext.sp)
#endif

#define PERIOD_NS   200000
#define YIELD_BYTES 32
#define STACK_WORDS 96 /* in which the caller of a driver is looked for */

/*
 * Functions are named after their file, so the first words say what a function is for. The first
 * entry that fits counts.
 */
static const struct {
	const char *prefix;
	enum stage stage;
} prefixes[] = {
	{"icrc", STAGE_icrc},
	{"update_avx", STAGE_icrc},
	{"update_pclmul", STAGE_icrc},
	{"update_portable", STAGE_icrc},
	{"masked_", STAGE_icrc},
	{"copy_avx", STAGE_icrc},
	{"copy_pclmul", STAGE_icrc},
	{"copy_portable", STAGE_icrc},
	{"crc32", STAGE_icrc},
	{"packet_icrc", STAGE_icrc},
	{"packet_parse", STAGE_parse},
	{"parse_", STAGE_parse},
	{"device_receive", STAGE_parse},
	{"device_find", STAGE_parse},
	{"opcode_", STAGE_parse},
	{"packet_", STAGE_transmit},
	{"path_", STAGE_transmit},
	{"seal_", STAGE_transmit},
	{"client_tx", STAGE_transmit},
	{"guest_tx", STAGE_transmit},
	{"client_rx", STAGE_receive},
	{"guest_rx", STAGE_receive},
	{"client_short", STAGE_transmit},
	{"memif_rx", STAGE_receive},
	{"memif_peer_re", STAGE_receive}, /* receive, release */
	{"memif_client_re", STAGE_receive},
	{"memif_", STAGE_transmit},
	{"client_lane", STAGE_receive},
	{"lane_", STAGE_receive},
	{"tx_", STAGE_transmit},
	{"port_tx", STAGE_transmit},
	{"engine_receive", STAGE_receive},
	{"engine_input", STAGE_receive},
	{"engine_frame", STAGE_receive},
	{"port_rx", STAGE_receive},
	{"link_", STAGE_receive},
	{"engine_", STAGE_turn},
	{"ops_", STAGE_turn},
	{"owner_", STAGE_turn},
	{"wheel_", STAGE_turn},
	{"clock_", STAGE_turn},
	{"helper_", STAGE_turn},
	{"gate_", STAGE_turn},
	{"guard_", STAGE_copy},
	{"sgl_", STAGE_copy},
	{"scatter_", STAGE_copy},
	{"gather_", STAGE_copy},
	{"move_down", STAGE_copy},
	{"copy_", STAGE_copy},
	{"store", STAGE_copy},
	{"place_", STAGE_copy},
	{"rte_mov", STAGE_copy},
	{"rte_memcpy", STAGE_copy},
	{"qp_post", STAGE_post},
	{"wr_", STAGE_post},
	{"sq_", STAGE_post},
	{"rq_", STAGE_post},
	{"srq_", STAGE_post},
	{"post_", STAGE_post},
	{"face_post", STAGE_post},
	{"cq_", STAGE_completion},
	{"moderator_", STAGE_completion},
	{"poll_", STAGE_completion},
	{"qp_", STAGE_transport},
	{"requester_", STAGE_transport},
	{"responder_", STAGE_transport},
	{"completer_", STAGE_transport},
	{"replies_", STAGE_transport},
	{"recovery_", STAGE_transport},
	{"flight_", STAGE_transport},
	{"datagram_", STAGE_transport},
	{"early_", STAGE_transport},
	{"receive_", STAGE_transport},
	{"atomics_", STAGE_transport},
	{"mr_", STAGE_transport},
	{"mw_", STAGE_transport},
	{"key_", STAGE_transport},
	{"pd_", STAGE_transport},
	{"placement_", STAGE_transport},
	{"mcast_", STAGE_transport},
	{"stream_", STAGE_program},
	{"run_", STAGE_program},
	{"passive_", STAGE_program},
	{"serve", STAGE_program},
	{"pattern_", STAGE_program},
	{"pinger_", STAGE_program},
	{"latency_", STAGE_program},
	{"storage_", STAGE_program},
	{"histogram_", STAGE_program},
	{"nic_", STAGE_program},
	{"main", STAGE_program},
};

#define NAME_OF(name, meaning)	  #name,
#define MEANING_OF(name, meaning) meaning,
static const char *const names[] = {STAGES(NAME_OF)};
static const char *const meanings[] = {STAGES(MEANING_OF)};

static struct {
	timer_t timer;
	struct stages seen; /* by the handler; relaxed */
} sampler;

enum stage stages_of(const char *function)
{
	for (size_t i = 0; i < RTE_DIM(prefixes); i++)
		if (strncmp(function, prefixes[i].prefix, strlen(prefixes[i].prefix)) == 0)
			return prefixes[i].stage;
	return STAGE_other;
}

const char *stages_name(enum stage stage)
{
	return names[stage];
}

const char *stages_meaning(enum stage stage)
{
	return meanings[stage];
}

static enum stage stage_of_own(uintptr_t address)
{
	const char *function = symbols_find(address);

	return function ? stages_of(function) : STAGE_other;
}

/* The C library's function is a few instructions around a system call. */
static bool is_yield(uintptr_t address)
{
	return address - (uintptr_t)sched_yield < YIELD_BYTES;
}

/*
 * In a library: a driver's receiving and sending functions have no names here, and copies are asked
 * for by many. Whoever of ours called it tells; what looks like a return address of ours is most
 * likely one.
 */
__attribute__((no_sanitize("address"))) static enum stage stage_of_caller(const uintptr_t *stack)
{
	for (size_t i = 0; i < STACK_WORDS; i++) {
		const enum stage stage =
			symbols_is_own(stack[i]) ? stage_of_own(stack[i]) : STAGE_other;

		/* Programs' memcpy is a copy, whoever of the transport wants it. */
		if (stage == STAGE_transport)
			return STAGE_copy;
		if (stage != STAGE_other)
			return stage;
	}
	return STAGE_other;
}

/* Looks at constant memory and its own stack only, so it may interrupt anything. */
static void on_sample(int number, siginfo_t *info, void *data)
{
	const ucontext_t *context = data;
	const uintptr_t at = CODE_OF(context);
	const uintptr_t *stack = STACK_OF(context);
	enum stage stage;

	(void)number;
	(void)info;
	stage = symbols_is_own(at) ? stage_of_own(at)
		: is_yield(at)	   ? STAGE_wait
				   : stage_of_caller(stack);
	__atomic_fetch_add(&sampler.seen.samples[stage], 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&sampler.seen.count, 1, __ATOMIC_RELAXED);
}

int stages_begin(void)
{
	const struct sigaction action = {.sa_sigaction = on_sample,
					 .sa_flags = SA_SIGINFO | SA_RESTART};
	const struct itimerspec period = {.it_interval = {.tv_nsec = PERIOD_NS},
					  .it_value = {.tv_nsec = PERIOD_NS}};
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF};
	int rc = symbols_read();

	if (rc != 0)
		return rc;
	stages_clear();
	event._sigev_un._tid = gettid();
	if (sigaction(SIGPROF, &action, NULL) != 0 ||
	    timer_create(CLOCK_MONOTONIC, &event, &sampler.timer) != 0)
		return -errno;
	timer_settime(sampler.timer, 0, &period, NULL);
	return 0;
}

void stages_end(struct stages *stages)
{
	timer_delete(sampler.timer);
	stages_peek(stages);
}

void stages_clear(void)
{
	for (size_t i = 0; i < STAGE_COUNT; i++)
		__atomic_store_n(&sampler.seen.samples[i], 0, __ATOMIC_RELAXED);
	__atomic_store_n(&sampler.seen.count, 0, __ATOMIC_RELAXED);
}

void stages_peek(struct stages *stages)
{
	stages->count = 0;
	for (size_t i = 0; i < STAGE_COUNT; i++) {
		stages->samples[i] = __atomic_load_n(&sampler.seen.samples[i], __ATOMIC_RELAXED);
		stages->count += stages->samples[i];
	}
}
