/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/port/flow.c, on a port that takes what a test lets it. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rte_flow.h>

#include "port/flow.h"
#include "test.h"

#define RULES_MAX 300
#define VLAN_ANY  INT32_MAX

/* A parsed flow rule, reduced to the fields that this code sets. */
struct rule {
	bool there;
	bool arp, icmp6;
	int32_t vlan; /* VLAN_NONE: no such item; VLAN_ANY: any tag */
	int version;  /* of IP; 0: no such item */
	bool exact;   /* it has the whole destination */
	uint8_t dst[16];
	uint16_t udp_port; /* 0: no such item */
	int32_t qpn;	   /* the lowest bits of the queue pair's number; -1: no such item */
	uint32_t qpn_bits;
	uint16_t queue;
};

/* The kinds of rules that the port takes. */
static struct {
	bool exact, plain, neighbours, bth, tagged_bth;
	bool lies; /* what it finds valid it does not make */
	bool has_no_rules;
	size_t room;
} port;

static struct rule rules[RULES_MAX];
static size_t rule_count;
static unsigned int destroyed;

static void look_at_ip(const struct rte_flow_item *item, struct rule *rule)
{
	const struct rte_flow_item_ipv4 *ipv4 = item->spec, *mask4 = item->mask;
	const struct rte_flow_item_ipv6 *ipv6 = item->spec, *mask6 = item->mask;
	uint8_t whole[16];

	rule->version = item->type == RTE_FLOW_ITEM_TYPE_IPV4 ? 4 : 6;
	rule->exact = item->spec != NULL;
	if (!rule->exact)
		return;
	memset(whole, 0xff, sizeof(whole));
	if (rule->version == 4) {
		assert_memory_equal(&mask4->hdr.dst_addr, whole, 4);
		assert_int_equal(mask4->hdr.src_addr, 0);
		memcpy(rule->dst, &ipv4->hdr.dst_addr, 4);
	} else {
		assert_memory_equal(&mask6->hdr.dst_addr, whole, 16);
		memcpy(rule->dst, &ipv6->hdr.dst_addr, 16);
	}
}

/* The bytes begin after the item before it, UDP, at the byte before the BTH's queue pair number. */
static void look_at_bth(const struct rte_flow_item *item, struct rule *rule)
{
	const struct rte_flow_item_raw *raw = item->spec, *mask = item->mask;

	assert_true(rule->udp_port == 4791);
	assert_true(raw->relative && mask->relative);
	assert_false(raw->search);
	assert_int_equal(raw->offset, 4);
	assert_int_equal(raw->limit, 0);
	assert_int_equal(raw->length, 4);
	assert_true(mask->offset == -1 && mask->length == UINT16_MAX);
	assert_int_equal(mask->pattern[0], 0);
	rule->qpn = raw->pattern[1] << 16 | raw->pattern[2] << 8 | raw->pattern[3];
	rule->qpn_bits =
		(uint32_t)(mask->pattern[1] << 16 | mask->pattern[2] << 8 | mask->pattern[3]);
}

static void look_at_vlan(const struct rte_flow_item *item, struct rule *rule)
{
	const struct rte_flow_item_vlan *vlan = item->spec, *mask = item->mask;

	rule->vlan = VLAN_ANY;
	if (!vlan)
		return;
	/* The rule does not match the priority. */
	assert_int_equal(mask->tci, RTE_BE16(0xfff));
	rule->vlan = rte_be_to_cpu_16(vlan->tci);
}

