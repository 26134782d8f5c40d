// SPDX-License-Identifier: BSD-3-Clause
// Two ranks of gloo, over its transport of verbs, sum an array many times, and check each sum.
//
// usage: gloo_check RANK DIRECTORY GID_INDEX
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

#include <gloo/allreduce_ring.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/ibverbs/device.h>

static const int RANKS = 2, ROUNDS = 50, LENGTH = 10000;

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	const int rank = atoi(argv[1]);
	gloo::transport::ibverbs::attr attr;
	attr.name = "uroce0";
	attr.port = 1;
	attr.index = atoi(argv[3]);
	auto device = gloo::transport::ibverbs::CreateDevice(attr);
	auto context = std::make_shared<gloo::rendezvous::Context>(rank, RANKS);
	gloo::rendezvous::FileStore store(argv[2]);
	context->connectFullMesh(store, device);
	std::vector<int> values(LENGTH);
	gloo::AllreduceRing<int> ring(context, {values.data()}, LENGTH);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < LENGTH; i++)
			values[i] = (rank + 1) * i + round;
		ring.run();
		for (int i = 0; i < LENGTH; i++) {
			if (values[i] != 3 * i + 2 * round) {
				printf("round %d: element %d is wrong\n", round, i);
				return 1;
			}
		}
	}
	// A ring that is destroyed while its last message is under way throws; gloo cannot wait for it.
	const std::string mine = std::string(argv[2]) + "/done" + argv[1];
	const std::string other = std::string(argv[2]) + "/done" + std::to_string(1 - rank);
	fclose(fopen(mine.c_str(), "w"));
	while (access(other.c_str(), F_OK) != 0)
		usleep(10000);
	usleep(200000);
	printf("rank %d: %d sums are right\n", rank, ROUNDS);
	return 0;
}
