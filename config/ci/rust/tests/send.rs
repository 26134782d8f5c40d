use std::ffi::CStr;
use std::mem::size_of;
use std::os::raw::{c_char, c_int, c_void};
use std::{ptr, thread};

const AF_INET: u16 = 2;
const SOCK_STREAM: c_int = 1;

#[repr(C)]
struct SockaddrIn {
    family: u16,
    port_be: u16,
    address: [u8; 4],
    zero: [u8; 8],
}

const SERVER: SockaddrIn = SockaddrIn {
    family: AF_INET,
    port_be: 7471u16.to_be(),
    address: [198, 18, 0, 1],
    zero: [0; 8],
};

#[link(name = "ibverbs")]
extern "C" {
    fn ibv_get_device_list(count: *mut c_int) -> *mut *mut c_void;
    fn ibv_get_device_name(device: *mut c_void) -> *const c_char;
    fn ibv_free_device_list(list: *mut *mut c_void);
}

#[link(name = "rdmacm")]
extern "C" {
    fn rsocket(domain: c_int, kind: c_int, protocol: c_int) -> c_int;
    fn rbind(socket: c_int, address: *const SockaddrIn, size: u32) -> c_int;
    fn rlisten(socket: c_int, backlog: c_int) -> c_int;
    fn raccept(socket: c_int, address: *mut SockaddrIn, size: *mut u32) -> c_int;
    fn rconnect(socket: c_int, address: *const SockaddrIn, size: u32) -> c_int;
    fn rsend(socket: c_int, buffer: *const c_void, size: usize, flags: c_int) -> isize;
    fn rrecv(socket: c_int, buffer: *mut c_void, size: usize, flags: c_int) -> isize;
    fn rclose(socket: c_int) -> c_int;
}

#[test]
fn the_device_is_there() {
    unsafe {
        let mut count = 0;
        let list = ibv_get_device_list(&mut count);
        assert_eq!(count, 1);
        assert_eq!(CStr::from_ptr(ibv_get_device_name(*list)).to_str(), Ok("uroce0"));
        ibv_free_device_list(list);
    }
}

/// A thread accepts and receives; the test connects and sends.
#[test]
fn bytes_go_over_rdma() {
    let size = size_of::<SockaddrIn>() as u32;
    let text = b"over RDMA";
    unsafe {
        let listener = rsocket(AF_INET.into(), SOCK_STREAM, 0);
        assert!(listener >= 0);
        assert_eq!(rbind(listener, &SERVER, size), 0);
        assert_eq!(rlisten(listener, 1), 0);
        let receiver = thread::spawn(move || {
            let socket = raccept(listener, ptr::null_mut(), ptr::null_mut());
            let mut buffer = [0u8; 16];
            let mut length = 0;
            while length < text.len() {
                let rest = &mut buffer[length..];
                let received = rrecv(socket, rest.as_mut_ptr().cast(), rest.len(), 0);
                assert!(received > 0);
                length += received as usize;
            }
            rclose(socket);
            buffer[..length].to_vec()
        });
        let socket = rsocket(AF_INET.into(), SOCK_STREAM, 0);
        assert_eq!(rconnect(socket, &SERVER, size), 0);
        assert_eq!(rsend(socket, text.as_ptr().cast(), text.len(), 0), text.len() as isize);
        assert_eq!(receiver.join().unwrap(), text);
        rclose(socket);
        rclose(listener);
    }
}