static void look_at_item(const struct rte_flow_item *item, struct rule *rule)
{
	const struct rte_flow_item_eth *eth = item->spec, *eth_mask = item->mask;
	const struct rte_flow_item_udp *udp = item->spec, *udp_mask = item->mask;

	assert_null(item->last);
	assert_int_equal(item->spec == NULL, item->mask == NULL);
	switch (item->type) {
	case RTE_FLOW_ITEM_TYPE_ETH:
		rule->arp = eth && eth->type == RTE_BE16(0x0806) && eth_mask->type == UINT16_MAX;
		break;
	case RTE_FLOW_ITEM_TYPE_VLAN:
		look_at_vlan(item, rule);
		break;
	case RTE_FLOW_ITEM_TYPE_IPV4:
	case RTE_FLOW_ITEM_TYPE_IPV6:
		look_at_ip(item, rule);
		break;
	case RTE_FLOW_ITEM_TYPE_UDP:
		assert_int_equal(udp_mask->hdr.dst_port, UINT16_MAX);
		assert_int_equal(udp_mask->hdr.src_port, 0);
		rule->udp_port = rte_be_to_cpu_16(udp->hdr.dst_port);
		break;
	case RTE_FLOW_ITEM_TYPE_ICMP6:
		rule->icmp6 = true;
		break;
	case RTE_FLOW_ITEM_TYPE_RAW:
		look_at_bth(item, rule);
		break;
	default:
		fail_msg("an item of type %d", item->type);
	}
}

static struct rule read_rule(const struct rte_flow_attr *attr, const struct rte_flow_item *items,
			     const struct rte_flow_action *actions)
{
	const struct rte_flow_action_queue *queue = actions[0].conf;
	struct rule rule = {.there = true, .vlan = VLAN_NONE, .qpn = -1, .queue = queue->index};

	assert_true(attr->ingress);
	assert_int_equal(items[0].type, RTE_FLOW_ITEM_TYPE_ETH);
	for (; items->type != RTE_FLOW_ITEM_TYPE_END; items++)
		look_at_item(items, &rule);
	assert_int_equal(actions[0].type, RTE_FLOW_ACTION_TYPE_QUEUE);
	assert_int_equal(actions[1].type, RTE_FLOW_ACTION_TYPE_END);
	return rule;
}

static bool takes(const struct rule *rule)
{
	if (rule->arp || rule->icmp6)
		return port.neighbours;
	if (rule->qpn >= 0)
		return rule->vlan == VLAN_NONE ? port.bth : port.tagged_bth;
	return rule->exact ? port.exact : port.plain;
}

/* Replace DPDK's functions: the program's own definitions take precedence when it links. */
int rte_flow_validate(uint16_t port_id, const struct rte_flow_attr *attr,
		      const struct rte_flow_item items[], const struct rte_flow_action actions[],
		      struct rte_flow_error *error)
{
	const struct rule rule = read_rule(attr, items, actions);

	assert_int_equal(port_id, 3);
	if (takes(&rule))
		return 0;
	if (port.has_no_rules)
		return -ENOSYS;
	error->message = "no";
	return -ENOTSUP;
}

struct rte_flow *rte_flow_create(uint16_t port_id, const struct rte_flow_attr *attr,
				 const struct rte_flow_item items[],
				 const struct rte_flow_action actions[],
				 struct rte_flow_error *error)
{
	const struct rule rule = read_rule(attr, items, actions);

	(void)port_id, (void)error;
	assert_true(takes(&rule));
	if (port.lies || rule_count == port.room)
		return NULL;
	rules[rule_count] = rule;
	return (struct rte_flow *)&rules[rule_count++];
}

int rte_flow_destroy(uint16_t port_id, struct rte_flow *flow, struct rte_flow_error *error)
{
	struct rule *rule = (struct rule *)flow;

	(void)error;
	assert_int_equal(port_id, 3);
	assert_true(rule->there);
	rule->there = false;
	destroyed++;
	return 0;
}

static struct addresses own;
static struct flow flow;

static void add(const uint8_t gid[16], int32_t vlan)
{
	struct address address = {.vlan = vlan};

	memcpy(address.gid, gid, sizeof(address.gid));
	assert_int_equal(addresses_add(&own, &address), 0);
}

