// Package docs reads the pages of this repository as GitHub renders them: the
// anchors of their headings, and their links.
//
// The tests check every link to a file or a heading, and that the table of
// contents has every page. External links are not checked, because a test must
// not depend on other servers.
package docs
