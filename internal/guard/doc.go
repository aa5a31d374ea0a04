// Package guard decides which operations of an action need an approval because they can
// lose data: deletions and replacements of objects that hold data, and of objects with
// the annotation api.AnnotationProtect. It is pure: package helm collects the objects, and
// refuses an action whose Plan is not approved.
package guard
