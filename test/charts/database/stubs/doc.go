// Package stubs tests the scripts of charts/database with stubs in the place of
// PostgreSQL's programs: for what they succeed at, what fails, what is tried
// again and what there is not to do. It imports next to nothing, since each
// stub is this test's binary, which is started some thousand times.
package stubs
