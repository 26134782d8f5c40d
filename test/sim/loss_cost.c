/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of losses: packets sent for each that is needed, and goodput, with go-back-N peers, with
 * peers that keep out of order packets but do not tell which ones, and with uroce by default. It
 * prints a table, and fails if a selective retransmission costs more than the lost packets, or if
 * uroce loses much of the lossless rate.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transfer.h"

#define MESSAGES      2000u
#define MESSAGE_BYTES (64u << 10)
#define MTU_BYTES     1024u
#define IN_FLIGHT     8u
#define LATENCY_NS    5000
#define MBPS	      100000
/* With peers that keep packets, these are sent: the lost packets, some of them twice, packets that
 * are requested again in vain, and the flights by which the requester finds that the peer keeps
 * packets. */
#define EXCESS_MAX 1.5
/* If neither the request nor a response is known to have arrived, all of the READ is requested
 * again. A request for less would be a different request for a peer that has not seen the first. */
#define EXCESS_READ_MAX	 2.5
#define EXCESS_START	 0.01
#define WINDOWS_LOSS_PPM 10000
/* With so many packets lost, uroce has this part of the lossless rate. */
#define UROCE_LOSS_PPM 10000
#define UROCE_PART     0.85
#define UROCE_TRIES    8

struct outcome {
	double ratio; /* packets of data sent for each that is needed */
	double gbps;  /* of payload */
};

static struct outcome measure(enum ibv_wr_opcode opcode, uint32_t loss_ppm, uint32_t reorder_ppm,
			      bool keeps, enum sack_use sack, uint16_t window_max, uint64_t seed)
{
	const struct pair_attr attr = {.seed = seed,
				       .keeps = keeps,
				       .sack = sack,
				       .window_max = window_max,
				       .mtu = IBV_MTU_1024,
				       .link = {.latency_ns = LATENCY_NS,
						.mbps = MBPS,
						.loss_ppm = loss_ppm,
						.reorder_ppm = reorder_ppm,
						.reorder_ns = 2 * LATENCY_NS}};
	const struct transfer transfer = {.opcode = opcode,
					  .bytes = MESSAGE_BYTES,
					  .messages = MESSAGES,
					  .flight = IN_FLIGHT};
	const uint64_t needed = (uint64_t)MESSAGES * (MESSAGE_BYTES / MTU_BYTES);
	const struct transferred transferred = transfer_measure(attr, &transfer);

	return (struct outcome){.ratio = (double)transferred.packets / (double)needed,
				.gbps = transferred.gbps};
}

/* The mean of some tries: how soon the first losses come matters. */
static struct outcome measure_uroce(enum ibv_wr_opcode opcode, uint32_t loss_ppm,
				    uint32_t reorder_ppm)
{
	const unsigned int tries = loss_ppm + reorder_ppm > 0 ? UROCE_TRIES : 1;
	struct outcome sum = {0};

	for (unsigned int seed = 1; seed <= tries; seed++) {
		const struct outcome one =
			measure(opcode, loss_ppm, reorder_ppm, true, SACK_INTRODUCED, 0, seed);

		sum.ratio += one.ratio / tries;
		sum.gbps += one.gbps / tries;
	}
	return sum;
}

static double ratio_max(enum ibv_wr_opcode opcode, uint32_t ppm)
{
	return 1 + EXCESS_START +
	       ppm / 1e6 * (opcode == IBV_WR_RDMA_READ ? EXCESS_READ_MAX : EXCESS_MAX);
}

static bool line(const char *name, enum ibv_wr_opcode opcode, uint32_t loss_ppm,
		 uint32_t reorder_ppm)
{
	static double lossless_gbps;
	const struct outcome drops =
		measure(opcode, loss_ppm, reorder_ppm, false, SACK_NEVER, 0, 1);
	const struct outcome keeps = measure(opcode, loss_ppm, reorder_ppm, true, SACK_NEVER, 0, 1);
	const struct outcome uroce = measure_uroce(opcode, loss_ppm, reorder_ppm);
	bool good;

	if (loss_ppm + reorder_ppm == 0)
		lossless_gbps = uroce.gbps;
	good = keeps.ratio <= ratio_max(opcode, loss_ppm + reorder_ppm) &&
	       keeps.gbps >= drops.gbps * 0.99 &&
	       (loss_ppm > UROCE_LOSS_PPM || uroce.gbps >= lossless_gbps * UROCE_PART);
	printf("%-6s %6.1f%% %9.1f%%   %8.3f %8.3f %8.3f   %7.1f %7.1f %7.1f%s\n", name,
	       loss_ppm / 1e4, reorder_ppm / 1e4, drops.ratio, keeps.ratio, uroce.ratio, drops.gbps,
	       keeps.gbps, uroce.gbps, good ? "" : "   too much");
	return good;
}

/* Check that queue pairs with windows of all sizes deliver their data, and that without losses no
 * packet is sent twice. */
static bool windows(enum ibv_wr_opcode opcode)
{
	static const uint16_t lengths[] = {1, 2, 3, 4, 5, 7, 8, 9, 63, 64, 65, 1000, 4096};
	bool good = true;

	printf("\n       window        sent / needed, none lost, %.1f%% lost: drops, keeps\n",
	       WINDOWS_LOSS_PPM / 1e4);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		const struct outcome sound = measure(opcode, 0, 0, true, SACK_NEVER, lengths[i], 1);
		const struct outcome drops =
			measure(opcode, WINDOWS_LOSS_PPM, 0, false, SACK_NEVER, lengths[i], 1);
		const struct outcome keeps =
			measure(opcode, WINDOWS_LOSS_PPM, 0, true, SACK_NEVER, lengths[i], 1);

		printf("%-6s %6u %25.3f   %8.3f %8.3f   %7.1f Gbit/s\n",
		       opcode == IBV_WR_RDMA_READ ? "READ" : "WRITE", lengths[i], sound.ratio,
		       drops.ratio, keeps.ratio, sound.gbps);
		good &= sound.ratio <= 1 && keeps.ratio <= ratio_max(opcode, WINDOWS_LOSS_PPM);
	}
	return good;
}

int main(void)
{
	static const uint32_t losses_ppm[] = {0, 1000, 5000, 10000, 20000, 50000};
	bool good = true;

	printf("%u messages of %u KiB, path MTU %u, %u Gbit/s, round trip of %u us\n"
	       "                               sent / needed           Gbit/s of data\n"
	       "         lost  reordered     drops    keeps    uroce     drops   keeps   uroce\n",
	       MESSAGES, MESSAGE_BYTES >> 10, MTU_BYTES, MBPS / 1000, 2 * LATENCY_NS / 1000);
	for (size_t i = 0; i < sizeof(losses_ppm) / sizeof(losses_ppm[0]); i++)
		good &= line("WRITE", IBV_WR_RDMA_WRITE, losses_ppm[i], 0);
	good &= line("WRITE", IBV_WR_RDMA_WRITE, 0, 10000);
	for (size_t i = 0; i < sizeof(losses_ppm) / sizeof(losses_ppm[0]); i++)
		good &= line("READ", IBV_WR_RDMA_READ, losses_ppm[i], 0);
	good &= line("READ", IBV_WR_RDMA_READ, 0, 10000);
	good &= windows(IBV_WR_RDMA_WRITE);
	good &= windows(IBV_WR_RDMA_READ);
	return good ? 0 : 1;
}
