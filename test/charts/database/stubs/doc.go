// Package stubs tests the scripts of charts/database with stubs in place of
// PostgreSQL's programs: success, failures, retries, and runs without work. It
// has few imports, because each stub is this test's binary, which is started
// some thousand times.
package stubs
