// Package docs reads the pages of this repository as GitHub shows them: their
// headings, by the anchors that links may name, and their links.
//
// The tests here follow every link to a file or a heading, and find every page
// in the table of contents. Links to elsewhere are not fetched, for a test must
// not fail because another's server is down.
package docs
