package harness

import (
	"encoding/json"
	"os"
	"path/filepath"
)

// Entry is an entry of a watches file.
type Entry map[string]any

// MakeEntry returns an entry for a kind and a chart.
func MakeEntry(kind Kind, chart string) Entry {
	return Entry{"group": kind.Group, "version": kind.Version, "kind": kind.Kind, "chart": chart}
}

// Override adds an override value.
func (w Entry) Override(path, value string) Entry {
	overrides, ok := w["overrideValues"].(map[string]string)
	if !ok {
		overrides = map[string]string{}
		w["overrideValues"] = overrides
	}
	overrides[path] = value
	return w
}

// Selector restricts the entry to custom resources with a label.
func (w Entry) Selector(key, value string) Entry {
	w["selector"] = map[string]any{"matchLabels": map[string]string{key: value}}
	return w
}

// Timeout sets the timeout of each hook.
func (w Entry) Timeout(duration string) Entry {
	w["timeout"] = duration
	return w
}

// With sets another field of the entry.
func (w Entry) With(field string, value any) Entry {
	w[field] = value
	return w
}

// Watches writes a watches file and returns its path.
func (e *Env) Watches(entries ...Entry) string {
	e.t.Helper()
	// JSON is valid YAML.
	data, err := json.MarshalIndent(entries, "", "  ")
	e.must(err)
	return e.WatchesText(string(data))
}

// WatchesText writes a watches file with the given text and returns its path.
func (e *Env) WatchesText(text string) string {
	e.t.Helper()
	file := filepath.Join(e.t.TempDir(), "watches.yaml")
	e.must(os.WriteFile(file, []byte(text), 0o600))
	return file
}
