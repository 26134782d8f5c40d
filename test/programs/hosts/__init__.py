# SPDX-License-Identifier: BSD-3-Clause
"""uroce beside others on a host: the kernel's own network, DPDK applications and virtual machines; and in the limits of small
hosts."""
