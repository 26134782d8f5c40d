/* SPDX-License-Identifier: BSD-3-Clause */
/* Divides what the owner moves among tenants. */
#include "owner/tenants.h"

#include <assert.h>
#include <string.h>

#include <rte_common.h>

#define NS_PER_S UINT64_C(1000000000)

/* `sent` counts a byte of a tenant of weight 1 as so many. So the division by the largest weight
 * loses little. */
#define SENT_PER_BYTE UINT64_C(65536)

/* Credit counts a byte as so many: the quantum of a light tenant is few bytes. */
#define CREDIT_PER_BYTE 1024

/* A tenant may be so far ahead of the others that wait. It is not held back for more than this: it
 * may have used what the others could not. */
#define SENT_AHEAD_MAX (UINT64_C(4) * TENANTS_QUANTUM_BYTES * SENT_PER_BYTE)

/* A tenant whose packets have not waited for so many rounds has an account that is too old to
 * compare: `sent` of the others may have wrapped around. */
#define ROUNDS_OLD UINT64_C(1048576)

static_assert(ROUNDS_OLD < INT64_MAX / ((TENANTS_QUANTUM_BYTES + 65536u) * SENT_PER_BYTE),
	      "no account wraps around in so many rounds");
static_assert(TENANTS_BURST_NS <= UINT64_MAX / TENANTS_RATE_MAX, "a burst's bytes fit");

/* Compare `sent` of two tenants modulo 2^64. They are at most SENT_AHEAD_MAX and a round apart. */
static bool sent_is_less(uint64_t a, uint64_t b)
{
	return (int64_t)(a - b) < 0;
}

void tenants_init(struct tenants *tenants)
{
	memset(tenants, 0, sizeof(*tenants));
	tenants->due_ns = UINT64_MAX;
}

static void tenants_decide(struct tenants *tenants)
{
	tenants->are_many = tenants->count > 1 || tenants->rated > 0;
	tenants->due_ns = UINT64_MAX;
}

/* Find the entry of a user; else one without slots, of the tenant that owes least. */
static uint16_t tenants_find(const struct tenants *tenants, user_t user)
{
	uint16_t found = TENANTS_NONE;

	for (uint16_t i = 0; i < TENANTS_MAX; i++) {
		const struct tenant *tenant = &tenants->all[i];

		if (tenant->limits.weight > 0 && tenant->user == user)
			return i;
		if (tenant->slots == 0 &&
		    (found == TENANTS_NONE || tenant->paid_ns < tenants->all[found].paid_ns))
			found = i;
	}
	return found;
}

uint16_t tenants_join(struct tenants *tenants, user_t user, const struct tenants_limits *limits,
		      uint64_t now_ns)
{
	const uint16_t number = tenants_find(tenants, user);
	struct tenant *tenant;

	if (number == TENANTS_NONE)
		return TENANTS_NONE;
	tenant = &tenants->all[number];
	/* A tenant that comes back still owes what it owed: it cannot get more by attaching anew.
	 */
	if (tenant->limits.weight == 0 || tenant->user != user)
		*tenant = (struct tenant){.user = user, .sent = tenants->sent, .paid_ns = now_ns};
	tenant->limits = *limits;
	if (tenant->slots++ == 0) {
		tenants->count++;
		tenants->rated += limits->rate > 0;
	}
	tenants_decide(tenants);
	return number;
}

void tenants_change(struct tenants *tenants, uint16_t number, const struct tenants_limits *limits)
{
	struct tenant *tenant = &tenants->all[number];

	if (tenant->slots > 0) {
		tenants->rated -= tenant->limits.rate > 0;
		tenants->rated += limits->rate > 0;
	}
	tenant->limits = *limits;
	tenant->paid_fraction = 0; /* it is in units of 1 / rate */
	tenants_decide(tenants);
}

void tenants_leave(struct tenants *tenants, uint16_t number)
{
	struct tenant *tenant;

	if (number == TENANTS_NONE)
		return;
	tenant = &tenants->all[number];
	if (--tenant->slots == 0) {
		tenants->count--;
		tenants->rated -= tenant->limits.rate > 0;
	}
	tenants_decide(tenants);
}

void tenants_begin(struct tenants *tenants)
{
	tenants->order_count = 0;
	tenants->turn = 0;
	tenants->rounds++;
}

void tenants_want(struct tenants *tenants, uint16_t number, uint16_t slot)
{
	struct tenant *tenant = &tenants->all[number];

	if (tenant->waiting++ == 0) {
		tenants->order[tenants->order_count++] = number;
		tenant->at = tenant->first;
		tenant->behind = TENANTS_NONE;
	}
	tenant->slots_waiting[slot / 64] |= UINT64_C(1) << (slot % 64);
}

