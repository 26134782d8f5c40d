/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads a rule: KEY=VALUE,... */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "base/decimal.h"
#include "base/text.h"
#include "inject/inject.h"

#define ERRNO_MAX   133
#define SHARE_ALL   (1ull << 32)
#define AFTER_MAX_S 86400

struct name {
	const char *name;
	int value;
};

static const struct name ops[] = {
	{"send", INJECT_SEND},	   {"write", INJECT_WRITE}, {"read", INJECT_READ},
	{"atomic", INJECT_ATOMIC}, {"recv", INJECT_RECV},   {"any", INJECT_REQUESTS},
};

/* The statuses that a queue pair itself can report; a receive request can only have the first. */
static const struct name statuses[] = {
	{"loc_prot_err", IBV_WC_LOC_PROT_ERR},
	{"loc_len_err", IBV_WC_LOC_LEN_ERR},
	{"loc_qp_op_err", IBV_WC_LOC_QP_OP_ERR},
	{"mw_bind_err", IBV_WC_MW_BIND_ERR},
	{"rem_inv_req_err", IBV_WC_REM_INV_REQ_ERR},
	{"rem_access_err", IBV_WC_REM_ACCESS_ERR},
	{"rem_op_err", IBV_WC_REM_OP_ERR},
	{"bad_resp_err", IBV_WC_BAD_RESP_ERR},
	{"retry_exc_err", IBV_WC_RETRY_EXC_ERR},
	{"rnr_retry_exc_err", IBV_WC_RNR_RETRY_EXC_ERR},
};

static const struct name events[] = {
	{"device_fatal", IBV_EVENT_DEVICE_FATAL},
	{"port_err", IBV_EVENT_PORT_ERR},
	{"port_active", IBV_EVENT_PORT_ACTIVE},
	{"gid_change", IBV_EVENT_GID_CHANGE},
	{"lid_change", IBV_EVENT_LID_CHANGE},
	{"pkey_change", IBV_EVENT_PKEY_CHANGE},
	{"sm_change", IBV_EVENT_SM_CHANGE},
	{"client_reregister", IBV_EVENT_CLIENT_REREGISTER},
	{"qp_fatal", IBV_EVENT_QP_FATAL},
	{"qp_req_err", IBV_EVENT_QP_REQ_ERR},
	{"qp_access_err", IBV_EVENT_QP_ACCESS_ERR},
};

/* The part of a symbol before the name of its call. */
static const char *const beginnings[] = {"_ibv_", "ibv_", "later_", ""};

const char *inject_call_name(enum inject_call call)
{
	static const char *const symbols[] = {
#define CALL(type, function, parameters, arguments) [INJECT_##function] = #function,
#include "inject/calls.def"
#undef CALL
#define OPERATION(type, table, member, parameters, arguments) [INJECT_##member] = #member,
#include "inject/operations.def"
#undef OPERATION
#define RDMA_CALL(function) [INJECT_##function] = #function,
#include "inject/rdma_calls.def"
#undef RDMA_CALL
		[INJECT_post_send] = "post_send",
		[INJECT_post_recv] = "post_recv",
		[INJECT_post_srq_recv] = "post_srq_recv",
	};
	static __thread char name[48];
	size_t i = 0, length;

	if (strncmp(symbols[call], "rdma_", strlen("rdma_")) == 0)
		return symbols[call];
	do {
		length = strlen(beginnings[i]);
	} while (strncmp(symbols[call], beginnings[i++], length) != 0);
	snprintf(name, sizeof(name), "ibv_%s", symbols[call] + length);
	return name;
}

/* Return the way that follows from the type of a call. */
static enum inject_way usual_way(enum inject_call call)
{
	switch (call) {
#define CALL(type, function, parameters, arguments)               \
	case INJECT_##function:                                   \
		return strcmp(#type, "void") == 0  ? INJECT_NEVER \
		       : strcmp(#type, "int") == 0 ? INJECT_ERRNO \
						   : INJECT_NULL;
#include "inject/calls.def"
#undef CALL
#define OPERATION(type, table, member, parameters, arguments) \
	case INJECT_##member:                                 \
		return strcmp(#type, "int") == 0 ? INJECT_ERRNO : INJECT_NULL;
#include "inject/operations.def"
#undef OPERATION
	default:
		return INJECT_ERRNO;
	}
}

enum inject_way inject_way(enum inject_call call)
{
	switch (call) {
	/* These calls return no error value. */
	case INJECT_ibv_get_device_guid:
	case INJECT_ibv_get_device_index:
	case INJECT_ibv_get_device_name:
	case INJECT_ibv_is_fork_initialized:
	case INJECT_ibv_qp_to_qp_ex:
	case INJECT_ibv_query_qp_data_in_order:
		return INJECT_NEVER;
	case INJECT_ibv_close_device:
	case INJECT_ibv_get_async_event:
	case INJECT_ibv_get_cq_event:
	case INJECT_ibv_get_pkey_index:
	case INJECT_ibv_init_ah_from_wc:
	case INJECT_ibv_query_gid:
	case INJECT_ibv_query_gid_type:
	case INJECT_ibv_query_pkey:
	case INJECT_later_export_buf_dmabuf_fd:
	case INJECT_poll_cq:
		return INJECT_MINUS_1;
	case INJECT__ibv_query_gid_table:
	case INJECT_ibv_resolve_eth_l2_from_gid:
		return INJECT_NEGATIVE;
	case INJECT_ibv_rereg_mr:
		return INJECT_REREG;
	default:
		return usual_way(call);
	}
}

static bool find_name(const struct name *names, size_t n, const char *text, int *value)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(names[i].name, text) == 0) {
			*value = names[i].value;
			return true;
		}
	}
	return false;
}

