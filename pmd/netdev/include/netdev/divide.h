/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Filters that divide an interface's RoCE packets among packet sockets. Two divisions use them:
 *
 *   blocks  Each program of an uroced receives the packets to one block of queue pair numbers, and
 *           the owner's socket receives all others.
 *   shares  Each further engine of a device receives the packets to the queue pairs whose number
 *           has one remainder, and the first engine's socket receives all others.
 *
 * A packet passes the filter of exactly one socket. Packets to the management queue pairs (0 and 1)
 * and to groups always pass the filter of the socket that receives all others.
 */
#ifndef NETDEV_DIVIDE_H
#define NETDEV_DIVIDE_H

#include <stdint.h>

#define DIVIDE_BLOCKS_MAX 64 /* jumps of a classic filter reach 255 instructions */
#define DIVIDE_SHARES_MAX 32

/* Blocks of queue pair numbers: the numbers of a block differ in their lowest `shift` bits only. */
struct divide_blocks {
	unsigned int shift;
	uint32_t count;
	uint32_t first[DIVIDE_BLOCKS_MAX]; /* lowest number of each */
};

/* A block of queue pair numbers, or the share of one engine of its program. */
struct divide_part {
	uint32_t first; /* lowest number of the block */
	unsigned int shift;
	uint32_t share; /* the numbers with this remainder when divided by `count` */
	uint32_t count; /* up to 1: the whole block */
};

/**
 * Restrict a socket as mute_packet_socket does, and leave out RoCE packets to the blocks. A new
 * filter replaces the former one in one step. MT-safe. 0 or -errno.
 */
int divide_all_but(int fd, const struct divide_blocks *blocks);

/**
 * Restrict a socket to the RoCE packets to one part of the numbers, and lock the filter: no process
 * that has the socket can change it. Packets over IPv4 with options are not among them. MT-safe. 0
 * or -errno.
 */
int divide_only(int fd, const struct divide_part *part);

/**
 * Restrict a socket as mute_packet_socket does, and leave out RoCE packets to the queue pairs of
 * some shares: bit n of `shares` stands for the numbers that have the remainder n when divided by
 * `count`, which is at most DIVIDE_SHARES_MAX. A new filter replaces the former one in one step.
 * MT-safe. 0 or -errno.
 */
int divide_all_but_shares(int fd, uint32_t shares, uint32_t count);

/** Restrict a socket to the RoCE packets to the queue pairs of one share. Packets over IPv4 with
 * options are not among them. MT-safe. 0 or -errno. */
int divide_only_share(int fd, uint32_t share, uint32_t count);

#endif
