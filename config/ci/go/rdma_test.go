package rdma

import "testing"

// A goroutine receives; the test sends.
func TestSend(t *testing.T) {
	listener, err := Listen("198.18.0.1", "7471")
	if err != nil {
		t.Fatal(err)
	}
	received := make(chan string)
	go func() {
		message, err := listener.Receive()
		if err != nil {
			t.Error(err)
		}
		received <- string(message)
	}()
	if err := Send("198.18.0.1", "7471", []byte("over RDMA")); err != nil {
		t.Fatal(err)
	}
	if message := <-received; message != "over RDMA" {
		t.Errorf("received %q", message)
	}
}
