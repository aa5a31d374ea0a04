package scaffold_test

import (
	"strings"
	"testing"

	"github.com/chartwright/chartwright/internal/authoring/scaffold"
)

// TestAdd_PrintsTheEntryForGeneratedPasswords adds a chart that refuses every
// upgrade without the password that it has generated.
func TestAdd_PrintsTheEntryForGeneratedPasswords(t *testing.T) {
	dir := newProject(t)
	chart := pack(t, "box-1.0.0.tgz", map[string]string{
		"Chart.yaml":  "apiVersion: v2\nname: box\nversion: 1.0.0\n",
		"values.yaml": "password: \"\"\n",
		"templates/NOTES.txt": `{{ $e := dict "valueKey" "password" }}` +
			`{{ if and .Release.IsUpgrade (not .Values.password) }}{{ fail "PASSWORDS ERROR" }}{{ end }}`,
		"templates/secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: \"{{ .Release.Name }}-auth\"}\n" +
			"data: {root: '{{ default (randAlphaNum 9) .Values.password | b64enc }}'}\n",
	})
	plan := add(t, dir, scaffold.Add{Chart: chart, Group: "shop", Version: "v1"})
	want := `valuesFrom: [{kind: Secret, name: "{{ .metadata.name }}-auth", key: "root", targetPath: "password", optional: true}]`
	if notes := strings.Join(plan.Notes, "\n"); !strings.Contains(notes, want) {
		t.Errorf("the notes are %q, want %s in them", notes, want)
	}
	if !plan.Unsettled {
		t.Error("the note is not marked as one to act upon")
	}
}
