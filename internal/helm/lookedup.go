package helm

import (
	"encoding/json"
	"maps"
	"slices"

	helmrelease "helm.sh/helm/v3/pkg/release"
)

// maxLookups bounds the annotation, of which the API server takes 256 KiB with
// all others. What a chart looks up beyond that is not followed.
const maxLookups = 64 << 10

// lookedUp is one path of the API, and a digest of what it answered.
type lookedUp struct {
	Path   string `json:"path"`
	Digest string `json:"digest"`
}

// lookups returns what was read, in the order of the paths. What the release
// makes itself is left out: a chart that looks a password up, and makes one
// where there is none, would be upgraded once for nothing.
func (r *readings) lookups(without map[place]bool) []lookedUp {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []lookedUp
	for _, path := range slices.Sorted(maps.Keys(r.seen)) {
		one := r.seen[path]
		if digest, ok := one.digest(without); ok {
			found = append(found, lookedUp{Path: path, Digest: digest})
		}
	}
	return found
}

// looked returns the annotation of a revision that was just rendered, empty
// where its templates have read nothing.
func (k *kubeClient) looked(rls *helmrelease.Release) (string, error) {
	if len(k.readings.seen) == 0 {
		return "", nil
	}
	own, err := k.builder.places(rls)
	if err != nil {
		return "", err
	}
	found := k.readings.lookups(own)
	if len(found) == 0 {
		return "", nil
	}
	for {
		text, err := json.Marshal(found)
		if err != nil || len(text) <= maxLookups {
			return string(text), err
		}
		found = found[:len(found)*maxLookups/len(text)]
		k.log("the chart looks up more than can be followed; %d objects and lists are", len(found))
	}
}
