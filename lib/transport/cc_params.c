/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of DCQCN's parameters. */
#include "transport/cc_params.h"

#include <errno.h>
#include <string.h>

static const struct cc_param table[CC_PARAM_COUNT] = {
#define X(name, least, most, normal) {#name, least, most},
	CC_PARAMS(X)
#undef X
};

const struct cc_params cc_params_normal = {
#define X(name, least, most, normal) .name = (normal),
	CC_PARAMS(X)
#undef X
};

const struct cc_param *cc_param(uint32_t index)
{
	return &table[index];
}

uint32_t cc_param_find(const char *name)
{
	uint32_t index = 0;

	while (index < CC_PARAM_COUNT && strcmp(table[index].name, name) != 0)
		index++;
	return index;
}

uint32_t cc_param_get(const struct cc_params *params, uint32_t index)
{
	return ((const uint32_t *)params)[index];
}

int cc_param_set(struct cc_params *params, uint32_t index, uint32_t value)
{
	if (index >= CC_PARAM_COUNT)
		return -ENOENT;
	if (value < table[index].least || value > table[index].most)
		return -ERANGE;
	((uint32_t *)params)[index] = value;
	return 0;
}
