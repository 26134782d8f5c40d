# SPDX-License-Identifier: BSD-3-Clause
"""Code that the program tests and the interop tests share."""
