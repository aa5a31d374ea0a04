// Package architecture keeps the house in order: its test fails where a package
// imports one that it must know nothing of.
package architecture