static const uint8_t ipv4[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 1};
static const uint8_t other_ipv4[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 2};
static const uint8_t ipv6[16] = {0xfd, [15] = 1};

static int set_up(TEST_STATE)
{
	memset(&port, 0, sizeof(port));
	port.room = RULES_MAX;
	memset(&own, 0, sizeof(own));
	flow = (struct flow){.port_id = 3, .queue = 1};
	rule_count = 0;
	destroyed = 0;
	return 0;
}

TEST_FIXTURE(set_up, NULL);

TEST(flow_steer__by_address_and_port)
{
	port.exact = port.plain = true;
	add(ipv4, VLAN_NONE);
	add(ipv6, VLAN_NONE);
	assert_int_equal(flow_steer(&flow, &own), 2);
	assert_int_equal(rule_count, 2);
	assert_int_equal(rules[0].version, 4);
	assert_true(rules[0].exact);
	assert_memory_equal(rules[0].dst, ipv4 + 12, 4);
	assert_int_equal(rules[0].udp_port, 4791);
	assert_int_equal(rules[0].queue, 1);
	assert_int_equal(rules[0].vlan, VLAN_NONE);
	assert_int_equal(rules[1].version, 6);
	assert_memory_equal(rules[1].dst, ipv6, 16);
	assert_int_equal(rules[1].udp_port, 4791);
}

TEST(flow_steer__in_a_vlan)
{
	port.exact = true;
	add(ipv4, 5);
	assert_int_equal(flow_steer(&flow, &own), 1);
	assert_int_equal(rules[0].vlan, 5);
	assert_true(rules[0].exact);
}

TEST(flow_steer__by_port_alone_once_for_all)
{
	port.plain = true;
	add(ipv4, VLAN_NONE);
	add(ipv6, VLAN_NONE);
	add(other_ipv4, VLAN_NONE);
	add(other_ipv4, 5);
	assert_int_equal(flow_steer(&flow, &own), 4);
	assert_int_equal(rule_count, 3);
	assert_int_equal(rules[0].version, 4);
	assert_false(rules[0].exact);
	assert_int_equal(rules[0].udp_port, 4791);
	assert_int_equal(rules[1].version, 6);
	assert_int_equal(rules[2].version, 4);
	assert_int_equal(rules[2].vlan, 5);
}

TEST(flow_steer__a_port_without_rules)
{
	add(ipv4, VLAN_NONE);
	add(other_ipv4, VLAN_NONE);
	assert_int_equal(flow_steer(&flow, &own), 0);
	assert_int_equal(flow.count, 0);
	assert_false(flow_steer_neighbours(&flow));
}

TEST(flow_steer__a_port_that_does_not_keep_its_word)
{
	port.exact = port.plain = port.lies = true;
	add(ipv4, VLAN_NONE);
	assert_int_equal(flow_steer(&flow, &own), 0);
	assert_int_equal(flow.count, 0);
}

TEST(flow_steer__a_port_that_is_full)
{
	port.exact = true;
	port.room = 1;
	add(ipv4, VLAN_NONE);
	add(ipv6, VLAN_NONE);
	assert_int_equal(flow_steer(&flow, &own), 1);
	assert_int_equal(flow.count, 1);
}

TEST(flow_steer__as_many_addresses_as_there_may_be)
{
	uint8_t gid[16];

	port.exact = port.neighbours = true;
	memcpy(gid, ipv6, sizeof(gid));
	for (int i = 0; i < ADDRESSES_MAX; i++) {
		gid[14] = (uint8_t)i;
		add(gid, VLAN_NONE);
	}
	assert_int_equal(flow_steer(&flow, &own), ADDRESSES_MAX);
	assert_true(flow_steer_neighbours(&flow));
	assert_int_equal(flow.count, FLOW_RULES_MAX);
	/* The table takes no more rules. */
	assert_false(flow_steer_neighbours(&flow));
	assert_int_equal(rule_count, FLOW_RULES_MAX);
}

