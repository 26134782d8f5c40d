// Package rdma sends short messages over connections of rdma_cm.
package rdma

/*
#cgo LDFLAGS: -lrdmacm -libverbs
#include <stdlib.h>
#include <rdma/rdma_verbs.h>
*/
import "C"

import (
	"fmt"
	"unsafe"
)

const bufferSize = 64

func endpoint(address, port string, flags C.int) (*C.struct_rdma_cm_id, error) {
	hints := C.struct_rdma_addrinfo{ai_flags: flags, ai_port_space: C.RDMA_PS_TCP}
	attr := C.struct_ibv_qp_init_attr{sq_sig_all: 1}
	attr.cap.max_send_wr, attr.cap.max_recv_wr = 1, 1
	attr.cap.max_send_sge, attr.cap.max_recv_sge = 1, 1
	node, service := C.CString(address), C.CString(port)
	defer C.free(unsafe.Pointer(node))
	defer C.free(unsafe.Pointer(service))
	var found *C.struct_rdma_addrinfo
	if rc, err := C.rdma_getaddrinfo(node, service, &hints, &found); rc != 0 {
		return nil, fmt.Errorf("rdma_getaddrinfo: %w", err)
	}
	defer C.rdma_freeaddrinfo(found)
	var id *C.struct_rdma_cm_id
	if rc, err := C.rdma_create_ep(&id, found, nil, &attr); rc != 0 {
		return nil, fmt.Errorf("rdma_create_ep: %w", err)
	}
	return id, nil
}

// Listener takes connections.
type Listener struct{ id *C.struct_rdma_cm_id }

// Listen listens at an address of a device.
func Listen(address, port string) (*Listener, error) {
	id, err := endpoint(address, port, C.RAI_PASSIVE)
	if err != nil {
		return nil, err
	}
	if rc, err := C.rdma_listen(id, 1); rc != 0 {
		return nil, fmt.Errorf("rdma_listen: %w", err)
	}
	return &Listener{id}, nil
}

// Receive takes one connection, and returns its first message.
func (l *Listener) Receive() ([]byte, error) {
	var id *C.struct_rdma_cm_id
	if rc, err := C.rdma_get_request(l.id, &id); rc != 0 {
		return nil, fmt.Errorf("rdma_get_request: %w", err)
	}
	buffer := C.calloc(1, bufferSize)
	defer C.free(buffer)
	mr, err := C.rdma_reg_msgs(id, buffer, bufferSize)
	if mr == nil {
		return nil, fmt.Errorf("rdma_reg_msgs: %w", err)
	}
	defer C.rdma_dereg_mr(mr)
	if rc, err := C.rdma_post_recv(id, nil, buffer, bufferSize, mr); rc != 0 {
		return nil, fmt.Errorf("rdma_post_recv: %w", err)
	}
	if rc, err := C.rdma_accept(id, nil); rc != 0 {
		return nil, fmt.Errorf("rdma_accept: %w", err)
	}
	var wc C.struct_ibv_wc
	if count, err := C.rdma_get_recv_comp(id, &wc); count != 1 || wc.status != C.IBV_WC_SUCCESS {
		return nil, fmt.Errorf("rdma_get_recv_comp: %v, status %d", err, wc.status)
	}
	return C.GoBytes(buffer, C.int(wc.byte_len)), nil
}

// Send connects to a listener, and sends it one message.
func Send(address, port string, message []byte) error {
	id, err := endpoint(address, port, 0)
	if err != nil {
		return err
	}
	buffer := C.CBytes(message)
	defer C.free(buffer)
	size := C.size_t(len(message))
	mr, err := C.rdma_reg_msgs(id, buffer, size)
	if mr == nil {
		return fmt.Errorf("rdma_reg_msgs: %w", err)
	}
	defer C.rdma_dereg_mr(mr)
	if rc, err := C.rdma_connect(id, nil); rc != 0 {
		return fmt.Errorf("rdma_connect: %w", err)
	}
	if rc, err := C.rdma_post_send(id, nil, buffer, size, mr, 0); rc != 0 {
		return fmt.Errorf("rdma_post_send: %w", err)
	}
	var wc C.struct_ibv_wc
	if count, err := C.rdma_get_send_comp(id, &wc); count != 1 || wc.status != C.IBV_WC_SUCCESS {
		return fmt.Errorf("rdma_get_send_comp: %v, status %d", err, wc.status)
	}
	return nil
}
