// Package pgserver runs private PostgreSQL servers for tests.
//
// Model: a server lives in one new folder below the system's temporary folder (data, log, unix socket), listens on
// 127.0.0.1 and on that socket, trusts everybody who can reach it, and belongs to the process that started it.
// There are two uses:
//
//   - the command withpg starts one server, runs a command (go test ./...) with its address in CRONLATCH_TEST_POSTGRES, and
//     stops it; package dbtest gives each test its own database on it;
//   - Start gives a test a server of its own, to be stopped, killed and restarted.
//
// PostgreSQL refuses to run as root, so a root process runs it as the user postgres, or nobody where that does not exist.
//
// Guarantees: when the starting process ends, however it ends (kill -9 included), the server is shut down and its folder
// removed, by a small shell process that waits for the end of a pipe. A server keeps its port and its data over Stop, Kill
// and Restart. The port lies below the range that the kernel hands to outgoing connections, so that nobody else gets it
// while the server is down.
//
// Non-guarantees: fsync is off unless Fsync is given, so a server does not survive a crash of the machine. Where the
// shell process is killed too, the server stays.
//
// Failure handling: Start fails the test when there is no server program; its message says what to install. Stop,
// Kill and Restart report what went wrong as test errors, so that they may be called from any goroutine.
//
// How to test: go test ./internal/pgserver needs PostgreSQL's server programs and nothing else.
package pgserver
