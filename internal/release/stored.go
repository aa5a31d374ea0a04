package release

import (
	"fmt"

	helmrelease "helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"

	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/values"
)

// Stored is a revision as its record has it.
type Stored struct {
	Record
	// Objects are those of the manifest, Hooks the others.
	Objects, Hooks []chart.RenderedObject
	// Values were given to the chart.
	Values map[string]any

	Helm *helmrelease.Release
}

// ReadRecord reads a revision from its Secret. The error is ErrDamaged where it
// cannot be read.
func ReadRecord(secret *corev1.Secret) (*Stored, error) {
	rls, err := Decode(secret)
	if err != nil {
		return nil, err
	}
	record, ok := FromMeta(secret)
	if !ok {
		return nil, fmt.Errorf("%w: %s: its labels are not those of a release record", ErrDamaged, secret.Name)
	}
	rendered, err := chart.ReadRelease(rls)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, secret.Name, err)
	}
	stored := &Stored{Record: record, Objects: rendered.Objects, Hooks: rendered.Hooks, Values: values.Normalize(rls.Config), Helm: rls}
	stored.describe()
	return stored, nil
}

// describe fills in what the annotations of a record lack that somebody else
// wrote.
func (s *Stored) describe() {
	if s.Helm.Chart != nil && s.Helm.Chart.Metadata != nil && s.Chart == "" {
		s.Chart, s.ChartVersion, s.AppVersion = s.Helm.Chart.Metadata.Name, s.Helm.Chart.Metadata.Version, s.Helm.Chart.Metadata.AppVersion
	}
}
