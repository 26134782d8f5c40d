/* SPDX-License-Identifier: BSD-3-Clause */
/* The rules that there are, and which of the things that match a rule it hits. */
#include "inject/inject.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <rte_common.h>

#include "base/log.h"
#include "base/mix.h"
#include "base/monotonic.h"

#define ENDED UINT64_MAX /* `times` of a rule that makes no more faults */

bool inject_wanted;

/* A rule is complete before `count` says that it is there, and then stays at its place. */
static struct inject_rule rules[INJECT_RULES_MAX];
static uint32_t count; /* atomic */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Return the rule with this number, from 1, or NULL. */
static struct inject_rule *find(int number)
{
	return number >= 1 && (uint32_t)number <= __atomic_load_n(&count, __ATOMIC_ACQUIRE)
		       ? &rules[number - 1]
		       : NULL;
}

static int add_locked(const char *text, char *error, size_t error_size)
{
	struct inject_rule *rule = &rules[count];
	const int rc = inject_read(text, rule, error, error_size);

	if (rc != 0)
		return rc;
	rule->begin_ns = monotonic_ns();
	__atomic_store_n(&count, count + 1, __ATOMIC_RELEASE);
	return (int)count;
}

/* Call a function for each rule of a list until one fails. Return what it returned last. */
static int each(const char *text, int (*call)(const char *rule, char *error, size_t error_size),
		char *error, size_t error_size)
{
	char rule[INJECT_TEXT_MAX];
	int rc = 0;

	while (*text != '\0' && rc >= 0) {
		const size_t length = strcspn(text, ";");

		if (length >= sizeof(rule)) {
			snprintf(error, error_size, "inject: a rule has at most %zu characters",
				 sizeof(rule) - 1);
			return -EINVAL;
		}
		memcpy(rule, text, length);
		rule[length] = '\0';
		if (length > 0)
			rc = call(rule, error, error_size);
		text += length + (text[length] == ';');
	}
	return rc;
}

static int check_one(const char *text, char *error, size_t error_size)
{
	struct inject_rule rule;
	const int rc = inject_read(text, &rule, error, error_size);

	if (rc != 0 || !rule.each_call)
		return rc;
	snprintf(error, error_size, "inject: '%s' must be uroce-run's only rule", text);
	return -EINVAL;
}

int inject_check(const char *text, char *error, size_t error_size)
{
	return each(text, check_one, error, error_size);
}

static uint32_t rules_of(const char *text)
{
	uint32_t n = 0;

	for (; *text != '\0'; text += strcspn(text, ";") + (text[strcspn(text, ";")] == ';'))
		n += *text != ';';
	return n;
}

