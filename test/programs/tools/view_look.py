#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares the files of a device with what verbs tell of it; ends with 1 and the differences."""

import errno
import glob
import os
import stat
import sys

from pyverbs.device import Context

CLASS = "/sys/class/infiniband"


def read(*path):
    """A file's text without its last newline."""
    with open(os.path.join(*path), encoding="ascii") as file:
        return file.read().removesuffix("\n")


def readable(directory):
    """The files of a directory that can be read; reading the others must fail with EINVAL, as in sysfs."""
    names = []
    for name in os.listdir(directory):
        file = os.open(os.path.join(directory, name), os.O_RDONLY)
        try:
            os.read(file, 16)
            names.append(name)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
        finally:
            os.close(file)
    return sorted(names)


def guid(number):
    """Four groups of four digits, of a number in the network's order of bytes."""
    text = number.to_bytes(8, sys.byteorder).hex()
    return ":".join(text[start:start + 4] for start in range(0, 16, 4))


def main():
    """Every attribute that verbs have an answer for, and every way to it."""
    name = sys.argv[1]
    context = Context(name=name)
    attr = context.query_device()
    port = context.query_port(1)
    verbs = context.query_gid_table(256)
    root = f"{CLASS}/{name}"
    wrong = []

    def expect(what, shown, told):
        if shown != told:
            wrong.append(f"{what}: the file has {shown!r}, verbs have {told!r}")

    number = 0  # the first device of the process
    expect("node_guid", read(root, "node_guid"), guid(attr.node_guid))
    expect("sys_image_guid", read(root, "sys_image_guid"), guid(attr.sys_image_guid))
    fw_version = attr.fw_version
    expect("fw_ver", read(root, "fw_ver"), fw_version.decode() if isinstance(fw_version, bytes) else fw_version)
    expect("hw_rev", int(read(root, "hw_rev"), 16), attr.hw_ver)
    expect("state", int(read(root, "ports/1/state").split(":")[0]), int(port.state))
    expect("phys_state", int(read(root, "ports/1/phys_state").split(":")[0]), port.phys_state)
    expect("cap_mask", int(read(root, "ports/1/cap_mask"), 16), port.port_cap_flags)
    expect("lid", int(read(root, "ports/1/lid"), 16), port.lid)
    expect("pkeys", [int(read(path), 16) for path in glob.glob(f"{root}/ports/1/pkeys/*")],
           [context.query_pkey(1, index) for index in range(port.pkey_tbl_len)])
    expect("number of GIDs", len(os.listdir(f"{root}/ports/1/gids")), port.gid_tbl_len)
    for index in range(port.gid_tbl_len):
        expect(f"gids/{index}", read(root, f"ports/1/gids/{index}"), str(context.query_gid(1, index)))
    used = {str(entry.gid_index): entry for entry in verbs}
    for table in ("types", "ndevs"):
        expect(f"number of {table}", len(os.listdir(f"{root}/ports/1/gid_attrs/{table}")), port.gid_tbl_len)
    expect("types", readable(f"{root}/ports/1/gid_attrs/types"), sorted(used))
    with_ndev = sorted(index for index, entry in used.items() if entry.ndev_ifindex)
    ndevs = f"{root}/ports/1/gid_attrs/ndevs"
    expect("ndevs", readable(ndevs), with_ndev)
    for index in with_ndev:
        interface = read(ndevs, index)
        expect(f"ndevs/{index}", int(read("/sys/class/net", interface, "ifindex")), used[index].ndev_ifindex)
        expect("device/net", os.listdir(f"{root}/device/net"), [interface])
    node = os.stat(f"/dev/infiniband/uverbs{number}")
    expect("dev", read(f"/sys/class/infiniband_verbs/uverbs{number}/dev"),
           f"{os.major(node.st_rdev)}:{os.minor(node.st_rdev)}")
    expect("node", stat.S_ISCHR(node.st_mode), True)
    expect("access", os.access(f"/dev/infiniband/uverbs{number}", os.R_OK | os.W_OK), True)
    expect("ibdev", read(f"/sys/class/infiniband_verbs/uverbs{number}/ibdev"), name)
    expect("umad", read(f"/sys/class/infiniband_mad/umad{number}/ibdev"), name)
    expect("realpath", os.path.realpath(f"/sys/class/infiniband_verbs/uverbs{number}/device/infiniband/{name}"), root)
    expect("glob", glob.glob(f"{CLASS}/*/ports/*/link_layer"), [f"{root}/ports/1/link_layer"])
    with os.scandir(CLASS) as entries:
        expect("scandir", [entry.name for entry in entries], [name])
    expect("counters", int(read(root, "ports/1/counters/port_rcv_errors")), 0)
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
