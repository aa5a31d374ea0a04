// Package cache keeps results of the commands in a folder of the user, so that a command
// analyzes only charts that have changed.
//
// A Folder is a store of package permissions. Files are written under a temporary name and
// renamed, so that several processes can share the folder. The size of the folder is
// limited: the results that were unused for the longest time are deleted.
package cache
