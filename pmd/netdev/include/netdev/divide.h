/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Filters that divide an interface's RoCE packets among packet sockets: each socket of a program
 * receives the packets to one block of queue pair numbers, and the owner's socket receives all
 * others. A packet that passes the filter of a program's socket does not pass the owner's, and the
 * reverse.
 */
#ifndef NETDEV_DIVIDE_H
#define NETDEV_DIVIDE_H

#include <stdint.h>

#define DIVIDE_BLOCKS_MAX 64 /* jumps of a classic filter reach 255 instructions */

/* Blocks of queue pair numbers: the numbers of a block differ in their lowest `shift` bits only. */
struct divide_blocks {
	unsigned int shift;
	uint32_t count;
	uint32_t first[DIVIDE_BLOCKS_MAX]; /* lowest number of each */
};

/**
 * Restrict a socket as mute_packet_socket does, and leave out RoCE packets to the blocks. A new
 * filter replaces the former one in one step. MT-safe. 0 or -errno.
 */
int divide_all_but(int fd, const struct divide_blocks *blocks);

/**
 * Restrict a socket to the RoCE packets to one block, and lock the filter: no process that has the
 * socket can change it. Packets over IPv4 with options are not among them. MT-safe. 0 or -errno.
 */
int divide_only(int fd, uint32_t first, unsigned int shift);

#endif
