# SPDX-License-Identifier: BSD-3-Clause
"""Unmodified programs run on a port of their own, whatever its wire, options and number of engines."""
