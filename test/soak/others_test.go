package soak

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// Events caused by other clients: with the helm command, or to objects and
// records.

// helm runs the helm command. It may fail because of a concurrent action of the
// operator.
func (s *subject) helm(args ...string) string {
	s.frozen = ""
	s.letHelm()
	if _, err := s.env.TryHelm(args...); err != nil {
		s.world.totals.inc("helm command failed")
		return args[0] + ", which failed: " + err.Error()
	}
	return args[0]
}

func (s *subject) helmUpgrade() string {
	if !s.mayRunHelm() {
		return ""
	}
	return s.helm("upgrade", s.name, harness.Chart("pieces"), "--history-max", "0", "--set", "claim=true,secret=helm,pieces.helm=mine")
}

// helmUpgradeLong runs during other events, and fails in the end.
func (s *subject) helmUpgradeLong() string {
	if !s.mayRunHelm() {
		return ""
	}
	s.frozen = ""
	s.letHelm()
	s.world.errands.Go(func() {
		_, err := s.env.TryHelm("upgrade", s.name, harness.Chart("pieces"), "--history-max", "0", "--timeout", "4s",
			"--set", "claim=true,hook.enabled=true,hook.hang=true")
		if err == nil {
			s.world.violatef("a helm upgrade with a hanging hook succeeded")
		}
	})
	return "begins"
}

func (s *subject) helmRollback() string {
	records := s.env.Records(s.name)
	if len(records) < 2 || s.unclaimed {
		return ""
	}
	to := records[s.world.rng.IntN(len(records)-1)].Labels["version"]
	return s.helm("rollback", s.name, to, "--history-max", "0")
}

func (s *subject) helmUninstall() string {
	if !s.mayRunHelm() {
		return ""
	}
	s.unask()
	return s.helm("uninstall", s.name)
}

func (s *subject) deleteRecord() string {
	records := s.env.Records(s.name)
	// Without records, a release that is installed again leaves its former claim.
	if len(records) == 0 || s.unclaimed {
		return ""
	}
	s.unask()
	s.frozen, s.recordGone = "", true
	record := records[s.world.rng.IntN(len(records))]
	err := s.env.Typed.CoreV1().Secrets(s.env.Namespace).Delete(s.world.t.Context(), record.Name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		s.world.t.Fatal(err)
	}
	return record.Name
}

// corruptRecord corrupts the newest record and edits the spec, because the
// operator reads a record only when it needs it.
func (s *subject) corruptRecord() string {
	records := s.env.Records(s.name)
	if len(records) == 0 || s.pause != "" {
		return ""
	}
	record := records[len(records)-1]
	if record.Labels["status"] != api.StatusDeployed {
		return ""
	}
	s.unask()
	_, err := s.env.Typed.CoreV1().Secrets(s.env.Namespace).Patch(s.world.t.Context(), record.Name, types.JSONPatchType,
		[]byte(`[{"op": "replace", "path": "/data/release", "value": "bm90aGluZw=="}]`), metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		s.world.t.Fatal(err)
	}
	s.corrupt = record.Name
	s.setSpec(s.nextSpec(), false)
	return record.Name + ", and edit " + strconv.Itoa(s.edits)
}

// copied marks copies of records, which the operator does not own.
const copied = "soak.test/copied"

// copyRecord stores a copy of a record under another name, like a restored
// backup. It changes nothing, and remains when the release is deleted.
func (s *subject) copyRecord() string {
	records := s.env.Records(s.name)
	if len(records) == 0 {
		return ""
	}
	record := records[s.world.rng.IntN(len(records))]
	if api.Pending(record.Labels["status"]) {
		return ""
	}
	s.world.copies++
	name := fmt.Sprintf("backup-%d-of-%s", s.world.copies, record.Name)
	record.ObjectMeta = metav1.ObjectMeta{Name: name, Labels: record.Labels, Annotations: record.Annotations}
	record.Labels[copied] = "true"
	_, err := s.env.Typed.CoreV1().Secrets(s.env.Namespace).Create(s.world.t.Context(), &record, metav1.CreateOptions{})
	if err != nil && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		s.world.t.Fatal(err)
	}
	return name
}

// dependent returns a reference to one of the release's objects, if it has any.
func (s *subject) dependent() string {
	owned, err := s.owned(s.world.t.Context(), harness.ConfigMap(""))
	if err != nil {
		s.world.t.Fatal(err)
	}
	if len(owned) == 0 {
		return ""
	}
	return owned[s.world.rng.IntN(len(owned))].GetName()
}

func (s *subject) deleteDependent() string {
	name := s.dependent()
	if name == "" {
		return ""
	}
	err := s.env.At(harness.ConfigMap(name)).Delete(s.world.t.Context(), name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		s.world.t.Fatal(err)
	}
	return name
}

func (s *subject) editDependent() string {
	name := s.dependent()
	if name == "" {
		return ""
	}
	_, err := s.env.At(harness.ConfigMap(name)).Patch(s.world.t.Context(), name, types.MergePatchType,
		[]byte(`{"data": {"text": "theirs"}}`), metav1.PatchOptions{FieldManager: "test-user"})
	if err != nil && !apierrors.IsNotFound(err) {
		s.world.t.Fatal(err)
	}
	return name
}
