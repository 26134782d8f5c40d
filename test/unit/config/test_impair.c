/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/config/impair.c. */
#include <errno.h>
#include <string.h>

#include "config/impair.h"
#include "config/settings.h"
#include "test.h"

#define BILLION UINT64_C(1000000000)

static struct impair_config config;
static char error[512];

static int read_text(const char *text)
{
	memset(&config, 0xff, sizeof(config));
	error[0] = '\0';
	return impair_config_read(text, &config, error, sizeof(error));
}

TEST(impair_config_read__reads_every_argument)
{
	assert_int_equal(read_text("loss=0.25,corrupt=0.5,dup=1,reorder=0.125,depth=200,hold=2ms,"
				   "ce=0.0,delay=1.5us,rate=2.5G,limit=64,dir=tx,seed=77"),
			 0);
	assert_int_equal(config.loss, IMPAIR_ALL / 4);
	assert_int_equal(config.burst_end, 0);
	assert_int_equal(config.corrupt, IMPAIR_ALL / 2);
	assert_int_equal(config.dup, IMPAIR_ALL);
	assert_int_equal(config.reorder, IMPAIR_ALL / 8);
	assert_int_equal(config.depth, 200);
	assert_int_equal(config.hold_ns, 2000000);
	assert_int_equal(config.ce, 0);
	assert_int_equal(config.delay_ns, 1500);
	assert_int_equal(config.rate_bps, UINT64_C(2500000000));
	assert_int_equal(config.limit, 64);
	assert_int_equal(config.seed, 77);
	assert_false(config.rx);
	assert_true(config.tx);
}

TEST(impair_config_read__has_defaults)
{
	assert_int_equal(read_text("loss=0.01"), 0);
	assert_int_equal(config.loss, IMPAIR_ALL / 100);
	assert_int_equal(config.limit, 1000);
	assert_int_equal(config.seed, 1);
	assert_true(config.rx);
	assert_true(config.tx);
	assert_false(impair_config_holds(&config));
	assert_int_equal(read_text("reorder=0.01"), 0);
	assert_int_equal(config.depth, 3);
	assert_int_equal(config.hold_ns, 100000);
	assert_true(impair_config_holds(&config));
}

TEST(impair_config_buffers__is_for_both_directions)
{
	assert_int_equal(impair_config_buffers("delay=1ms,limit=70"), 140);
	assert_int_equal(impair_config_buffers("reorder=0.1"), 2000);
	assert_int_equal(impair_config_buffers("loss=0.1"), 0);
	assert_int_equal(impair_config_buffers(""), 0);
	assert_int_equal(impair_config_buffers("loss=2,delay=1ms"), 0);
}

/* Bursts of 4 packets that lose a fifth of all: begin / (begin + end) is a fifth. */
TEST(impair_config_read__computes_the_chances_of_bursts)
{
	assert_int_equal(read_text("loss=0.2,burst=4"), 0);
	assert_int_equal(config.burst_end, IMPAIR_ALL / 4);
	assert_in_range(config.burst_begin, IMPAIR_ALL / 16 - 2, IMPAIR_ALL / 16 + 2);
	/* Rare bursts are very rare. */
	assert_int_equal(read_text("loss=0.000001,burst=10000"), 0);
	assert_int_not_equal(config.burst_begin, 0);
	assert_in_range(config.burst_begin, IMPAIR_ALL / BILLION / 10,
			IMPAIR_ALL / BILLION / 10 + IMPAIR_ALL / BILLION / 1000);
	assert_int_equal(read_text("loss=0.5,burst=1"), 0);
	assert_int_equal(read_text("loss=0.51,burst=1"), -EINVAL);
	assert_string_equal(error, "impair: bursts this short cannot lose so many packets: loss is "
				   "at most burst / (burst + 1)");
	assert_int_equal(read_text("loss=1,burst=10"), -EINVAL);
}

