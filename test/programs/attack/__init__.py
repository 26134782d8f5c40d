# SPDX-License-Identifier: BSD-3-Clause
"""What doc/operator/security.md promises of an uroced as a whole: what it has given up, and what strangers' frames do to its programs."""