/* Return the bytes that a tenant's rate allows now. */
static uint64_t tenant_earned(const struct tenant *tenant, uint64_t now_ns)
{
	const uint64_t owed_ns = tenant->paid_ns > now_ns ? tenant->paid_ns - now_ns : 0;

	if (owed_ns >= TENANTS_BURST_NS)
		return 0;
	return (TENANTS_BURST_NS - owed_ns) * tenant->limits.rate / NS_PER_S;
}

bool tenants_is_held(const struct tenants *tenants, uint16_t number, uint64_t now_ns)
{
	const struct tenant *tenant = &tenants->all[number];

	return tenant->limits.rate > 0 && tenant_earned(tenant, now_ns) == 0;
}

/* Take the turns of this round from a tenant. */
static void tenant_clear(struct tenant *tenant)
{
	memset(tenant->slots_waiting, 0, sizeof(tenant->slots_waiting));
	tenant->waiting = 0;
}

/* Leave out the tenants that have to wait for their rate. */
static void tenants_hold(struct tenants *tenants, uint64_t now_ns)
{
	uint16_t kept = 0;

	tenants->due_ns = UINT64_MAX;
	for (uint16_t i = 0; i < tenants->order_count; i++) {
		const uint16_t number = tenants->order[i];
		struct tenant *tenant = &tenants->all[number];

		if (!tenants_is_held(tenants, number, now_ns)) {
			tenants->order[kept++] = number;
			continue;
		}
		/* The tenant has earned a byte by then. */
		tenants->due_ns =
			RTE_MIN(tenants->due_ns, tenant->paid_ns - TENANTS_BURST_NS +
							 NS_PER_S / tenant->limits.rate + 1);
		tenant_clear(tenant);
	}
	tenants->order_count = kept;
}

/* Return the least `sent` of the tenants whose packets waited in the last round, too. */
static uint64_t tenants_least(const struct tenants *tenants)
{
	uint64_t least = tenants->sent;
	bool any = false;

	for (uint16_t i = 0; i < tenants->order_count; i++) {
		const struct tenant *tenant = &tenants->all[tenants->order[i]];

		if (tenant->round + 1 != tenants->rounds ||
		    (any && !sent_is_less(tenant->sent, least)))
			continue;
		least = tenant->sent;
		any = true;
	}
	return least;
}

/*
 * Bring the tenants' accounts close to each other. A tenant whose packets did not wait before comes
 * first, but has no claim beyond that: at most a quantum. A tenant that is far ahead is brought
 * back, and not the others forward: this keeps the differences between those that wait for a slow
 * port.
 */
static void tenants_settle(struct tenants *tenants)
{
	const uint64_t least = tenants_least(tenants);

	for (uint16_t i = 0; i < tenants->order_count; i++) {
		struct tenant *tenant = &tenants->all[tenants->order[i]];
		const uint64_t passed = tenants->rounds - tenant->round;
		const uint64_t lowest = least - (uint64_t)TENANTS_QUANTUM_BYTES * SENT_PER_BYTE /
							tenant->limits.weight;

		if (passed > ROUNDS_OLD || sent_is_less(tenant->sent, lowest))
			tenant->sent = lowest;
		if (sent_is_less(least + SENT_AHEAD_MAX, tenant->sent))
			tenant->sent = least + SENT_AHEAD_MAX;
		tenant->round = tenants->rounds;
	}
	tenants->sent = least;
}

/* Sort by insertion: the order changes little from round to round, and most rounds have few
 * tenants. */
static void tenants_sort(struct tenants *tenants)
{
	for (uint16_t i = 1; i < tenants->order_count; i++) {
		const uint16_t number = tenants->order[i];
		uint16_t at = i;

		for (; at > 0 && sent_is_less(tenants->all[number].sent,
					      tenants->all[tenants->order[at - 1]].sent);
		     at--)
			tenants->order[at] = tenants->order[at - 1];
		tenants->order[at] = number;
	}
}

/*
 * Give credit. The heaviest of the tenants that use all their credit gets a quantum. A heavy tenant
 * that waits for its receiver, or for the port, does not make the others' credits small.
 */
