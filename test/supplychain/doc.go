// Package supplychain tests what images, workflows and releases are made from:
// nothing that can change without a commit.
package supplychain
