# SPDX-License-Identifier: BSD-3-Clause
"""uroce's own programs: uroce-run, uroce-ctl, testroce, and the views of a device's files."""
