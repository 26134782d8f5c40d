/* SPDX-License-Identifier: BSD-3-Clause */
/* Run one experiment with the real transport in a simulated network, and print what came of it as
 * JSON. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <json-c/json.h>

#include "../sim/entropy.h"
#include "net_host.h"
#include "net_topology.h"
#include "traffic.h"

#define UNTIL_MS 10000 /* an experiment is cut at this virtual time */
#define TIME_NS	 1000  /* of the options that are in microseconds */

struct experiment {
	struct topology_attr topology;
	struct traffic_attr traffic;
	struct host_delay delay;
	uint64_t until_ns;
};

struct world {
	struct fabric fabric;
	struct topology topology;
	struct traffic traffic;
	struct host *host;  /* owned */
	struct port **port; /* owned; those of the hosts */
	uint32_t hosts;
};

static const char usage[] =
	"usage: net [OPTIONS]\n"
	"  --shape star|fat-tree|leaf-spine\n"
	"  --hosts N            of a star (2)\n"
	"  --arity N            ports of a fat tree's switches (6)\n"
	"  --leaves N --spines N --leaf-hosts N\n"
	"  --gbps N             of each link (40)\n"
	"  --latency-ns N       of each link (2000)\n"
	"  --buffer N           bytes of a switch's buffer, each port (240000)\n"
	"  --alpha PERCENT      share the buffer, with this dynamic threshold\n"
	"  --pfc HEADROOM       pause the peer when fewer bytes are left\n"
	"  --ecn KMIN,KMAX,PMAX mark between KMIN and KMAX bytes, at most PMAX percent\n"
	"  --lose-every N       lose every N-th packet on its first switch\n"
	"  --loss-ppm N         lose packets there at random\n"
	"  --late-us WAKE,EACH  an idle host wakes up after WAKE on average; a packet takes EACH\n"
	"  --traffic poisson|incast|permutation|stream\n"
	"  --load PERCENT       of the hosts' links (70)\n"
	"  --flows N            of poisson (1000)\n"
	"  --senders N --rounds N --bytes N\n"
	"  --stagger-us N       an incast's second sender begins N after the first, the others N "
	"later\n"
	"  --greet              an incast's senders send one byte each before\n"
	"  --sample-us N        look at flows and queues so often\n"
	"  --until-us N         end at that time\n"
	"  --cc none|dcqcn|swift  congestion control (none)\n"
	"  --peer KIND          what receivers do with packets out of order: keeps (default),\n"
	"                       drops, or uroce, which also tells of them\n"
	"  --window N           most packets in flight of a queue pair\n"
	"  --timeout N          of queue pairs: 4.096 us * 2^N (6)\n"
	"  --mtu N              path MTU (1024)\n"
	"  --seed N\n";

enum {
	CODE_SHAPE = 256,
	CODE_HOSTS,
	CODE_ARITY,
	CODE_LEAVES,
	CODE_SPINES,
	CODE_LEAF_HOSTS,
	CODE_GBPS,
	CODE_LATENCY,
	CODE_BUFFER,
	CODE_ALPHA,
	CODE_PFC,
	CODE_ECN,
	CODE_LOSE_EVERY,
	CODE_LOSS,
	CODE_LATE,
	CODE_TRAFFIC,
	CODE_LOAD,
	CODE_FLOWS,
	CODE_SENDERS,
	CODE_ROUNDS,
	CODE_BYTES,
	CODE_STAGGER,
	CODE_GREET,
	CODE_SAMPLE,
	CODE_UNTIL,
	CODE_CC,
	CODE_PEER,
	CODE_WINDOW,
	CODE_TIMEOUT,
	CODE_MTU,
	CODE_SEED,
	CODE_HELP,
};

