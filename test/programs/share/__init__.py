# SPDX-License-Identifier: BSD-3-Clause
"""Programs share the port of an uroced, trusting each other; none that ends, is killed or crowds disturbs another."""
