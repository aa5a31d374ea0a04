package helm

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	helmrelease "helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/release"
)

// maxLookups bounds the annotation, of which the API server takes 256 KiB with
// all others. What a chart looks up beyond that is not followed.
const maxLookups = 64 << 10

// lookedUp is one path of the API, and a digest of what it answered.
type lookedUp struct {
	Path   string `json:"path"`
	Digest string `json:"digest"`
}

// lookupRecord holds the answers that an action got to its lookups, by their paths.
// No content is kept, but digests.
type lookupRecord struct {
	// owner is the custom resource whose release looks.
	owner types.UID
	// secret is called with the data of each Secret that a template gets, which
	// no output may hold; nil is not called.
	secret func(data map[string]any)
	// signingKey is the Secret of the operator's signing key.
	signingKey types.NamespacedName

	mu   sync.Mutex
	seen map[string]reading
}

// lookups returns what was read, in the order of the paths. What the release
// makes itself is left out: a chart that looks a password up, and makes one
// where there is none, would be upgraded once for nothing.
func (r *lookupRecord) lookups(without map[place]bool) []lookedUp {
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
		k.log.printf("the chart looks up more than can be followed; %d objects and lists are", len(found))
	}
}

// place is where an object is in the API, whatever version it is asked for in.
// A place without a name is a list.
type place struct {
	group, resource, namespace, name string
}

// placeOf reads a path of the API. It returns false for what is no object and
// no list of them.
func placeOf(path string) (place, bool) {
	if _, object := where(path); !object {
		return place{}, false
	}
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if slices.ContainsFunc(parts, func(s string) bool { return s == "" || s == "." || s == ".." }) {
		return place{}, false
	}
	var p place
	switch parts[0] {
	case "api":
		parts = parts[2:]
	case "apis":
		p.group, parts = parts[1], parts[3:]
	default:
		return p, false
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		p.namespace, parts = parts[1], parts[2:]
	}
	p.resource = parts[0]
	p.name = strings.Join(parts[1:], "/")
	return p, true
}

// places tells where the objects of a revision are, its hooks among them.
func (b *builder) places(rls *helmrelease.Release) (map[place]bool, error) {
	manifests := append(make([]string, 0, 1+len(rls.Hooks)), rls.Manifest)
	for _, hook := range rls.Hooks {
		manifests = append(manifests, hook.Manifest)
	}
	found := map[place]bool{}
	for _, manifest := range manifests {
		list, err := b.build(manifest)
		if err != nil {
			return nil, fmt.Errorf("revision %d: %w", rls.Version, err)
		}
		for _, info := range list {
			resource := info.Mapping.Resource
			found[place{resource.Group, resource.Resource, info.Namespace, info.Name}] = true
		}
	}
	return found, nil
}

// reading is one answer: an object, a list of them, or that there is none.
type reading struct {
	place  place
	absent bool
	items  []item
}

type item struct {
	place  place
	digest string
}

// absentDigest stands for an answer that there is none.
const absentDigest = "absent"

// lookupDigest is the length of a digest, in hex digits: these need to tell
// one state of one object from the next.
const lookupDigest = 16

func newLookupRecord(owner types.UID, secret func(data map[string]any), signingKey types.NamespacedName) *lookupRecord {
	return &lookupRecord{owner: owner, secret: secret, signingKey: signingKey, seen: map[string]reading{}}
}

// note remembers an answer that is of objects. One that is neither an object
// nor a clear no made the template fail.
func (r *lookupRecord) note(path string, status int, body []byte) {
	at, ok := placeOf(path)
	answer := reading{place: at, absent: status == http.StatusNotFound}
	var content map[string]any
	switch {
	case !ok:
		return
	case answer.absent:
	case status != http.StatusOK || json.Unmarshal(body, &content) != nil:
		return
	case answer.place.name != "":
		answer.add(r, content)
	default:
		items, _, _ := unstructured.NestedSlice(content, "items")
		for _, one := range items {
			if object, ok := one.(map[string]any); ok {
				answer.add(r, object)
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[path] = answer
}

// readable returns what a template may see of an object or a list that it has
// looked up. It leaves out release records, which hold the values of other custom
// resources, and signing keys. It reports the data of Secrets.
func (r *lookupRecord) readable(found map[string]any) map[string]any {
	if r.hides(found) {
		return map[string]any{}
	}
	items, list := found["items"].([]any)
	if !list {
		r.reportSecret(found)
		return found
	}
	found["items"] = slices.DeleteFunc(items, func(one any) bool {
		object, ok := one.(map[string]any)
		if !ok {
			return false
		}
		if r.hides(object) {
			return true
		}
		r.reportSecret(object)
		return false
	})
	return found
}

// hides reports whether templates must not see an object: it is a release record,
// or holds the signing key of this operator or of another one.
func (r *lookupRecord) hides(content map[string]any) bool {
	object := &unstructured.Unstructured{Object: content}
	_, marked := object.GetLabels()[api.LabelSigningKey]
	return content["type"] == release.SecretType || marked ||
		object.GetKind() == "Secret" && r.signingKey == types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

func (r *lookupRecord) reportSecret(object map[string]any) {
	data, _ := object["data"].(map[string]any)
	if object["kind"] != "Secret" || object["apiVersion"] != "v1" || r.secret == nil {
		return
	}
	decoded := make(map[string]any, len(data))
	for key, value := range data {
		text, _ := value.(string)
		if plain, err := base64.StdEncoding.DecodeString(text); err == nil {
			text = string(plain)
		}
		decoded[key] = text
	}
	r.secret(decoded)
}

// add takes an object into the answer, unless it is the release's own, or
// follows from it: an upgrade would change it, and call for the next upgrade.
func (a *reading) add(r *lookupRecord, content map[string]any) {
	object := &unstructured.Unstructured{Object: content}
	labels := object.GetLabels()
	switch {
	case labels[api.LabelOwnerUID] == string(r.owner), labels[api.LabelHookOwnerUID] == string(r.owner):
		return
	case r.hides(content):
		// Two releases that list all Secrets would upgrade each other forever.
		return
	case object.GetUID() == r.owner:
		// Its spec is in the values.
		unstructured.RemoveNestedField(content, "status")
	}
	for _, field := range []string{"managedFields", "resourceVersion"} {
		unstructured.RemoveNestedField(content, "metadata", field)
	}
	at := a.place
	at.namespace, at.name = object.GetNamespace(), object.GetName()
	a.items = append(a.items, item{place: at, digest: values.Digest(content)})
}

// digest sums the answer up, without the objects at some places. It returns
// false where nothing is left that could change.
func (a *reading) digest(without map[place]bool) (string, bool) {
	if without[a.place] {
		return "", false
	}
	if a.absent {
		return absentDigest, true
	}
	var digests []string
	for _, one := range a.items {
		if !without[one.place] {
			digests = append(digests, one.digest)
		}
	}
	slices.Sort(digests)
	// A list may be empty and grow.
	return values.DigestOf(digests...)[:lookupDigest], len(digests) > 0 || a.place.name == ""
}