static const struct option options[] = {
	{"shape", required_argument, NULL, CODE_SHAPE},
	{"hosts", required_argument, NULL, CODE_HOSTS},
	{"arity", required_argument, NULL, CODE_ARITY},
	{"leaves", required_argument, NULL, CODE_LEAVES},
	{"spines", required_argument, NULL, CODE_SPINES},
	{"leaf-hosts", required_argument, NULL, CODE_LEAF_HOSTS},
	{"gbps", required_argument, NULL, CODE_GBPS},
	{"latency-ns", required_argument, NULL, CODE_LATENCY},
	{"buffer", required_argument, NULL, CODE_BUFFER},
	{"alpha", required_argument, NULL, CODE_ALPHA},
	{"pfc", required_argument, NULL, CODE_PFC},
	{"ecn", required_argument, NULL, CODE_ECN},
	{"lose-every", required_argument, NULL, CODE_LOSE_EVERY},
	{"loss-ppm", required_argument, NULL, CODE_LOSS},
	{"late-us", required_argument, NULL, CODE_LATE},
	{"traffic", required_argument, NULL, CODE_TRAFFIC},
	{"load", required_argument, NULL, CODE_LOAD},
	{"flows", required_argument, NULL, CODE_FLOWS},
	{"senders", required_argument, NULL, CODE_SENDERS},
	{"rounds", required_argument, NULL, CODE_ROUNDS},
	{"bytes", required_argument, NULL, CODE_BYTES},
	{"stagger-us", required_argument, NULL, CODE_STAGGER},
	{"greet", no_argument, NULL, CODE_GREET},
	{"sample-us", required_argument, NULL, CODE_SAMPLE},
	{"until-us", required_argument, NULL, CODE_UNTIL},
	{"cc", required_argument, NULL, CODE_CC},
	{"peer", required_argument, NULL, CODE_PEER},
	{"window", required_argument, NULL, CODE_WINDOW},
	{"timeout", required_argument, NULL, CODE_TIMEOUT},
	{"mtu", required_argument, NULL, CODE_MTU},
	{"seed", required_argument, NULL, CODE_SEED},
	{"help", no_argument, NULL, CODE_HELP},
	{NULL, 0, NULL, 0},
};

static _Noreturn void bad(const char *what, const char *value)
{
	fprintf(stderr, "net: %s: '%s' is not valid; see --help\n", what, value);
	exit(2);
}

static uint64_t number(const char *name, const char *text, uint64_t min, uint64_t max)
{
	char *end;
	const unsigned long long value = strtoull(text, &end, 10);

	if (end == text || *end != '\0' || value < min || value > max)
		bad(name, text);
	return value;
}

/* Return the index of a word in a list that ends with NULL. */
static int word(const char *name, const char *text, const char *const *list)
{
	for (int i = 0; list[i] != NULL; i++) {
		if (strcmp(list[i], text) == 0)
			return i;
	}
	bad(name, text);
}

static void take_ecn(struct switch_attr *attr, const char *text)
{
	char end;

	if (sscanf(text, "%u,%u,%u%c", &attr->kmin_bytes, &attr->kmax_bytes, &attr->pmax_percent,
		   &end) != 3 ||
	    attr->kmin_bytes >= attr->kmax_bytes || attr->pmax_percent > 100)
		bad("ecn", text);
}

static void take_delay(struct host_delay *delay, const char *text)
{
	unsigned int wake_us, packet_us;
	char end;

	if (sscanf(text, "%u,%u%c", &wake_us, &packet_us, &end) != 2)
		bad("late-us", text);
	delay->wake_ns = (uint64_t)TIME_NS * wake_us;
	delay->packet_ns = (uint64_t)TIME_NS * packet_us;
}

