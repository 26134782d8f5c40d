/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of other devices, and the chosen one. */
#include "like/like.h"

#include <errno.h>
#include <string.h>

#include <rte_common.h>

#include "base/reason.h"
#include "base/verbs_later.h"

#define SEEN(value)	 value
#define DRIVER(value)	 value
#define PROVIDER(value)	 value
#define UNKNOWN		 UINT64_MAX
#define NOT_TAKEN(value) UNKNOWN
#define HAS		 0

static const struct {
	const char *option, *name;
} devices[] = {
#define LIKE_DEVICE(option, name) {option, name},
#include "like/like.def"
};

static const uint64_t figures[LIKE_FIGURES][RTE_DIM(devices)] = {
#define LIKE_FIGURE(name, member, ...) [LIKE_##name] = {__VA_ARGS__},
#include "like/like.def"
};

static const struct {
	const char *what;
	uint8_t errors[RTE_DIM(devices)];
} lacks[LIKE_LACKS] = {
#define LIKE_LACK(name, what, ...) [LIKE_LACKS_##name] = {what, {__VA_ARGS__}},
#include "like/like.def"
};

static int chosen = LIKE_NONE;

int like_find(const char *option)
{
	for (size_t i = 0; i < RTE_DIM(devices); i++) {
		if (strcmp(devices[i].option, option) == 0)
			return (int)i;
	}
	return LIKE_NONE;
}

int like_choose(const char *option)
{
	chosen = like_find(option);
	return chosen == LIKE_NONE && option[0] != '\0' ? -EINVAL : 0;
}

const char *like_names(void)
{
	static const char names[] =
#define LIKE_DEVICE(option, name) ", " option
#include "like/like.def"
		;

	return &names[strlen(", ")];
}

int like_column(void)
{
	return chosen;
}

uint64_t like_most(enum like_figure figure, uint64_t ours)
{
	return chosen == LIKE_NONE ? ours : RTE_MIN(ours, figures[figure][chosen]);
}

int like_refuses(enum like_lack what)
{
	const int error = chosen == LIKE_NONE ? 0 : lacks[what].errors[chosen];

	return error == 0 ? 0
			  : CALL_REASON(-error, "%s does not have this: %s", devices[chosen].name,
					lacks[what].what);
}

int like_lacks_call(void)
{
	if (chosen == LIKE_NONE)
		return -EOPNOTSUPP;
	return CALL_REASON(-EOPNOTSUPP, "the driver of %s does not have this call",
			   devices[chosen].name);
}

uint32_t like_lacking_opcodes(void)
{
	static const struct {
		enum like_lack lack;
		uint32_t opcodes;
	} of[] = {
		{LIKE_LACKS_atomics,
		 1u << IBV_WR_ATOMIC_CMP_AND_SWP | 1u << IBV_WR_ATOMIC_FETCH_AND_ADD},
		{LIKE_LACKS_bind, 1u << IBV_WR_BIND_MW},
		{LIKE_LACKS_local_inv, 1u << IBV_WR_LOCAL_INV},
		{LIKE_LACKS_atomic_write, 1u << IBV_WR_ATOMIC_WRITE},
		{LIKE_LACKS_flush, 1u << LATER_WR_FLUSH},
	};
	uint32_t opcodes = 0;

	for (size_t i = 0; chosen != LIKE_NONE && i < RTE_DIM(of); i++)
		opcodes |= lacks[of[i].lack].errors[chosen] != 0 ? of[i].opcodes : 0;
	return opcodes;
}

/* Lower one member of an answer, and clear bits of another. NOWHERE: it is not in the answer. */
#define LOWER(attr, member, most) \
	((attr)->member = (typeof((attr)->member))RTE_MIN((uint64_t)(attr)->member, most))
#define NOWHERE hca_core_clock /* no device of the table has a figure for it */

void like_limit(struct ibv_device_attr_ex *attr)
{
	static const uint64_t bits[][RTE_DIM(devices)] = {
#define LIKE_FLAGS(name, member, ...) {__VA_ARGS__},
#include "like/like.def"
	};
	const uint64_t core_clock = attr->hca_core_clock;
	unsigned int i = 0;

	if (chosen == LIKE_NONE)
		return;
#define LIKE_FIGURE(name, member, ...) LOWER(attr, member, figures[LIKE_##name][chosen]);
#include "like/like.def"
#define LIKE_FLAGS(name, member, ...) attr->member &= (typeof(attr->member))bits[i++][chosen];
#include "like/like.def"
	attr->orig_attr.device_cap_flags &= (unsigned int)attr->device_cap_flags_ex;
	attr->hca_core_clock = attr->completion_timestamp_mask == 0 ? 0 : core_clock;
	if (attr->packet_pacing_caps.qp_rate_limit_max == 0)
		memset(&attr->packet_pacing_caps, 0, sizeof(attr->packet_pacing_caps));
}