TEST(impair_config_read__refuses_what_it_does_not_know)
{
	static const struct {
		const char *text, *error;
	} wrong[] = {
		{"loss=2", "impair: 'loss=2': loss is a fraction from 0 to 1, as 0.01"},
		{"loss=1%", "impair: 'loss=1%': loss is a fraction from 0 to 1, as 0.01"},
		{"loss=-1", "impair: 'loss=-1': loss is a fraction from 0 to 1, as 0.01"},
		{"loss=.1", "impair: 'loss=.1': loss is a fraction from 0 to 1, as 0.01"},
		{"loss=1.", "impair: 'loss=1.': loss is a fraction from 0 to 1, as 0.01"},
		{"loss=", "impair: 'loss=': loss is a fraction from 0 to 1, as 0.01"},
		{"loss", "impair: 'loss': loss is a fraction from 0 to 1, as 0.01"},
		{"delay=5", "impair: 'delay=5': delay is a time up to 1s, as 50us"},
		{"delay=2s", "impair: 'delay=2s': delay is a time up to 1s, as 50us"},
		{"rate=10",
		 "impair: 'rate=10': rate is a number of bits a second from 1K to 1000G, "
		 "as 10G"},
		{"rate=0", "impair: 'rate=0': rate is a number of bits a second from 1K to 1000G, "
			   "as 10G"},
		{"seed=99999999999999999999",
		 "impair: 'seed=99999999999999999999': seed is a number"},
		{"dir=up", "impair: 'dir=up': dir is one of rx, tx and both"},
		{"loss=0.1,loss=0.2", "impair: loss is there twice"},
		{"burst=3", "impair: burst is of lost packets: set loss as well"},
		{"depth=3", "impair: depth is of reordered packets: set reorder as well"},
		{"hold=1ms", "impair: hold is of reordered packets: set reorder as well"},
		{"loss=0.1,limit=5",
		 "impair: limit is of packets that wait: set delay or rate as well"},
		{"los=0.1", "impair: 'los=0.1' is not KEY=VALUE with one of the keys loss, burst, "
			    "corrupt, dup, reorder, depth, hold, ce, delay, rate, limit, dir and "
			    "seed"},
		{"", "impair: '' is not KEY=VALUE with one of the keys loss, burst, corrupt, dup, "
		     "reorder, depth, hold, ce, delay, rate, limit, dir and seed"},
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(read_text(wrong[i].text), -EINVAL);
		assert_string_equal(error, wrong[i].error);
	}
}

TEST(impair_config_split__finds_the_port_behind)
{
	char args[32];
	const char *next;

	assert_int_equal(impair_config_split("impair,loss=0.1,seed=2,next=net_memif0,role=server,"
					     "next=x",
					     args, sizeof(args), &next, error, sizeof(error)),
			 0);
	assert_string_equal(args, "loss=0.1,seed=2");
	assert_string_equal(next, "net_memif0,role=server,next=x");
	assert_int_equal(
		impair_config_split("veth0", args, sizeof(args), &next, error, sizeof(error)), 0);
	assert_string_equal(args, "");
	assert_string_equal(next, "veth0");
}

TEST(impair_config_split__refuses_what_is_incomplete)
{
	static const char *const wrong[] = {"impair,loss=0.1", "impair,next=veth0",
					    "impair,loss=0.1,next=", "impair,",
					    "impair,seed=11111111111111111111111111111111,next=x"};
	char args[32];
	const char *next;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(impair_config_split(wrong[i], args, sizeof(args), &next, error,
						     sizeof(error)),
				 -EINVAL);
}

TEST(settings_set__takes_an_impaired_port)
{
	struct settings settings;
	char value[256];

	settings_init(&settings);
	assert_int_equal(settings_set(&settings, "netdev", "impair,loss=0.1,next=veth0", error,
				      sizeof(error)),
			 0);
	assert_string_equal(settings.netdev, "veth0");
	assert_string_equal(settings.impair, "loss=0.1");
	assert_int_equal(settings_get(&settings, "impair", value, sizeof(value)), 0);
	assert_string_equal(value, "loss=0.1");
	assert_int_equal(settings_set(&settings, "port", "impair,loss=7,next=net_null0", error,
				      sizeof(error)),
			 -EINVAL);
	assert_string_equal(error, "impair: 'loss=7': loss is a fraction from 0 to 1, as 0.01");
}
