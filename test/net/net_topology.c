/* SPDX-License-Identifier: BSD-3-Clause */
/* Shapes of networks: the links of each, and the routes of its switches. */
#include "net_topology.h"

#include <stdio.h>
#include <stdlib.h>

/* A port of a switch. */
struct end {
	uint32_t sw;
	uint32_t port;
};

static void link_switches(struct topology *topology, struct end a, struct end b)
{
	fabric_link(topology->fabric, &topology->sw[a.sw].port[a.port],
		    &topology->sw[b.sw].port[b.port], topology->attr.mbps,
		    topology->attr.latency_ns);
	switch_own_port(&topology->sw[a.sw], a.port);
	switch_own_port(&topology->sw[b.sw], b.port);
}

/* Link a host with a port of a switch. The host's node has set ops, node and number, which a link
 * sets anew. */
static void link_host(struct topology *topology, uint32_t host, struct end end)
{
	struct port *port = topology->host_ports[host];
	const struct port set = *port;

	fabric_link(topology->fabric, port, &topology->sw[end.sw].port[end.port],
		    topology->attr.mbps, topology->attr.latency_ns);
	port->ops = set.ops;
	port->node = set.node;
	port->number = set.number;
	switch_own_port(&topology->sw[end.sw], end.port);
}

static void make_switches(struct topology *topology, uint32_t first, uint32_t count, uint32_t ports,
			  uint32_t host_ports)
{
	for (uint32_t i = first; i < first + count; i++) {
		switch_init(&topology->sw[i], topology->fabric, &topology->attr.switches, i, ports,
			    topology->hosts, topology->attr.seed);
		topology->sw[i].host_ports = host_ports;
	}
}

static void set_route(struct topology *topology, uint32_t sw, uint32_t host, uint32_t first,
		      uint32_t count)
{
	topology->sw[sw].route[host] =
		(struct route){.first = (uint16_t)first, .count = (uint16_t)count};
}

static void build_star(struct topology *topology)
{
	make_switches(topology, 0, 1, topology->hosts, topology->hosts);
	for (uint32_t host = 0; host < topology->hosts; host++) {
		link_host(topology, host, (struct end){0, host});
		set_route(topology, 0, host, host, 1);
	}
}

/*
 * A fat tree of arity k: k pods of k/2 edge and k/2 aggregation switches, and (k/2)^2 core
 * switches. Edge e of a pod: ports below k/2 lead to hosts, the others to the pod's aggregation
 * switches. Aggregation switch a: ports below k/2 lead to edges, port k/2 + i to core a * k/2 + i.
 * A core switch has a port for each pod.
 */
static uint32_t edge_of(const struct topology *topology, uint32_t host)
{
	return host / (topology->attr.arity / 2);
}

static uint32_t aggregation_of(const struct topology *topology, uint32_t pod, uint32_t i)
{
	const uint32_t half = topology->attr.arity / 2;

	return topology->attr.arity * half + pod * half + i;
}

static uint32_t core_of(const struct topology *topology, uint32_t i)
{
	return topology->attr.arity * topology->attr.arity + i;
}

static void link_pod(struct topology *topology, uint32_t pod)
{
	const uint32_t half = topology->attr.arity / 2;

	for (uint32_t a = 0; a < half; a++) {
		const uint32_t aggregation = aggregation_of(topology, pod, a);

		for (uint32_t e = 0; e < half; e++)
			link_switches(topology, (struct end){pod * half + e, half + a},
				      (struct end){aggregation, e});
		for (uint32_t i = 0; i < half; i++)
			link_switches(topology, (struct end){aggregation, half + i},
				      (struct end){core_of(topology, a * half + i), pod});
	}
}

static void route_fat_tree(struct topology *topology, uint32_t host)
{
	const uint32_t arity = topology->attr.arity, half = arity / 2;
	const uint32_t own_edge = edge_of(topology, host), own_pod = own_edge / half;

	for (uint32_t edge = 0; edge < arity * half; edge++) {
		if (edge == own_edge)
			set_route(topology, edge, host, host % half, 1);
		else
			set_route(topology, edge, host, half, half);
	}
	for (uint32_t pod = 0; pod < arity; pod++) {
		for (uint32_t a = 0; a < half; a++) {
			if (pod == own_pod)
				set_route(topology, aggregation_of(topology, pod, a), host,
					  own_edge % half, 1);
			else
				set_route(topology, aggregation_of(topology, pod, a), host, half,
					  half);
		}
	}
	for (uint32_t i = 0; i < half * half; i++)
		set_route(topology, core_of(topology, i), host, own_pod, 1);
}

