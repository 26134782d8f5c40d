module rdma

go 1.19