#define FIND(names, text, value) find_name(names, RTE_DIM(names), text, value)

static bool read_call(const char *text, struct inject_rule *rule)
{
	rule->what = INJECT_FAILS_CALL;
	for (int call = 0; call < INJECT_CALLS; call++) {
		if (strcmp(text, inject_call_name((enum inject_call)call)) == 0) {
			rule->call = (enum inject_call)call;
			return inject_way(rule->call) != INJECT_NEVER;
		}
	}
	rule->call = INJECT_ANY_CALL;
	return strcmp(text, "any") == 0;
}

static bool read_errno(const char *text, struct inject_rule *rule)
{
	for (rule->error = 1; rule->error <= ERRNO_MAX; rule->error++) {
		const char *name = strerrorname_np(rule->error);

		if (name && strcmp(name, text) == 0)
			return true;
	}
	return false;
}

static bool read_op(const char *text, struct inject_rule *rule)
{
	int ops_of = 0;

	rule->what = INJECT_FAILS_WORK;
	if (!FIND(ops, text, &ops_of))
		return false;
	rule->ops = (uint32_t)ops_of;
	return true;
}

static bool read_status(const char *text, struct inject_rule *rule)
{
	int status = 0;
	const bool found = FIND(statuses, text, &status);

	rule->status = (enum ibv_wc_status)status;
	return found;
}

static bool read_event(const char *text, struct inject_rule *rule)
{
	int event = 0;
	const bool found = FIND(events, text, &event);

	rule->what = INJECT_RAISES;
	rule->times = 1;
	rule->event = (enum ibv_event_type)event;
	return found;
}

static bool read_number(const char *text, uint64_t min, uint64_t max, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 0);
	return errno == 0 && *text >= '0' && *text <= '9' && *end == '\0' && *value >= min &&
	       *value <= max;
}

static bool read_qp(const char *text, struct inject_rule *rule)
{
	uint64_t qpn;
	const bool good = read_number(text, 1, (1u << 24) - 1, &qpn);

	rule->qpn = (uint32_t)qpn;
	return good;
}

static bool read_nth(const char *text, struct inject_rule *rule)
{
	return read_number(text, 1, UINT64_MAX - 1, &rule->nth);
}

static bool read_every(const char *text, struct inject_rule *rule)
{
	if (strcmp(text, "call") == 0) {
		rule->what = INJECT_FAILS_CALL;
		rule->each_call = true;
		return true;
	}
	return read_number(text, 1, UINT64_MAX - 1, &rule->every);
}

static bool read_times(const char *text, struct inject_rule *rule)
{
	return read_number(text, 1, UINT64_MAX - 1, &rule->times);
}

static bool read_seed(const char *text, struct inject_rule *rule)
{
	return read_number(text, 0, UINT64_MAX, &rule->seed);
}

static bool read_share(const char *text, struct inject_rule *rule)
{
	uint64_t billionths;
	const char *end;

	if (!decimal_read(text, &billionths, &end) || *end != '\0' || billionths > DECIMAL_ONE)
		return false;
	rule->share = (uint64_t)((unsigned __int128)billionths * SHARE_ALL / DECIMAL_ONE);
	return true;
}

static bool read_after(const char *text, struct inject_rule *rule)
{
	static const struct decimal_unit units[] = {
		{"us", 1000}, {"ms", 1000000}, {"s", DECIMAL_ONE}};

	return decimal_read_unit(text, units, RTE_DIM(units), &rule->after_ns) &&
	       rule->after_ns <= AFTER_MAX_S * DECIMAL_ONE;
}

enum key {
	KEY_CALL,
	KEY_OP,
	KEY_EVENT,
	KEY_ERRNO,
	KEY_STATUS,
	KEY_QP,
	KEY_NTH,
	KEY_EVERY,
	KEY_P,
	KEY_TIMES,
	KEY_AFTER,
	KEY_SEED,
	KEYS,
};

#define BIT(key) (1u << KEY_##key)

