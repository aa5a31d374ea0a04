package testenv

import "os"

// Long reports whether the tests run in make check-long: tests that try many inputs try
// all of them. Otherwise they try a fixed part, because make check must be fast.
func Long() bool { return os.Getenv("CHARTWRIGHT_LONG") != "" }

// Attempts returns the number of inputs to try: short, or long if Long.
func Attempts(short, long int) int {
	if Long() {
		return long
	}
	return short
}
