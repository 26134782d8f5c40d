/* SPDX-License-Identifier: BSD-3-Clause */
/* The names of inputs and events of the connection manager, for messages. */
#ifndef CM_NAMES_H
#define CM_NAMES_H

#include "cm/state.h"

static inline const char *cm_input_name(enum cm_input input)
{
	static const char *const names[] = {
#define INPUT(name) #name,
		CM_INPUTS(INPUT)
#undef INPUT
	};

	return names[input];
}

static inline const char *cm_event_name(enum cm_event_type event)
{
	static const char *const names[] = {
#define EVENT(name) #name,
		CM_EVENTS(EVENT)
#undef EVENT
	};

	return names[event];
}

#endif
