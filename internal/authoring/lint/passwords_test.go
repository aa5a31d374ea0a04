package lint_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright/internal/authoring/lint"
	"github.com/chartwright/chartwright/internal/watches"
)

// library imitates the part of Bitnami's library chart that handles passwords.
const library = `
{{- define "box.fullname" }}{{ if contains .Chart.Name .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-{{ .Chart.Name }}{{ end }}{{ end }}
{{- define "validations.single.empty" }}{{ if not (get .context.Values .valueKey) }}'{{ .valueKey }}' must not be empty{{ end }}{{ end }}
{{- define "errors.upgrade.passwords.empty" }}{{ $e := join "" .validationErrors }}{{ if and $e .context.Release.IsUpgrade }}{{ printf "\nPASSWORDS ERROR: %s" $e | fail }}{{ end }}{{ end }}
{{- define "passwords.manage" }}
{{- $old := (lookup "v1" "Secret" .context.Release.Namespace .secret).data }}
{{- $given := get .context.Values (first .providedValues) }}
{{- if and $old (hasKey $old .key) }}{{ index $old .key }}
{{- else if $given }}{{ $given | b64enc }}
{{- else }}{{ include "errors.upgrade.passwords.empty" (dict "validationErrors" (list "x") "context" .context) }}{{ randAlphaNum 9 | b64enc }}{{ end }}
{{- end }}`

const demands = `{{- $e := include "validations.single.empty" (dict "valueKey" "name" "secret" "x" "context" $) }}
{{- include "errors.upgrade.passwords.empty" (dict "validationErrors" (list $e) "context" $) }}`

// TestGeneratedPasswords_PrintsTheEntry checks which charts need valuesFrom for an
// upgrade, and the text that reports it.
func TestGeneratedPasswords_PrintsTheEntry(t *testing.T) {
	secret := func(name, password string) string {
		return object("v1", "Secret", name, "data:\n  pass-word: "+password+"\n")
	}
	const random = `{{ default (randAlphaNum 9) .Values.name | b64enc }}`
	for _, test := range []struct {
		name  string
		files files
		entry watches.Watch
		want  string
	}{
		{name: "no passwords"},
		{
			name:  "notes that require a password",
			files: files{"templates/NOTES.txt": demands, "templates/b.yaml": secret("{{ .Release.Name }}-auth", random)},
			want:  `valuesFrom: [{kind: Secret, name: "{{ .metadata.name }}-auth", key: "pass-word", targetPath: "name", optional: true}]`,
		},
		{
			name:  "a Secret name that depends on the release name",
			files: files{"templates/NOTES.txt": demands, "templates/b.yaml": secret(`{{ include "box.fullname" . }}`, random)},
			want:  `name: "{{ if contains \"box\" .metadata.name }}{{ .metadata.name }}{{ else }}{{ .metadata.name }}-box{{ end }}"`,
		},
		{
			name: "an entry that is complete",
			files: files{
				"templates/NOTES.txt": demands, "templates/b.yaml": secret("{{ .Release.Name }}-auth", random),
			},
			entry: watches.Watch{ValuesFrom: []watches.ValuesFrom{{Kind: watches.SourceSecret, Name: "x", Key: "pass-word", TargetPath: "name"}}},
		},
		{
			name: "a password that the chart reads back",
			files: files{"templates/b.yaml": secret("{{ .Release.Name }}-auth",
				`{{ include "passwords.manage" (dict "secret" (printf "%s-auth" .Release.Name) "key" "pass-word" "providedValues" (list "name") "context" $) }}`)},
		},
		{
			name: "a password that the chart reads back from the wrong Secret",
			files: files{"templates/b.yaml": secret("{{ .Release.Name }}-auth",
				`{{ include "passwords.manage" (dict "secret" "other" "key" "pass-word" "providedValues" (list "name") "context" $) }}`)},
			want: `name: "{{ .metadata.name }}-auth", key: "pass-word", targetPath: "name"`,
		},
		{
			name:  "a password without a Secret",
			files: files{"templates/NOTES.txt": demands},
			want:  "no Secret of the release contains name: require it in the spec",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			changed := files{"templates/_library.tpl": library}
			maps.Copy(changed, test.files)
			target := lint.Standalone("box", load(t, changed))
			target.Kind.ValuesFrom = test.entry.ValuesFrom
			recipe, err := lint.GeneratedPasswords(target.Kind)
			if err != nil {
				t.Fatal(err)
			}
			if got := recipe.String(); recipe.Needed() != (test.want != "") || recipe.Needed() && !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q in it", got, test.want)
			}
		})
	}
}

func TestLint_ReportsGeneratedPasswords(t *testing.T) {
	got := run(t, lint.Standalone("box", load(t, files{
		"templates/_library.tpl": library, "templates/NOTES.txt": "\n" + demands,
		"templates/b.yaml": object("v1", "Secret", "{{ .Release.Name }}", "data:\n  password: {{ default \"x\" .Values.name | b64enc }}\n"),
	})))
	got = slices.DeleteFunc(got, func(f string) bool { return !strings.Contains(f, "password") })
	if diff := cmp.Diff([]string{"warning upgrade-needs-password templates/NOTES.txt:2"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
