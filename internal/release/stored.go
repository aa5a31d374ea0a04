package release

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/helm/engine"
)

// Stored is a revision with the content of its record.
type Stored struct {
	Record
	// Objects are the objects of the manifest. Hooks are the objects of the hooks.
	Objects, Hooks []chart.RenderedObject
	// Values are the values that were given to the chart.
	Values map[string]any

	Helm *engine.Release
}

// ReadRecord decodes the record in a Secret. The error is ErrCorrupt if it cannot be
// decoded.
func ReadRecord(secret *corev1.Secret) (*Stored, error) {
	rls, err := Decode(secret)
	if err != nil {
		return nil, err
	}
	record, ok := FromMeta(secret)
	if !ok {
		return nil, fmt.Errorf("%w: %s: its labels are not those of a release record", ErrCorrupt, secret.Name)
	}
	stored := &Stored{Record: record, Values: values.Normalize(rls.Config), Helm: rls}
	if stored.Chart == "" {
		stored.setChart(rls)
	}
	if err := stored.parse(); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrCorrupt, secret.Name, err)
	}
	return stored, nil
}

// templateLine is the comment that Helm writes before an object. A post-renderer may
// remove it.
var templateLine = regexp.MustCompile(`(?m)^# Source: (.*)$`)

// parse decodes the objects of the hooks and of the manifest. Unlike chart.ReadRelease,
// it also accepts a manifest that Helm did not write.
func (s *Stored) parse() error {
	for _, hook := range s.Helm.Hooks {
		objects, err := chart.ObjectsOf(s.Chart, hook.Path, hook.Manifest)
		if err != nil {
			return err
		}
		s.Hooks = append(s.Hooks, objects...)
	}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(s.Helm.Manifest)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		source := ""
		if line := templateLine.FindSubmatch(document); line != nil {
			source = string(line[1])
		}
		objects, err := chart.ObjectsOf(s.Chart, source, string(document))
		if err != nil {
			return err
		}
		s.Objects = append(s.Objects, objects...)
	}
}