static void build_fat_tree(struct topology *topology)
{
	const uint32_t arity = topology->attr.arity, half = arity / 2;

	make_switches(topology, 0, arity * half, arity, half);
	make_switches(topology, arity * half, arity * half + half * half, arity, 0);
	for (uint32_t pod = 0; pod < arity; pod++)
		link_pod(topology, pod);
	for (uint32_t host = 0; host < topology->hosts; host++) {
		link_host(topology, host, (struct end){edge_of(topology, host), host % half});
		route_fat_tree(topology, host);
	}
}

static void build_leaf_spine(struct topology *topology)
{
	const struct topology_attr *attr = &topology->attr;

	make_switches(topology, 0, attr->leaves, attr->leaf_hosts + attr->spines, attr->leaf_hosts);
	make_switches(topology, attr->leaves, attr->spines, attr->leaves, 0);
	for (uint32_t leaf = 0; leaf < attr->leaves; leaf++) {
		for (uint32_t spine = 0; spine < attr->spines; spine++)
			link_switches(topology, (struct end){leaf, attr->leaf_hosts + spine},
				      (struct end){attr->leaves + spine, leaf});
	}
	for (uint32_t host = 0; host < topology->hosts; host++) {
		const uint32_t own = host / attr->leaf_hosts;

		link_host(topology, host, (struct end){own, host % attr->leaf_hosts});
		for (uint32_t leaf = 0; leaf < attr->leaves; leaf++) {
			if (leaf == own)
				set_route(topology, leaf, host, host % attr->leaf_hosts, 1);
			else
				set_route(topology, leaf, host, attr->leaf_hosts, attr->spines);
		}
		for (uint32_t spine = 0; spine < attr->spines; spine++)
			set_route(topology, attr->leaves + spine, host, own, 1);
	}
}

uint32_t topology_hosts(const struct topology_attr *attr)
{
	switch (attr->shape) {
	case TOPOLOGY_FAT_TREE:
		return attr->arity * attr->arity * attr->arity / 4;
	case TOPOLOGY_LEAF_SPINE:
		return attr->leaves * attr->leaf_hosts;
	default:
		return attr->hosts;
	}
}

static uint32_t topology_switches(const struct topology_attr *attr)
{
	switch (attr->shape) {
	case TOPOLOGY_FAT_TREE:
		return attr->arity * attr->arity * 5 / 4;
	case TOPOLOGY_LEAF_SPINE:
		return attr->leaves + attr->spines;
	default:
		return 1;
	}
}

uint32_t topology_links(const struct topology_attr *attr, uint32_t a, uint32_t b)
{
	const uint32_t half = attr->arity / 2;

	switch (attr->shape) {
	case TOPOLOGY_FAT_TREE:
		if (a / half == b / half)
			return 2;
		return a / half / half == b / half / half ? 4 : 6;
	case TOPOLOGY_LEAF_SPINE:
		return a / attr->leaf_hosts == b / attr->leaf_hosts ? 2 : 4;
	default:
		return 2;
	}
}

void topology_init(struct topology *topology, struct fabric *fabric,
		   const struct topology_attr *attr, struct port **host_ports)
{
	*topology = (struct topology){.attr = *attr,
				      .fabric = fabric,
				      .hosts = topology_hosts(attr),
				      .switches = topology_switches(attr),
				      .host_ports = host_ports};
	topology->sw = calloc(topology->switches, sizeof(*topology->sw));
	if (topology->sw == NULL) {
		perror("net: topology");
		exit(1);
	}
	if (attr->shape == TOPOLOGY_FAT_TREE)
		build_fat_tree(topology);
	else if (attr->shape == TOPOLOGY_LEAF_SPINE)
		build_leaf_spine(topology);
	else
		build_star(topology);
}

void topology_fini(struct topology *topology)
{
	for (uint32_t i = 0; i < topology->switches; i++)
		switch_fini(&topology->sw[i]);
	free(topology->sw);
}
