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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/helm/engine"
	"github.com/chartwright/chartwright/internal/release"
)

// maxLookupAnnotation limits the annotation in bytes. The API server allows 256 KiB for all
// annotations. Lookups that exceed the limit are not repeated.
const maxLookupAnnotation = 64 << 10

// lookupResult is one API path with the digest of its result.
type lookupResult struct {
	Path   string `json:"path"`
	Digest string `json:"digest"`
}

// lookupRecord holds the results of an action's lookups by path. It stores digests, not
// content.
type lookupRecord struct {
	// owner is the custom resource of the release.
	owner types.UID
	// secret is called with the data of each Secret that a template reads, so that it is
	// redacted. It may be nil.
	secret func(data map[string]any)
	// signingKey is the Secret of the operator's signing key.
	signingKey types.NamespacedName

	mu   sync.Mutex
	seen map[string]reading
}

// lookups returns the results sorted by path, without objects of the release itself.
// Otherwise a chart that generates a password if lookup finds none would be upgraded
// once without need.
func (r *lookupRecord) lookups(without map[place]bool) []lookupResult {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []lookupResult
	for _, path := range slices.Sorted(maps.Keys(r.seen)) {
		one := r.seen[path]
		if digest, ok := one.digest(without); ok {
			found = append(found, lookupResult{Path: path, Digest: digest})
		}
	}
	return found
}

// lookupsAnnotation returns the lookups annotation of a revision that was just rendered, or an
// empty string.
func (k *kubeClient) lookupsAnnotation(rls *engine.Release) (string, error) {
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
		if err != nil || len(text) <= maxLookupAnnotation {
			return string(text), err
		}
		found = found[:len(found)*maxLookupAnnotation/len(text)]
		k.log.printf("the chart looks up too many objects; changes are detected only for %d objects and lists", len(found))
	}
}

// place identifies an object in the API independent of its version. A place without a
// name is a list.
type place struct {
	group, resource, namespace, name string
}

// placeOf parses an API path. It returns false if the path is neither of an object nor
// of a list of objects.
func placeOf(path string) (place, bool) {
	if _, object := parseAPIPath(path); !object {
		return place{}, false
	}
	parts := strings.Split(strings.Trim(path, "/"), "/")
	gv, namespace, rest := apply.SplitPath(path)
	if len(rest) == 0 || slices.ContainsFunc(parts, func(s string) bool { return s == "" || s == "." || s == ".." }) {
		return place{}, false
	}
	return place{gv.Group, rest[0], namespace, strings.Join(rest[1:], "/")}, true
}

// places returns the places of the objects and hooks of a revision.
func (b *builder) places(rls *engine.Release) (map[place]bool, error) {
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

// reading is the result of one lookup: an object, a list, or nothing.
type reading struct {
	place  place
	absent bool
	items  []item
}

type item struct {
	place  place
	digest string
}

// absentDigest is the digest of a lookup without a result.
const absentDigest = "absent"

// lookupDigest is the length of a digest in hexadecimal digits. It only has to
// distinguish states of one object.
const lookupDigest = 16

func newLookupRecord(owner types.UID, secret func(data map[string]any), signingKey types.NamespacedName) *lookupRecord {
	return &lookupRecord{owner: owner, secret: secret, signingKey: signingKey, seen: map[string]reading{}}
}

// note records a result. It ignores errors other than NotFound, which fail the
// template.
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

// readable returns the part of a lookup result that templates may read. It removes
// release records, which contain the values of other custom resources, and signing
// keys. It passes the data of Secrets on for redaction.
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

// hides reports whether templates must not read an object: it is a release record, or
// holds a signing key of this or another operator.
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

// add adds an object to the result. It ignores objects of the release, because each
// upgrade would change them and cause the next upgrade.
func (a *reading) add(r *lookupRecord, content map[string]any) {
	object := &unstructured.Unstructured{Object: content}
	labels := object.GetLabels()
	switch {
	case labels[api.LabelOwnerUID] == string(r.owner), labels[api.LabelHookOwnerUID] == string(r.owner):
		return
	case r.hides(content):
		// Otherwise two releases that list all Secrets would upgrade each other forever.
		return
	case object.GetUID() == r.owner:
		// The spec of the custom resource is in the values.
		unstructured.RemoveNestedField(content, "status")
	}
	for _, field := range []string{"managedFields", "resourceVersion"} {
		unstructured.RemoveNestedField(content, "metadata", field)
	}
	at := a.place
	at.namespace, at.name = object.GetNamespace(), object.GetName()
	a.items = append(a.items, item{place: at, digest: values.Digest(content)})
}

// digest returns the digest of the result without the given places. It returns false if
// nothing is left that could change.
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
	// An empty list may get items.
	return values.DigestOf(digests...)[:lookupDigest], len(digests) > 0 || a.place.name == ""
}