static void take_topology(struct topology_attr *attr, int code, const char *name, const char *text)
{
	static const char *const shapes[] = {"star", "fat-tree", "leaf-spine", NULL};
	struct switch_attr *switches = &attr->switches;

	switch (code) {
	case CODE_SHAPE:
		attr->shape = (enum topology_shape)word(name, text, shapes);
		break;
	case CODE_HOSTS:
		attr->hosts = (uint32_t)number(name, text, 2, 1024);
		break;
	case CODE_ARITY:
		attr->arity = 2 * (uint32_t)number(name, text, 4, 16) / 2;
		break;
	case CODE_LEAVES:
		attr->leaves = (uint32_t)number(name, text, 1, 64);
		break;
	case CODE_SPINES:
		attr->spines = (uint32_t)number(name, text, 1, 64);
		break;
	case CODE_LEAF_HOSTS:
		attr->leaf_hosts = (uint32_t)number(name, text, 1, 64);
		break;
	case CODE_GBPS:
		attr->mbps = 1000 * number(name, text, 1, 800);
		break;
	case CODE_LATENCY:
		attr->latency_ns = number(name, text, 0, 100000000);
		break;
	case CODE_BUFFER:
		switches->port_buffer_bytes = (uint32_t)number(name, text, 10000, 1u << 30);
		break;
	case CODE_ALPHA:
		switches->alpha_percent = (uint32_t)number(name, text, 1, 6400);
		break;
	case CODE_PFC:
		switches->pfc = true;
		switches->headroom_bytes = (uint32_t)number(name, text, 1, 1u << 30);
		break;
	case CODE_ECN:
		take_ecn(switches, text);
		break;
	case CODE_LOSE_EVERY:
		switches->lose_every = (uint32_t)number(name, text, 2, 1u << 30);
		break;
	default:
		switches->loss_ppm = (uint32_t)number(name, text, 0, 999999);
		break;
	}
}

static void take_traffic(struct traffic_attr *attr, int code, const char *name, const char *text)
{
	static const char *const kinds[] = {"poisson", "incast", "permutation", "stream", NULL};
	static const char *const peers[] = {"drops", "keeps", "uroce", NULL};
	static const char *const mtus[] = {"256", "512", "1024", "2048", "4096", NULL};

	switch (code) {
	case CODE_TRAFFIC:
		attr->kind = (enum traffic_kind)word(name, text, kinds);
		break;
	case CODE_LOAD:
		attr->load_percent = (uint32_t)number(name, text, 1, 100);
		break;
	case CODE_FLOWS:
		attr->flows = (uint32_t)number(name, text, 1, 100000000);
		break;
	case CODE_SENDERS:
		attr->senders = (uint32_t)number(name, text, 1, 100000);
		break;
	case CODE_ROUNDS:
		attr->rounds = (uint32_t)number(name, text, 1, 1000000);
		break;
	case CODE_BYTES:
		attr->bytes = number(name, text, 1, 1u << 31);
		break;
	case CODE_STAGGER:
		attr->stagger_ns = TIME_NS * number(name, text, 1, 10000000);
		break;
	case CODE_GREET:
		attr->greets = true;
		break;
	case CODE_SAMPLE:
		attr->sample_ns = TIME_NS * number(name, text, 1, 10000000);
		break;
	case CODE_CC:
		attr->conn.cc = cc_find(text);
		if (attr->conn.cc == CC_KINDS)
			bad(name, text);
		break;
	case CODE_PEER:
		attr->conn.peer = (enum conn_peer)word(name, text, peers);
		break;
	case CODE_WINDOW:
		attr->conn.window_max = (uint16_t)number(name, text, 1, 4096);
		break;
	case CODE_TIMEOUT:
		attr->conn.timeout = (uint8_t)number(name, text, 1, 31);
		break;
	case CODE_MTU:
		attr->conn.mtu = (enum ibv_mtu)(IBV_MTU_256 + word(name, text, mtus));
		break;
	default:
		attr->seed = number(name, text, 0, UINT64_MAX);
		break;
	}
}