static const struct {
	const char *name;
	bool (*read)(const char *text, struct inject_rule *rule);
	const char *what;
} keys[KEYS] = {
	[KEY_CALL] = {"call", read_call, "a call of verbs or rdma_cm that can fail, or any"},
	[KEY_OP] = {"op", read_op, "one of send, write, read, atomic, recv and any"},
	[KEY_EVENT] = {"event", read_event, "an asynchronous event, as qp_fatal"},
	[KEY_ERRNO] = {"errno", read_errno, "the name of an errno value, as ENOMEM"},
	[KEY_STATUS] = {"status", read_status, "a status of a work request, as retry_exc_err"},
	[KEY_QP] = {"qp", read_qp, "the number of a queue pair, as 0x1a2"},
	[KEY_NTH] = {"nth", read_nth, "a number from 1"},
	[KEY_EVERY] = {"every", read_every, "a number from 1, or call"},
	[KEY_P] = {"p", read_share, "a probability from 0 to 1"},
	[KEY_TIMES] = {"times", read_times, "a number from 1"},
	[KEY_AFTER] = {"after", read_after, "a time up to a day, as 500ms or 2s"},
	[KEY_SEED] = {"seed", read_seed, "a number"},
};

/* Keys that a rule of each kind may have; it must have the first ones. */
static const struct {
	uint32_t must, may;
} kinds[] = {
	[INJECT_FAILS_CALL] = {BIT(CALL) | BIT(ERRNO), BIT(NTH) | BIT(EVERY) | BIT(P) | BIT(TIMES) |
							       BIT(AFTER) | BIT(SEED)},
	[INJECT_FAILS_WORK] = {BIT(OP) | BIT(STATUS), BIT(QP) | BIT(NTH) | BIT(EVERY) | BIT(P) |
							      BIT(TIMES) | BIT(AFTER) | BIT(SEED)},
	[INJECT_RAISES] = {BIT(EVENT), BIT(QP) | BIT(AFTER)},
};

bool inject_is_of_qp(enum ibv_event_type event)
{
	return event == IBV_EVENT_QP_FATAL || event == IBV_EVENT_QP_REQ_ERR ||
	       event == IBV_EVENT_QP_ACCESS_ERR;
}

static int check(const struct inject_rule *rule, uint32_t given, struct text *why)
{
	const uint32_t must = rule->each_call ? BIT(EVERY) | BIT(ERRNO) : kinds[rule->what].must;
	const uint32_t may = rule->each_call ? 0 : kinds[rule->what].may;

	if (!rule->each_call && !(given & (BIT(CALL) | BIT(OP) | BIT(EVENT))))
		return text_refuse(
			why, "inject: '%s': a rule needs one of call=, op= and event=", rule->text);
	for (size_t i = 0; i < KEYS; i++) {
		if (must & ~given & (1u << i))
			return text_refuse(why, "inject: '%s': %s= is missing", rule->text,
					   keys[i].name);
		if (given & ~must & ~may & (1u << i))
			return text_refuse(why, "inject: '%s': %s= has no meaning here", rule->text,
					   keys[i].name);
	}
	if (rule->what == INJECT_FAILS_WORK && (rule->ops & INJECT_RECV) &&
	    rule->status != IBV_WC_LOC_PROT_ERR)
		return text_refuse(
			why, "inject: '%s': a receive request can only fail with loc_prot_err",
			rule->text);
	if (rule->what == INJECT_RAISES && rule->qpn != 0 && !inject_is_of_qp(rule->event))
		return text_refuse(why, "inject: '%s': the event is not of a queue pair",
				   rule->text);
	return 0;
}

static int read_item(char *item, struct inject_rule *rule, uint32_t *given, struct text *why)
{
	char *value = strchr(item, '=');

	if (value)
		*value++ = '\0';
	for (size_t i = 0; value && i < KEYS; i++) {
		if (strcmp(item, keys[i].name) != 0)
			continue;
		if (*given & (1u << i))
			return text_refuse(why, "inject: '%s': %s= is there twice", rule->text,
					   item);
		if (!keys[i].read(value, rule))
			return text_refuse(why, "inject: '%s': %s= needs %s", rule->text, item,
					   keys[i].what);
		*given |= 1u << i;
		return 0;
	}
	return text_refuse(why, "inject: '%s': '%s' is not KEY=VALUE with a key of rules",
			   rule->text, item);
}

int inject_read(const char *text, struct inject_rule *rule, char *error, size_t error_size)
{
	char copy[INJECT_TEXT_MAX], *rest = copy, *item;
	struct text why = {error, error_size, 0};
	uint32_t given = 0;
	int rc;

	*rule = (struct inject_rule){.share = SHARE_ALL, .seed = 1};
	if (strlen(text) >= sizeof(copy))
		return text_refuse(&why, "inject: a rule has at most %d characters",
				   INJECT_TEXT_MAX - 1);
	snprintf(rule->text, sizeof(rule->text), "%s", text);
	snprintf(copy, sizeof(copy), "%s", text);
	while ((item = strsep(&rest, ",")) != NULL) {
		rc = read_item(item, rule, &given, &why);
		if (rc != 0)
			return rc;
	}
	return check(rule, given, &why);
}
