# SPDX-License-Identifier: BSD-3-Clause
"""Programs connect by librdmacm.so.1 and by rsockets."""
