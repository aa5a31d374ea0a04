// Package process starts programs that outlive the one that started them, and
// finds and stops them again later.
//
// A process is remembered by its id together with the moment it started. An
// id alone is not enough: after a crash or a reboot the same number may belong
// to somebody else's program, which must never be signaled.
package process
