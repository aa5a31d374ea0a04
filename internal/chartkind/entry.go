package chartkind

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/watches"
)

// ownKeys are the fields of the spec that are not fields of a watches entry, and nameKeys
// the fields of spec.names, which are keys of a watches entry.
var (
	ownKeys  = api.JSONNames(reflect.TypeFor[Spec]())
	nameKeys = api.JSONNames(reflect.TypeFor[Names]())
)

// Text returns the ChartKind as an entry of a watches file, in JSON. The same spec always
// has the same text.
func (c ChartKind) Text() ([]byte, error) {
	names, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&c.Spec.Names)
	if err != nil {
		return nil, fmt.Errorf("spec.names: %w", err)
	}
	entry := runtime.DeepCopyJSON(c.entry)
	if entry == nil {
		entry = map[string]any{}
	}
	maps.Copy(entry, names)
	text, err := json.Marshal(entry)
	if err != nil {
		return nil, fmt.Errorf("spec: %w", err)
	}
	return text, nil
}

// EntryOf parses the text of a ChartKind. The name is that of the ChartKind. The errors
// have the paths of the fields in the ChartKind.
func EntryOf(name string, text []byte) (watches.Watch, error) {
	entry, err := watches.ParseKind(fileName(name), text)
	return entry, withPaths(err)
}

// KindOf returns the kind of an entry with its chart. The errors have the paths of the
// fields in the ChartKind.
func KindOf(entry watches.Watch, loaded *chart.Chart) (catalog.Kind, error) {
	kind, err := catalog.FromEntry(entry, loaded)
	return kind, withPaths(err)
}

// fileName is the file of the entry in messages.
func fileName(name string) string { return "ChartKind/" + name }

// withPaths replaces the lines of a file by the paths in the ChartKind.
func withPaths(err error) error {
	var problems watches.LineErrors
	if !errors.As(err, &problems) {
		return err
	}
	texts := make([]string, len(problems))
	for i, problem := range problems {
		texts[i] = withPath(problem.Message)
	}
	return errors.New(strings.Join(texts, "; "))
}

// withPath puts the path of the entry in front of a message that begins with a key.
func withPath(message string) string {
	key := message
	if end := strings.IndexAny(message, ":.[ "); end >= 0 {
		key = message[:end]
	}
	switch {
	case slices.Contains(nameKeys, key):
		return "spec.names." + message
	case slices.Contains(entryKeys, key):
		return "spec." + message
	default:
		return "spec: " + message
	}
}

// entryKeys are the keys of an entry in a watches file.
var entryKeys = api.JSONNames(reflect.TypeFor[watches.Watch]())

// Digest returns a digest of the part of the spec that determines chart and kind.
func (c ChartKind) Digest() (string, error) {
	text, err := c.Text()
	if err != nil {
		return "", err
	}
	from := c.Spec.Chart
	from.Interval = nil
	source, err := json.Marshal(from)
	if err != nil {
		return "", fmt.Errorf("spec.chart: %w", err)
	}
	sum := sha256.New()
	sum.Write(text)
	sum.Write([]byte{0})
	sum.Write(source)
	return hex.EncodeToString(sum.Sum(nil)), nil
}
