/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports a program that breaks a promise, crashes or does not end: its state, the fault, and the
 * command that repeats it. */
#include <assert.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "qp/qp.h"
#include "sim.h"
#include "supervise.h"

#define CPU_LIMIT_S 120 /* CPU time; a program that uses more does not end */

static const char *const scenario_names[SCENARIOS] = {
	[SCENARIO_SOUND] = "sound", [SCENARIO_MISHAP] = "mishap", [SCENARIO_CUT] = "cut",
	[SCENARIO_KILL] = "kill",   [SCENARIO_GONE] = "gone",	  [SCENARIO_LOST] = "lost",
};

const char *sim_scenario_name(int scenario)
{
	return scenario_names[scenario];
}

static const char *const type_names[] = {
	[IBV_QPT_RC] = "RC",
	[IBV_QPT_UC] = "UC",
	[IBV_QPT_UD] = "UD",
	[IBV_QPT_XRC_SEND] = "XRC",
	[IBV_QPT_XRC_RECV] = "XRC (receives)",
};

static void dump_flow(const struct flow *flow)
{
	const struct end *from = flow->from;

	printf("flow %2d: %s%s%s, host %d qp %06x > host %d qp %06x: %u works, %u posted, %u "
	       "closed%s; %u receives, %u posted, %u complete, gap %llu ns",
	       flow->number, type_names[from->type], flow->exact ? " exact" : "",
	       flow->pool ? " pooled" : "", from->host->number, from->qpn, flow->to->host->number,
	       flow->to->qpn, flow->work_count, flow->posted, flow->closed,
	       flow->loose ? " (loose)" : "", flow->receive_count, flow->receives_posted,
	       flow->received, (unsigned long long)flow->receive_gap_ns);
	if (flow->mishap_at >= 0)
		printf("; mishap at %d: %s", flow->mishap_at,
		       mishap_info(flow->works[flow->mishap_at].mishap)->name);
	printf("\n         mtu %u psn %06x timeout %u rnr_retry %u rnr_timer %u rd_atomic %u/%u sq "
	       "%u rq %u",
	       128u << from->mtu, from->sq_psn, from->timeout, from->rnr_retry,
	       flow->to->min_rnr_timer, from->max_rd_atomic, flow->to->max_dest_rd_atomic,
	       from->cap.max_send_wr, flow->to->cap.max_recv_wr);
	if (from->qp != NULL) {
		struct ibv_qp_init_attr init;
		struct ibv_qp_attr attr;

		qp_query(from->qp, &attr, &init);
		printf("; state %d sq_psn %06x rq_psn %06x deadline %lld ns", (int)attr.qp_state,
		       attr.sq_psn, attr.rq_psn, (long long)qp_deadline_ns(from->qp));
	}
	printf("\n");
}

void sim_dump(const struct sim *sim)
{
	const struct link_attr *attr = &sim->link[0][1].attr;

	printf("seed %llu: %s%s%s, %u hosts, %u pairs, now %llu ns, newest completion %llu ns\n",
	       (unsigned long long)sim->seed, scenario_names[sim->scenario],
	       sim->tight ? ", tight" : "",
	       sim->abrupt  ? ", twice abruptly"
	       : sim->twice ? ", twice"
			    : "",
	       sim->hosts, sim->pairs, (unsigned long long)sim->clock.now_ns,
	       (unsigned long long)sim->progress_ns);
	printf("link: latency %llu ns, %llu Mb/s; ppm lost %u, bursts %u, duplicated %u, ghosts "
	       "%u, "
	       "damaged %u, reordered %u; est %llu ns\n",
	       (unsigned long long)attr->latency_ns, (unsigned long long)attr->mbps, attr->loss_ppm,
	       attr->burst_ppm, attr->duplicate_ppm, attr->ghost_ppm, attr->corrupt_ppm,
	       attr->reorder_ppm, (unsigned long long)sim->est_ns);
	for (unsigned int i = 0; i < 2 * sim->pairs; i++)
		dump_flow(&sim->flow[i]);
}

/* Keep the fault for the supervisor of this process. */
static void __attribute__((format(printf, 2, 0)))
record(const char *kind, const char *format, va_list args)
{
	report->kind = kind;
	vsnprintf(report->message, sizeof(report->message), format, args);
}

void sim_fail(struct sim *sim, const char *format, ...)
{
	char extras[VARIANT_TEXT_MAX];
	va_list args;

	va_start(args, format);
	record(format, format, args);
	va_end(args);
	if (report->supervised)
		_exit(1);
	sim_dump(sim);
	variant_print(&sim->variant, extras);
	fflush(stdout);
	fprintf(stderr,
		"sim: seed %llu: %s\nsim: repeat it with: sim --seed %llu%s%s%s --verbose\n",
		(unsigned long long)sim->seed, report->message, (unsigned long long)sim->seed,
		sim->only >= 0 ? " --scenario " : "",
		sim->only >= 0 ? scenario_names[sim->only] : "", extras);
	exit(1);
}

static void __attribute__((format(printf, 2, 3)))
record_assertion(const char *assertion, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	record(assertion, format, args);
	va_end(args);
}

/* This definition precedes the C library's, so that each assertion is a kind of failure. */
void __assert_fail(const char *assertion, const char *file, unsigned int line, const char *function)
{
	record_assertion(assertion, "%s:%u: %s: assertion \"%s\"", file, line, function, assertion);
	fprintf(stderr, "sim: %s\n", report->message);
	abort();
}

/* The sanitizers' function, if they are linked in. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void say_seed(void)
{
	fflush(stdout);
	fprintf(stderr, "sim: seed %llu crashed\n", (unsigned long long)report->seed);
}

static void crashed(int signal)
{
	say_seed();
	_exit(128 + signal);
}

/* Limit the CPU time of the next program. */
void sim_watch(void)
{
	const struct itimerval limit = {.it_value.tv_sec = CPU_LIMIT_S};

	setitimer(ITIMER_PROF, &limit, NULL);
}

/* A crash must report how to repeat it, too. */
void sim_catch_crashes(void)
{
	if (__sanitizer_set_death_callback != NULL) {
		__sanitizer_set_death_callback(say_seed);
		return;
	}
	signal(SIGPROF, crashed);
	signal(SIGSEGV, crashed);
	signal(SIGBUS, crashed);
	signal(SIGABRT, crashed);
	signal(SIGFPE, crashed);
}
