// Package process starts programs that continue to run when the caller exits,
// and finds and stops them later.
//
// A process is identified by its ID together with its start time. The ID is not
// sufficient: after a crash or a reboot it may belong to another program, which
// must never be signaled.
package process
