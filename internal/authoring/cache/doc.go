// Package cache keeps results of the commands in a folder of the user, so that a command
// analyzes only charts that have changed.
//
// A Folder is a store of package permissions. The files are those of the cache of the go
// command: several processes can share the folder, and results that were not used for five
// days are deleted.
package cache
