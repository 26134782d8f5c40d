# SPDX-License-Identifier: BSD-3-Clause
"""uroce's own programs: uroce-run, uroce-ctl, testroce, the views of a device's files, and what jobs of CI do."""
