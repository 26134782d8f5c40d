# SPDX-License-Identifier: BSD-3-Clause
"""The kernel's iSER target, LIO with ib_isert, serves a RAM disk to libiscsi's tools and QEMU on uroce."""

from kernel_disk import GuestRunning, on_guest
from libiscsi import LibiscsiTest, Lun

TARGET = "iqn.2026-11.test.uroce:lio"
LUN_BYTES = 64 << 20
ROOT = "/sys/kernel/config/target"
GROUP = f"{ROOT}/iscsi/{TARGET}/tpgt_1"


def commands(address):
    """
    What targetcli would do. libiscsi 1.19 announces immediate data in its writes, but does not send it over iSER; so the
    target allows none.
    """
    return [
        "modprobe -a target_core_mod ib_isert", "mkdir -p /etc/target",
        "{ grep -q configfs /proc/mounts || mount -t configfs configfs /sys/kernel/config; }",
        f"mkdir -p {ROOT}/core/rd_mcp_0/ram", f"echo rd_pages={LUN_BYTES // 4096} >{ROOT}/core/rd_mcp_0/ram/control",
        f"echo 1 >{ROOT}/core/rd_mcp_0/ram/enable", f"mkdir -p {GROUP}/lun/lun_0 {GROUP}/np/{address}:3260",
        f"ln -s {ROOT}/core/rd_mcp_0/ram {GROUP}/lun/lun_0/disk", f"echo 1 >{GROUP}/np/{address}:3260/iser",
        f"echo 0 >{GROUP}/attrib/authentication", f"echo 1 >{GROUP}/attrib/generate_node_acls",
        f"echo 1 >{GROUP}/attrib/cache_dynamic_acls", f"echo 0 >{GROUP}/attrib/demo_mode_write_protect",
        f"echo No >{GROUP}/param/ImmediateData", f"echo 1 >{GROUP}/enable"]


class LioTest(LibiscsiTest):
    """The checks of libiscsi, with this target."""

    def __init__(self, report, guest, sides, rng):
        lun = Lun(guest.address, TARGET, 0, LUN_BYTES, "RAMDISK-MCP")
        super().__init__(report, "kernel: lio", sides, rng, lun, self._serve)
        self._guest = guest

    def _serve(self, _running):
        """The target stays until the guest boots again."""
        with GuestRunning(self._guest) as running:
            if self._guest.run(f"test -e {GROUP}")[0]:
                running.shell(" && ".join(commands(self._guest.address)))
            running.shell("dmesg -c >/dev/null")

    def check(self, name, program, function, *args):
        super().check(name, program, on_guest, self._guest, function, *args)