TEST(flow_steer_neighbours__arp_and_icmpv6)
{
	port.neighbours = true;
	assert_true(flow_steer_neighbours(&flow));
	assert_int_equal(rule_count, 2);
	assert_true(rules[0].arp);
	assert_int_equal(rules[0].version, 0);
	assert_true(rules[1].icmp6);
	assert_int_equal(rules[1].version, 6);
	assert_false(rules[1].exact);
	assert_int_equal(rules[1].udp_port, 0);
}

TEST(flow_end__takes_each_rule_away_once)
{
	port.exact = port.neighbours = true;
	add(ipv4, VLAN_NONE);
	add(ipv6, VLAN_NONE);
	flow_steer(&flow, &own);
	flow_steer_neighbours(&flow);
	flow_end(&flow);
	assert_int_equal(destroyed, 4);
	flow_end(&flow);
	assert_int_equal(destroyed, 4);
}

/* Check the rules of one kind: each engine's queue pairs to the engine's queue. */
static void check_division(size_t first, int version, int32_t vlan, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct rule *rule = &rules[first + i];

		assert_true(rule->there);
		assert_int_equal(rule->version, version);
		assert_false(rule->exact);
		assert_int_equal(rule->vlan, vlan);
		assert_int_equal(rule->qpn, i);
		assert_int_equal(rule->qpn_bits, count - 1);
		assert_int_equal(rule->queue, i);
	}
}

TEST(flow_divide__by_the_lowest_bits_of_the_queue_pair)
{
	port.bth = port.tagged_bth = true;
	for (uint32_t count = 2; count <= FLOW_QUEUES_MAX; count *= 2) {
		rule_count = 0;
		assert_true(flow_divide(&flow, count));
		assert_int_equal(rule_count, 4 * count);
		check_division(0, 4, VLAN_NONE, count);
		check_division(count, 4, VLAN_ANY, count);
		check_division(2 * (size_t)count, 6, VLAN_NONE, count);
		check_division(3 * (size_t)count, 6, VLAN_ANY, count);
		destroyed = 0;
		flow_end(&flow);
		assert_int_equal(destroyed, 4 * count);
	}
}

/* The remainder of another divisor is not in the lowest bits. */
TEST(flow_can_divide__powers_of_two_only)
{
	assert_true(flow_can_divide(flow.port_id, 2));
	assert_true(flow_can_divide(flow.port_id, FLOW_QUEUES_MAX));
	assert_false(flow_can_divide(flow.port_id, 3));
	assert_false(flow_can_divide(flow.port_id, 12));
	assert_false(flow_can_divide(flow.port_id, 2 * FLOW_QUEUES_MAX));
	assert_int_equal(rule_count, 0);
}

/* What a driver says of a rule counts only when the port has started. */
TEST(flow_can_divide__a_driver_that_has_rules)
{
	assert_true(flow_can_divide(flow.port_id, 2));
	port.has_no_rules = true;
	assert_false(flow_can_divide(flow.port_id, 2));
}

TEST(flow_divide__keeps_whole_kinds_only)
{
	port.bth = true;
	assert_false(flow_divide(&flow, 2));
	assert_int_equal(flow.count, 4);
	check_division(0, 4, VLAN_NONE, 2);
	check_division(2, 6, VLAN_NONE, 2);
	flow_end(&flow);
	/* The second rule of the second kind has no room. */
	port.tagged_bth = true;
	rule_count = 0;
	destroyed = 0;
	port.room = 3;
	assert_false(flow_divide(&flow, 2));
	assert_int_equal(flow.count, 2);
	assert_int_equal(destroyed, 1);
	check_division(0, 4, VLAN_NONE, 2);
	assert_false(rules[2].there);
}

TEST(flow_divide__a_port_without_rules)
{
	port.exact = port.plain = true;
	assert_false(flow_divide(&flow, 2));
	assert_int_equal(flow.count, 0);
}
