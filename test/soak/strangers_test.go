package soak

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// What belongs to others, or holds data: nothing that the operator does may change the
// former or delete the latter.

// replaceDependent has another user delete one of the release's objects and create another
// one with its name. It stays until the end of the round.
func (s *subject) replaceDependent() string {
	name := s.dependent()
	// The helm command may be running.
	if name == "" || s.claim == "" {
		return ""
	}
	maps := s.env.At(harness.ConfigMap(name))
	for {
		err := maps.Delete(s.world.t.Context(), name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			s.world.t.Fatal(err)
		}
		object := harness.ConfigMap(name)
		object.Object["data"] = map[string]any{"text": "of a stranger"}
		made, err := maps.Create(s.world.t.Context(), object, metav1.CreateOptions{FieldManager: "test-user"})
		switch {
		case apierrors.IsAlreadyExists(err):
			// The operator was faster.
			continue
		case err != nil:
			s.world.t.Fatal(err)
		}
		s.strangers = append(s.strangers, made)
		return name
	}
}

// dismissStrangers checks that the objects of others are unchanged, and deletes them, so that
// the release can get its objects again.
func (s *subject) dismissStrangers() {
	s.world.t.Helper()
	for _, made := range s.strangers {
		maps := s.env.At(made)
		live, err := maps.Get(s.world.t.Context(), made.GetName(), metav1.GetOptions{})
		if err != nil || live.GetResourceVersion() != made.GetResourceVersion() {
			s.world.violatef("%s: the ConfigMap %s of another user was changed or deleted: %v, %v", s, made.GetName(), live, err)
			continue
		}
		if err := maps.Delete(s.world.t.Context(), made.GetName(), metav1.DeleteOptions{}); err != nil {
			s.world.t.Fatal(err)
		}
	}
	s.strangers = nil
}

// mayRunHelm reports whether the helm command can run: it would delete the claim.
func (s *subject) mayRunHelm() bool { return len(s.env.Records(s.name)) > 0 && !s.unclaimed }

// letHelm ends the expectations about objects that the helm command may change or delete: it
// does not check who owns them. It deletes the copies of records, because the helm command
// continues from the one with the highest revision, whatever release it is of.
func (s *subject) letHelm() {
	s.world.t.Helper()
	secrets := harness.Object("v1", "Secret", "")
	err := s.env.At(secrets).DeleteCollection(s.world.t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: copied + ",name=" + s.name})
	if err != nil {
		s.world.t.Fatal(err)
	}
	s.claim = ""
	for _, made := range s.strangers {
		err := s.env.At(made).Delete(s.world.t.Context(), made.GetName(), metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			s.world.t.Fatal(err)
		}
	}
	s.strangers = nil
}

// liveClaim returns the UID of the release's claim, or an empty UID.
func (s *subject) liveClaim() types.UID {
	s.world.t.Helper()
	claims := harness.Object("v1", "PersistentVolumeClaim", s.name+"-data")
	live, err := s.env.At(claims).Get(s.world.t.Context(), claims.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return ""
	case err != nil:
		s.world.t.Fatal(err)
	case live.GetLabels()[api.LabelOwnerUID] != string(s.uid) || live.GetDeletionTimestamp() != nil:
		return ""
	}
	return live.GetUID()
}

// checkClaim checks that the claim was not deleted, because no user has approved it.
func (s *subject) checkClaim() {
	s.world.t.Helper()
	if live := s.liveClaim(); s.claim != "" && live != s.claim {
		s.world.violatef("%s: the claim has the UID %q, want %q", s, live, s.claim)
		s.claim = live
	}
}
