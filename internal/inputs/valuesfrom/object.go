package valuesfrom

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// object holds what is used of one object. One request at a time reads it, for
// all who wait. The zero object was never read.
type object struct {
	mu      sync.Mutex
	version string
	keys    map[string]content
}

// get returns what a key holds, and reads the object only where the version
// that the watch has seen is newer than what is in memory, or where nobody has
// asked for the key.
func (o *object) get(ctx context.Context, read Reader, ref Ref, key, version string) (content, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	found, asked := o.keys[key]
	if asked && !newer(version, o.version) {
		return found, nil
	}
	data, err := read(ctx, ref)
	if err != nil {
		return content{}, err
	}
	keys := map[string]content{key: {}}
	for asked := range o.keys {
		keys[asked] = content{}
	}
	for asked := range keys {
		if text, found := data.Keys[asked]; found {
			keys[asked] = newContent(ref.Kind, string(text))
		}
	}
	o.version, o.keys = data.ResourceVersion, keys
	return keys[key], nil
}

// newer compares resource versions, which are numbers that grow. One that is
// no number counts as newer, unless it is the same.
func newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	if err != nil {
		return a != b
	}
	return order > 0
}
