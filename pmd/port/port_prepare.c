/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses the kind of a port by the user's device arguments. */
#include "ethdev.h"
#include "local_port.h"
#include "memif_port.h"
#include "port/drivers.h"
#include "port/port.h"
#include "port/port_eal.h"

int port_prepare(struct port *port, const char *text, uint32_t mtu_bytes)
{
	int rc;

	port_init(port, mtu_bytes);
	port->eal = &port_eal;
	rc = devargs_parse(text, &port->devargs);
	if (rc != 0)
		return rc;
	if (devargs_is(&port->devargs, MEMIF_DRIVER))
		return memif_port_prepare(port);
	if (devargs_is(&port->devargs, LOCAL_DRIVER))
		return local_port_prepare(port);
	return ethdev_prepare(port);
}
