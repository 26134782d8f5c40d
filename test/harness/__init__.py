# SPDX-License-Identifier: BSD-3-Clause
"""What the program tests and the interop tests share."""
