package helm

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	helmrelease "helm.sh/helm/v3/pkg/release"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

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

// lookAgain reads again what the templates of a revision have read, as they
// did: in the same name, as far as the kind's rules let them. It tells whether
// the answers are others.
func (r *run) lookAgain(ctx context.Context, of current) (bool, error) {
	text := r.driver.annotations[of.record.Secret][release.AnnotationLookups]
	if text == "" || of.record.InputDigest == "" {
		// With no digest an upgrade is due already, or held back.
		return false, nil
	}
	var before []lookedUp
	if err := json.Unmarshal([]byte(text), &before); err != nil {
		// An annotation that somebody broke costs one upgrade.
		return true, nil //nolint:nilerr // see above
	}
	client, err := r.reader()
	if err != nil {
		return false, err
	}
	for _, one := range before {
		if _, ok := placeOf(one.Path); !ok {
			return true, nil
		}
		err := client.Get().AbsPath(one.Path).SetHeader("Accept", "application/json").Do(ctx).Error()
		if err != nil && !apierrors.IsNotFound(err) {
			return false, fmt.Errorf("look up %s again: %w", one.Path, err)
		}
	}
	own, err := r.kube.builder.places(of.release)
	if err != nil {
		return false, err
	}
	now := map[string]string{}
	for _, one := range r.kube.readings.lookups(own) {
		now[one.Path] = one.Digest
	}
	return slices.ContainsFunc(before, func(one lookedUp) bool {
		digest, counts := now[one.Path]
		return counts && digest != one.Digest
	}), nil
}

// reader returns a client that reads as templates do.
func (r *run) reader() (*rest.RESTClient, error) {
	config, err := r.config.RESTClientGetter.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	return rest.UnversionedRESTClientFor(config)
}