static void take_options(struct experiment *experiment, int argc, char **argv)
{
	int code, index = 0;

	*experiment = (struct experiment){
		.topology = {.hosts = 2,
			     .arity = 6,
			     .leaves = 8,
			     .spines = 8,
			     .leaf_hosts = 16,
			     .mbps = 40000,
			     .latency_ns = 2000,
			     .switches = {.port_buffer_bytes = 240000}},
		.traffic = {.load_percent = 70,
			    .flows = 1000,
			    .senders = 1,
			    .rounds = 1,
			    .bytes = 1000000,
			    .conn = {.mtu = IBV_MTU_1024, .timeout = 6, .peer = CONN_PEER_KEEPS},
			    .seed = 1},
		.until_ns = UINT64_C(1000000) * UNTIL_MS,
	};
	while ((code = getopt_long(argc, argv, "", options, &index)) != -1) {
		if (code == CODE_HELP) {
			fputs(usage, stdout);
			exit(0);
		}
		if (code == '?')
			exit(2);
		if (code == CODE_LATE)
			take_delay(&experiment->delay, optarg);
		else if (code == CODE_UNTIL)
			experiment->until_ns =
				TIME_NS * number(options[index].name, optarg, 1, 10000000);
		else if (code < CODE_TRAFFIC)
			take_topology(&experiment->topology, code, options[index].name, optarg);
		else
			take_traffic(&experiment->traffic, code, options[index].name, optarg);
	}
	if (optind < argc)
		bad("argument", argv[optind]);
	experiment->topology.seed = experiment->traffic.seed;
}

static void world_set_up(struct world *world, const struct experiment *experiment)
{
	const struct topology_attr *topology = &experiment->topology;

	*world = (struct world){.hosts = topology_hosts(topology)};
	world->host = calloc(world->hosts, sizeof(*world->host));
	world->port = calloc(world->hosts, sizeof(struct port *));
	if (world->host == NULL || world->port == NULL) {
		perror("net: hosts");
		exit(1);
	}
	fabric_init(&world->fabric);
	for (uint32_t i = 0; i < world->hosts; i++) {
		host_init(&world->host[i], &world->fabric, i, topology->mbps,
			  experiment->traffic.conn.cc, &experiment->delay);
		world->port[i] = &world->host[i].port;
	}
	topology_init(&world->topology, &world->fabric, topology, world->port);
	traffic_init(&world->traffic, &world->fabric, &world->topology, world->host,
		     &experiment->traffic);
}

static void world_tear_down(struct world *world)
{
	traffic_fini(&world->traffic);
	topology_fini(&world->topology);
	for (uint32_t i = 0; i < world->hosts; i++)
		host_fini(&world->host[i]);
	fabric_fini(&world->fabric);
	free(world->host);
	free(world->port);
}

