/* SPDX-License-Identifier: BSD-3-Clause */
/* The interface that a user means who names none. */
#ifndef INTERFACE_H
#define INTERFACE_H

#include <net/if.h>
#include <stdbool.h>

/** Find the interface by which this host reaches others, by the kernel's routes. No packet is sent.
 * MT-safe. Returns false if no route leads to other networks. */
bool interface_to_others(char name[IF_NAMESIZE]);

#endif
