import unittest

import pyverbs.enums as e
from pyverbs.device import Context, get_device_list
from pyverbs.mr import MR
from pyverbs.pd import PD


class RegionTest(unittest.TestCase):
    def test_the_device_registers_memory(self):
        self.assertEqual([device.name for device in get_device_list()], [b"uroce0"])
        with Context(name="uroce0") as context:
            self.assertEqual(context.query_port(1).state, e.IBV_PORT_ACTIVE)
            region = MR(PD(context), 1 << 20, e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE)
            region.write("over RDMA", 9)
            self.assertEqual(region.read(9, 0), b"over RDMA")
            self.assertNotEqual(region.rkey, 0)


if __name__ == "__main__":
    unittest.main()