static int compare_doubles(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void add_number(struct json_object *to, const char *name, double value)
{
	json_object_object_add(to, name, json_object_new_double(value));
}

static void add_count(struct json_object *to, const char *name, uint64_t value)
{
	json_object_object_add(to, name, json_object_new_uint64(value));
}

/* Add mean and percentiles of `count` values, which are sorted. */
static void add_spread(struct json_object *to, const char *name, double *values, uint32_t count)
{
	struct json_object *spread = json_object_new_object();
	double sum = 0;

	qsort(values, count, sizeof(*values), compare_doubles);
	for (uint32_t i = 0; i < count; i++)
		sum += values[i];
	if (count > 0) {
		add_number(spread, "mean", sum / count);
		add_number(spread, "p50", values[count / 2]);
		add_number(spread, "p99", values[(uint64_t)count * 99 / 100]);
		add_number(spread, "max", values[count - 1]);
	}
	json_object_object_add(to, name, spread);
}

/* Add the times of flows from their beginning until the receiver had them, and how many times as
 * long as in an empty network that is. */
static void add_flows(struct json_object *to, const struct traffic *traffic)
{
	double *times_us = calloc(traffic->flows, sizeof(*times_us));
	double *slowdowns = calloc(traffic->flows, sizeof(*slowdowns));
	uint64_t bytes = 0, last_ns = 0;
	uint32_t count = 0;

	if (times_us == NULL || slowdowns == NULL) {
		perror("net: flows");
		exit(1);
	}
	for (uint32_t i = 0; i < traffic->flows; i++) {
		const struct flow *flow = &traffic->flow[i];

		if (flow->end_ns == 0)
			continue;
		times_us[count] = (double)(flow->end_ns - flow->begin_ns) / 1000;
		slowdowns[count] = (double)(flow->end_ns - flow->begin_ns) /
				   (double)traffic_ideal_ns(traffic, flow);
		count++;
		bytes += flow->bytes;
		if (flow->end_ns > last_ns)
			last_ns = flow->end_ns;
	}
	add_count(to, "flows", traffic->flows);
	add_count(to, "flows_ended", traffic->ended);
	add_count(to, "connections", traffic->conns);
	add_number(to, "goodput_gbps", last_ns == 0 ? 0 : (double)bytes * 8 / (double)last_ns);
	add_spread(to, "time_us", times_us, count);
	add_spread(to, "slowdown", slowdowns, count);
	free(times_us);
	free(slowdowns);
}

/* Add what was seen of the running flows. */
static void add_samples(struct json_object *to, const struct traffic *traffic)
{
	const double mbps = (double)traffic->topology->attr.mbps;
	struct json_object *list = json_object_new_array();

	for (uint32_t i = 0; i < traffic->samples; i++) {
		const struct sample *sample = &traffic->sample[i];
		struct json_object *entry = json_object_new_object();

		add_number(entry, "us", (double)sample->at_ns / 1000);
		add_number(entry, "gbps", sample->gbps);
		add_number(entry, "fairness", sample->fairness);
		add_count(entry, "flows", sample->flows);
		add_number(entry, "queue_us", sample->queue_bytes * 8 / mbps);
		json_object_array_add(list, entry);
	}
	json_object_object_add(to, "samples", list);
}

static void add_switches(struct json_object *to, const struct topology *topology)
{
	uint64_t drops = 0, marks = 0, stops = 0, lost = 0;
	uint32_t queued_max = 0;

	for (uint32_t i = 0; i < topology->switches; i++) {
		const struct net_switch *sw = &topology->sw[i];

		lost += sw->lost;
		for (uint32_t p = 0; p < sw->ports; p++) {
			drops += sw->port[p].drops;
			marks += sw->port[p].marks;
			stops += sw->port[p].stops;
			if (sw->port[p].queued_max > queued_max)
				queued_max = sw->port[p].queued_max;
		}
	}
	add_count(to, "dropped", drops);
	add_count(to, "lost", lost);
	add_count(to, "marked", marks);
	add_count(to, "pauses", stops);
	add_count(to, "queue_max_bytes", queued_max);
}

static void add_hosts(struct json_object *to, const struct world *world, double cpu_s)
{
	uint64_t packets = 0, again = 0, timeouts = 0, sent = 0, handled = 0;

	for (uint32_t i = 0; i < world->hosts; i++) {
		packets += world->host[i].port.packets;
		again += host_counted(&world->host[i], COUNTER_retransmitted_packets);
		timeouts += host_counted(&world->host[i], COUNTER_local_ack_timeout_err);
		sent += host_counted(&world->host[i], COUNTER_np_cnp_sent);
		handled += host_counted(&world->host[i], COUNTER_rp_cnp_handled);
	}
	add_count(to, "packets", packets);
	add_count(to, "retransmitted", again);
	add_count(to, "timeouts", timeouts);
	add_count(to, "cnp_sent", sent);
	add_count(to, "cnp_handled", handled);
	add_number(to, "cpu_s", cpu_s);
	add_number(to, "packets_per_cpu_s", cpu_s > 0 ? (double)packets / cpu_s : 0);
	add_number(to, "virtual_ms", (double)world->fabric.clock.now_ns / 1e6);
}

int main(int argc, char **argv)
{
	struct experiment experiment;
	struct json_object *result = json_object_new_object();
	struct world world;
	clock_t start;
	bool whole;

	take_options(&experiment, argc, argv);
	entropy_seed(experiment.traffic.seed);
	world_set_up(&world, &experiment);
	start = clock();
	whole = traffic_run(&world.traffic, experiment.until_ns);
	add_flows(result, &world.traffic);
	add_samples(result, &world.traffic);
	add_switches(result, &world.topology);
	add_hosts(result, &world, (double)(clock() - start) / CLOCKS_PER_SEC);
	puts(json_object_to_json_string_ext(result,
					    JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED));
	json_object_put(result);
	world_tear_down(&world);
	return whole ? 0 : 1;
}
