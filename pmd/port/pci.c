/* SPDX-License-Identifier: BSD-3-Clause */
/* PCI devices: their kernel driver, their interrupts, their removal. */
#include "pci.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_dev.h>
#include <rte_ethdev.h>
#include <rte_vfio.h>

#include "base/log.h"
#include "base/own.h"
#include "config/drivers.h"
#include "eal/eal_log.h"

#define PCI_DEVICES    "/sys/bus/pci/devices"
#define PCI_DRIVER_MAX 64
#define PCI_PATH_MAX   128

/* Get the kernel's driver of a device; false if it has none. */
static bool pci_driver(const char *device, char name[PCI_DRIVER_MAX])
{
	char path[PCI_PATH_MAX];
	char driver[256];
	ssize_t len;

	snprintf(path, sizeof(path), PCI_DEVICES "/%s/driver", device);
	len = readlink(path, driver, sizeof(driver) - 1);
	if (len <= 0)
		return false;
	driver[len] = '\0';
	snprintf(name, PCI_DRIVER_MAX, "%.63s", strrchr(driver, '/') + 1);
	return true;
}

static bool pci_exists(const char *device)
{
	char path[PCI_PATH_MAX];

	snprintf(path, sizeof(path), PCI_DEVICES "/%s", device);
	return access(path, F_OK) == 0;
}

int pci_check(const char *device)
{
	char driver[PCI_DRIVER_MAX];

	if (!pci_driver(device, driver) || !drivers_need_verbs(driver))
		return 0;
	log_error("PCI device %s (%s) cannot be a port: DPDK drives it through rdma-core's "
		  "libibverbs, which uroce's replaces: use its interface, with --netdev",
		  device, driver);
	return -EOPNOTSUPP;
}

int pci_explain(const char *device)
{
	char driver[PCI_DRIVER_MAX];

	if (!pci_exists(device))
		log_error("there is no PCI device %s: `dpdk-devbind.py --status-dev net` lists the "
			  "devices",
			  device);
	else
		log_error("no DPDK driver can use PCI device %s, which is bound to %s: bind it to "
			  "vfio-pci (dpdk-devbind.py -b vfio-pci %s)",
			  device, pci_driver(device, driver) ? driver : "no kernel driver", device);
	return -ENODEV;
}

enum port_dma pci_dma(const struct port *port)
{
	char driver[PCI_DRIVER_MAX];

	if (port->devargs.bus == DEVARGS_VDEV)
		return PORT_COPIES;
	if (port->devargs.bus == DEVARGS_PCI && pci_driver(port->devargs.name, driver) &&
	    strcmp(driver, "vfio-pci") == 0 && rte_vfio_noiommu_is_enabled() != 1)
		return PORT_DMA_IOMMU;
	return PORT_DMA_PHYSICAL;
}

/* Note that VFIO wants the device back. Runs on EAL's interrupt thread. */
static void pci_wanted_back(const char *device, enum rte_dev_event_type event, void *arg)
{
	struct ethdev *dev = arg;

	(void)device;
	if (event == RTE_DEV_EVENT_REMOVE)
		__atomic_store_n(&dev->removed, true, __ATOMIC_RELEASE);
}

/* Note the same, if the driver detects the removal itself. */
static int pci_was_pulled(uint16_t id, enum rte_eth_event_type event, void *arg, void *ret)
{
	struct ethdev *dev = arg;

	(void)id, (void)event, (void)ret;
	__atomic_store_n(&dev->removed, true, __ATOMIC_RELEASE);
	return 0;
}

void pci_watch(struct ethdev *dev)
{
	const struct port *port = dev->port;

	if (port->devargs.bus != DEVARGS_PCI)
		return;
	if (rte_dev_event_callback_register(port->devargs.name, pci_wanted_back, dev) != 0 ||
	    rte_eth_dev_callback_register(dev->id, RTE_ETH_EVENT_INTR_RMV, pci_was_pulled, dev) !=
		    0)
		log_info("port '%s': its removal will not be noticed", port->devargs.name);
}

/* Check also that the device exists: UIO removes a device in use without notification. */
bool pci_is_gone(const struct ethdev *dev)
{
	const struct devargs *devargs = &dev->port->devargs;

	return __atomic_load_n(&dev->removed, __ATOMIC_ACQUIRE) ||
	       (devargs->bus == DEVARGS_PCI && !pci_exists(devargs->name));
}

/* Give up interrupts: nothing wakes a sleeping thread any more, so it must poll often. */
static void pci_forget_interrupts(struct port *port)
{
	__atomic_store_n(&port->armed, false, __ATOMIC_RELAXED);
	__atomic_store_n(&port->interrupts, false, __ATOMIC_RELAXED);
	__atomic_store_n(&port->wake_fd, -1, __ATOMIC_RELAXED);
}

void pci_give_up(const struct ethdev *dev)
{
	struct rte_eth_dev_info info;

	pci_forget_interrupts(dev->port);
	/* A removed device does not answer its driver. */
	if (!pci_exists(dev->port->devargs.name))
		return;
	eal_log_capture();
	if (rte_eth_dev_info_get(dev->id, &info) == 0) {
		rte_eth_dev_stop(dev->id);
		rte_dev_remove(info.device);
	}
	eal_log_release();
}

bool pci_arm(const struct ethdev_queue *queue)
{
	struct port *port = queue->port;

	if (port->armed || !port->interrupts)
		return false;
	if (rte_eth_dev_rx_intr_enable(queue->dev->id, queue->number) != 0)
		pci_forget_interrupts(port);
	else
		__atomic_store_n(&port->armed, true, __ATOMIC_RELAXED);
	/* Frames that came before do not interrupt: poll once more. */
	return true;
}

void pci_disarm(const struct ethdev_queue *queue)
{
	struct port *port = queue->port;
	const int fd = port_wake_fd(port);
	uint64_t count;

	__atomic_store_n(&port->armed, false, __ATOMIC_RELAXED);
	rte_eth_dev_rx_intr_disable(queue->dev->id, queue->number);
	if (own_is(fd) && read(fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		log_info("port '%s' has no receive interrupts: %s", port->devargs.name,
			 strerror(errno));
}