int inject_add(const char *text, char *error, size_t error_size)
{
	int rc = inject_check(text, error, error_size);

	if (rc != 0)
		return rc;
	pthread_mutex_lock(&lock);
	if (rules_of(text) > INJECT_RULES_MAX - count) {
		snprintf(error, error_size, "inject: there are %u rules already", count);
		rc = -ENOSPC;
	} else {
		rc = each(text, add_locked, error, error_size);
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

int inject_end(int number)
{
	struct inject_rule *rule = find(number);

	if (!rule)
		return -ENOENT;
	__atomic_store_n(&rule->times, ENDED, __ATOMIC_RELAXED);
	return 0;
}

int64_t inject_count(int number)
{
	const struct inject_rule *rule = find(number);

	return rule ? (int64_t)__atomic_load_n(&rule->hit, __ATOMIC_RELAXED) : -ENOENT;
}

/* Return a random number of 32 bits for the n-th match of a rule. It depends on nothing
 * else, so threads need no order. */
static uint64_t draw(const struct inject_rule *rule, uint64_t n)
{
	return mix_stream(rule->seed, n) >> 32;
}

/* Return true if a rule that has made so many faults may make another one. */
static bool may_hit(const struct inject_rule *rule, uint64_t hit)
{
	const uint64_t times = __atomic_load_n(&rule->times, __ATOMIC_RELAXED);

	return times == 0 || (times != ENDED && hit < times);
}

/* Count a fault, if the rule may still make one. */
static bool take_one(struct inject_rule *rule)
{
	uint64_t hit = __atomic_load_n(&rule->hit, __ATOMIC_RELAXED);

	do {
		if (!may_hit(rule, hit))
			return false;
	} while (!__atomic_compare_exchange_n(&rule->hit, &hit, hit + 1, true, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	return true;
}

/* Count what matches the rule. Return true if the rule hits it. */
static bool hits(struct inject_rule *rule)
{
	uint64_t n;

	if (rule->after_ns > 0 && monotonic_ns() - rule->begin_ns < rule->after_ns)
		return false;
	n = __atomic_add_fetch(&rule->matched, 1, __ATOMIC_RELAXED);
	if ((rule->nth > 0 && n != rule->nth) || (rule->every > 0 && n % rule->every != 0) ||
	    draw(rule, n) >= rule->share)
		return false;
	return take_one(rule);
}

/* Pairs of what a rule names and what it hits, too: functions of verbs.h, in the program, call one
 * or the other. */
static const struct {
	enum inject_call named, called;
} also[] = {
	{INJECT_ibv_reg_mr, INJECT_ibv_reg_mr_iova2},
	{INJECT_ibv_reg_mr_iova, INJECT_ibv_reg_mr_iova2},
	{INJECT_ibv_query_port, INJECT_query_port},
	{INJECT_create_qp_ex, INJECT_ibv_create_qp},
	{INJECT_create_srq_ex, INJECT_ibv_create_srq},
};

static bool is_for_call(const struct inject_rule *rule, enum inject_call call)
{
	if (rule->what != INJECT_FAILS_CALL)
		return false;
	if (rule->call == call ||
	    (rule->call == INJECT_ANY_CALL && inject_way(call) != INJECT_NEVER))
		return true;
	for (size_t i = 0; i < RTE_DIM(also); i++) {
		if (rule->call == also[i].named && call == also[i].called)
			return true;
	}
	return false;
}

int inject_into_call(enum inject_call call)
{
	const uint32_t n = __atomic_load_n(&count, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < n; i++) {
		if (!is_for_call(&rules[i], call) || !hits(&rules[i]))
			continue;
		log_error("injected: %s fails with %s (rule %u: %s)", inject_call_name(call),
			  strerrorname_np(rules[i].error), i + 1, rules[i].text);
		return rules[i].error;
	}
	return 0;
}

int inject_into_rdma_call(const char *name)
{
	static const struct {
		const char *name;
		enum inject_call call;
	} calls[] = {
#define RDMA_CALL(function) {#function, INJECT_##function},
#include "inject/rdma_calls.def"
#undef RDMA_CALL
	};

	for (size_t i = 0; i < RTE_DIM(calls); i++) {
		if (strcmp(calls[i].name, name) == 0)
			return inject_into_call(calls[i].call);
	}
	return 0;
}

enum ibv_wc_status inject_into_work(enum inject_op op, uint32_t qpn, uint64_t wr_id)
{
	const uint32_t n = __atomic_load_n(&count, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < n; i++) {
		if (rules[i].what != INJECT_FAILS_WORK || !(rules[i].ops & op) ||
		    (rules[i].qpn != 0 && rules[i].qpn != qpn) || !hits(&rules[i]))
			continue;
		log_error("injected: a work request of queue pair 0x%x (wr_id %" PRIu64
			  ") fails (rule %u: %s)",
			  qpn, wr_id, i + 1, rules[i].text);
		return rules[i].status;
	}
	return IBV_WC_SUCCESS;
}

const struct inject_rule *inject_take_event(uint64_t *wait_ns)
{
	const uint32_t n = __atomic_load_n(&count, __ATOMIC_ACQUIRE);
	const uint64_t now = monotonic_ns();

	*wait_ns = UINT64_MAX;
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t due_ns = rules[i].begin_ns + rules[i].after_ns;

		if (rules[i].what != INJECT_RAISES ||
		    !may_hit(&rules[i], __atomic_load_n(&rules[i].hit, __ATOMIC_RELAXED)))
			continue;
		if (due_ns > now)
			*wait_ns = RTE_MIN(due_ns - now, *wait_ns);
		else if (take_one(&rules[i]))
			return &rules[i];
	}
	return NULL;
}

void inject_return_event(const struct inject_rule *rule)
{
	__atomic_store_n(&rules[rule - rules].hit, 0, __ATOMIC_RELAXED);
}

bool inject_has_work_rules(void)
{
	const uint32_t n = __atomic_load_n(&count, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < n; i++) {
		if (rules[i].what == INJECT_FAILS_WORK)
			return true;
	}
	return false;
}

void inject_after_fork(void)
{
	pthread_mutex_init(&lock, NULL);
	for (uint32_t i = 0; i < count; i++) {
		rules[i].matched = 0;
		rules[i].hit = 0;
		rules[i].begin_ns = monotonic_ns();
	}
}