static void tenants_credit(struct tenants *tenants)
{
	int64_t heaviest = 0;

	for (uint16_t i = 0; i < tenants->order_count; i++) {
		const struct tenant *tenant = &tenants->all[tenants->order[i]];

		if (tenant->keen)
			heaviest = RTE_MAX(heaviest, (int64_t)tenant->limits.weight);
	}
	for (uint16_t i = 0; i < tenants->order_count; i++) {
		struct tenant *tenant = &tenants->all[tenants->order[i]];
		int64_t quantum = TENANTS_QUANTUM_BYTES * CREDIT_PER_BYTE;

		if (tenant->limits.weight < heaviest)
			quantum = quantum * tenant->limits.weight / heaviest;
		/* Credit that was not used is lost: the tenant could not use it. */
		tenant->credit = RTE_MIN(tenant->credit + quantum, quantum);
	}
}

void tenants_start(struct tenants *tenants, uint64_t now_ns)
{
	tenants_hold(tenants, now_ns);
	tenants_settle(tenants);
	tenants_sort(tenants);
	tenants_credit(tenants);
}

/* Return the tenant's next waiting slot, and take it from those that wait. There is one. */
static uint16_t tenant_next_slot(struct tenant *tenant)
{
	uint16_t word = tenant->at / 64;
	uint64_t bits = tenant->slots_waiting[word] & (UINT64_MAX << (tenant->at % 64));
	uint16_t slot;

	while (bits == 0) {
		word = (uint16_t)((word + 1) % RTE_DIM(tenant->slots_waiting));
		bits = tenant->slots_waiting[word];
	}
	slot = (uint16_t)(word * 64 + (uint16_t)__builtin_ctzll(bits));
	tenant->slots_waiting[word] &= ~(UINT64_C(1) << (slot % 64));
	tenant->at = (uint16_t)((slot + 1) % TENANTS_SLOTS);
	tenant->waiting--;
	return slot;
}

/* Return the credit of the tenant's next slot in bytes. */
static int64_t tenant_share(const struct tenant *tenant, uint64_t now_ns)
{
	int64_t credit = tenant->credit;

	if (credit <= 0)
		return 0;
	credit = credit / CREDIT_PER_BYTE + 1;
	if (tenant->limits.rate > 0)
		credit = RTE_MIN(credit, (int64_t)tenant_earned(tenant, now_ns));
	return (credit + tenant->waiting - 1) / tenant->waiting;
}

/* End the turn of a tenant for this round. If the credit was not enough for all its slots, the next
 * round goes on behind them; else it begins with another slot, because the first one may have left
 * no room of the port to the others. */
static void tenants_pass(struct tenants *tenants, struct tenant *tenant)
{
	if (tenant->waiting > 0)
		tenant->first = tenant->at;
	else if (tenant->behind != TENANTS_NONE)
		tenant->first = tenant->behind;
	tenant->keen = tenant->credit <= 0;
	tenant_clear(tenant);
	tenants->turn++;
}

uint16_t tenants_next(struct tenants *tenants, uint64_t now_ns, struct tenants_take *take)
{
	while (tenants->turn < tenants->order_count) {
		struct tenant *tenant = &tenants->all[tenants->order[tenants->turn]];

		*take = (struct tenants_take){0};
		if (tenant->waiting > 0)
			take->credit = tenant_share(tenant, now_ns);
		if (take->credit > 0)
			return tenant_next_slot(tenant);
		tenants_pass(tenants, tenant);
	}
	return TENANTS_NONE;
}

void tenants_charge(struct tenants *tenants, uint16_t number, const struct tenants_take *take,
		    uint64_t now_ns)
{
	struct tenant *tenant = &tenants->all[number];
	const uint64_t rate = tenant->limits.rate;
	uint64_t owed;

	if (!tenants->are_many)
		return;
	if (take->cost > 0 && tenant->behind == TENANTS_NONE)
		tenant->behind = tenant->at;
	tenant->credit -= take->cost * CREDIT_PER_BYTE;
	tenant->sent += (uint64_t)take->cost * SENT_PER_BYTE / tenant->limits.weight;
	if (rate == 0 || take->bytes == 0)
		return;
	owed = take->bytes * NS_PER_S + tenant->paid_fraction;
	tenant->paid_ns = RTE_MAX(tenant->paid_ns, now_ns) + owed / rate;
	tenant->paid_fraction = owed % rate;
}

bool tenants_may_connect(struct tenants *tenants, uint16_t number, uint64_t now_ns)
{
	struct tenant *tenant = &tenants->all[number];
	const uint32_t rate = tenant->limits.connection_rate;
	const uint64_t asked_ns = RTE_MAX(tenant->asked_ns, now_ns);

	if (rate == 0)
		return true;
	if (asked_ns + NS_PER_S / rate > now_ns + NS_PER_S)
		return false;
	tenant->asked_ns = asked_ns + NS_PER_S / rate;
	return true;
}
