/* SPDX-License-Identifier: BSD-3-Clause */
/* Convert hellos, windows and mappings of rsockets to the wire format and back. */
#include "rs_wire.h"

#include <errno.h>
#include <string.h>

#define SCALE_EXACT 0x80 /* counts up to this value are not scaled */

bool rs_wire_is_big_endian(void)
{
	return RTE_BYTE_ORDER == RTE_BIG_ENDIAN;
}

uint8_t rs_wire_scale(uint16_t count)
{
	const uint16_t upper = count >> 8;

	if (count <= SCALE_EXACT)
		return (uint8_t)count;
	return (uint8_t)(SCALE_EXACT | (upper < SCALE_EXACT ? upper : SCALE_EXACT - 1));
}

uint16_t rs_wire_unscale(uint8_t scaled)
{
	if (scaled <= SCALE_EXACT)
		return scaled;
	return (uint16_t)((scaled & (SCALE_EXACT - 1)) << 8);
}

static uint64_t order64(uint64_t value, bool big_endian)
{
	return big_endian ? rte_cpu_to_be_64(value) : rte_cpu_to_le_64(value);
}

static uint32_t order32(uint32_t value, bool big_endian)
{
	return big_endian ? rte_cpu_to_be_32(value) : rte_cpu_to_le_32(value);
}

void rs_wire_put_window(struct rs_window_wire *wire, const struct rs_window *window,
			bool big_endian)
{
	wire->addr = order64(window->addr, big_endian);
	wire->key = order32(window->key, big_endian);
	wire->length = order32(window->length, big_endian);
}

void rs_wire_put_iomap(struct rs_iomap_wire *wire, const struct rs_iomap *iomap, bool big_endian)
{
	wire->offset = order64(iomap->offset, big_endian);
	rs_wire_put_window(&wire->window, &iomap->window, big_endian);
}

static void get_window(const struct rs_window_wire *wire, struct rs_window *window)
{
	window->addr = rte_be_to_cpu_64(wire->addr);
	window->key = rte_be_to_cpu_32(wire->key);
	window->length = rte_be_to_cpu_32(wire->length);
}

void rs_wire_put_hello(struct rs_hello_wire *wire, const struct rs_hello *hello)
{
	memset(wire, 0, sizeof(*wire));
	wire->version = RS_VERSION;
	wire->flags = RS_HELLO_IOMAP;
	if (hello->big_endian)
		wire->flags |= RS_HELLO_BIG_ENDIAN;
	wire->credits = rte_cpu_to_be_16(hello->credits);
	wire->iomaps = rs_wire_scale(hello->iomaps);
	rs_wire_put_window(&wire->target, &hello->target, true);
	rs_wire_put_window(&wire->data, &hello->data, true);
}

int rs_wire_get_hello(const void *data, size_t len, struct rs_hello *hello)
{
	struct rs_hello_wire wire;

	if (!data || len < sizeof(wire))
		return -EPROTO;
	memcpy(&wire, data, sizeof(wire));
	if (wire.version != RS_VERSION)
		return -ENOTSUP;
	*hello = (struct rs_hello){
		.big_endian = (wire.flags & RS_HELLO_BIG_ENDIAN) != 0,
		.credits = rte_be_to_cpu_16(wire.credits),
		.iomaps = wire.flags & RS_HELLO_IOMAP ? rs_wire_unscale(wire.iomaps) : 0,
	};
	get_window(&wire.target, &hello->target);
	get_window(&wire.data, &hello->data);
	return hello->credits > 0 && hello->target.length > 0 ? 0 : -EPROTO;
}
