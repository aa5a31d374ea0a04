package apply

import (
	"fmt"

	"github.com/cespare/xxhash/v2"
)

// Digest covers what a set of objects is, in whatever order they stand. Two
// sets with equal digests were applied from the same and not damaged since.
func Digest(objects []State) string {
	var sum uint64
	for _, s := range objects {
		sum += xxhash.Sum64String(fmt.Sprintf("%s|%s|%s|%s|%x", s.Group, s.Kind, s.Namespace, s.Name, s.Fingerprint))
	}
	return fmt.Sprintf("%d-%016x", len(objects), sum)
}
