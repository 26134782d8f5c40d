/* SPDX-License-Identifier: BSD-3-Clause */
/* Who has a UDP port that we cannot have, for messages. */
#ifndef NETDEV_HOLDER_H
#define NETDEV_HOLDER_H

#include <stddef.h>
#include <stdint.h>

#define HOLDER_TEXT_MAX 128

/** Describe who holds a UDP port in this thread's network namespace, as far as this user can see.
 * MT-safe. */
void holder_of_udp_port(uint16_t port, char *text, size_t size);

#endif
