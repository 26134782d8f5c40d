# SPDX-License-Identifier: BSD-3-Clause
"""Programs of an uroced that nobody trusts: none can disturb uroced or another program, whatever it does."""
