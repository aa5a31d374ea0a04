package watches_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright/internal/watches"
)

// TestOperatorSDKStyle_AllowsEverything in an entry that was written for the operator-sdk's
// Helm operator, and in no other.
func TestOperatorSDKStyle_AllowsEverything(t *testing.T) {
	const kind = "- {group: a.example.com, version: v1, kind: A, chart: "
	for _, test := range []struct {
		name, file string
		want       []bool
	}{
		{"as operator-sdk init writes it", "# Use the 'create api' subcommand to add watches to this file.\n" + kind + "helm-charts/a}\n#+kubebuilder:scaffold:watch\n", []bool{true}},
		{"the marker, and another folder", kind + "charts/a}\n# +kubebuilder:scaffold:watch\n", []bool{true}},
		{"the marker before it, with carriage returns", "#+kubebuilder:scaffold:watch\r\n" + kind + "charts/a}\r\n", []bool{true}},
		{"only its folder", kind + "./helm-charts/a}\n", []bool{true}},
		{"its folder somewhere else", kind + "/opt/helm/helm-charts/a}\n", []bool{true}},
		{"a key that is its own", kind + "charts/a, dryRunOption: server}\n", []bool{true}},
		{"all of its keys", kind + "helm-charts/a, watchDependentResources: true, overrideValues: {a: b}, selector: {}, reconcilePeriod: 1m, dryRunOption: server, maxConcurrentReconciles: 2}\n", []bool{true}},

		{"as we write it", kind + "charts/a}\n", []bool{false}},
		{"keys that both have", kind + "charts/a, watchDependentResources: false, reconcilePeriod: 1m}\n", []bool{false}},
		{"a folder that only begins so", kind + "helm-charts-of-ours/a}\n", []bool{false}},
		{"the marker of something else", kind + "charts/a}\n#+kubebuilder:scaffold:watches\n", []bool{false}},
		{"no comment", kind + "charts/a, overrideValues: {a: \"x #+kubebuilder:scaffold:watch\"}}\n", []bool{false}},
		{"its folder, and something is allowed", kind + "helm-charts/a, allow: {otherNamespaces: true}}\n", []bool{false}},
		{"its folder, and nothing is allowed", kind + "helm-charts/a, allow: {}}\n#+kubebuilder:scaffold:watch\n", []bool{false}},
		{"its folder, and null is allowed", kind + "helm-charts/a, allow: }\n", []bool{false}},
		{"its folder, and a key of ours", kind + "helm-charts/a, maxHistory: 3}\n#+kubebuilder:scaffold:watch\n", []bool{false}},
		{
			"one that was moved, and one that was not",
			kind + "helm-charts/a, allow: {}}\n- {version: v1, kind: B, chart: helm-charts/b}\n#+kubebuilder:scaffold:watch\n",
			[]bool{false, true},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			entries, err := watches.Parse("watches.yaml", []byte(test.file))
			if err != nil {
				t.Fatal(err)
			}
			var got []bool
			for _, w := range entries {
				got = append(got, w.Allow.Everything)
				if w.Allow.Everything != (w.Allow.LookupScope() == watches.LookupAll) {
					t.Errorf("%s may look up: %s", w.Kind, w.Allow.LookupScope())
				}
				if w.Allow.TakeOwnership != "" {
					t.Errorf("%s allows to take over resources that the release does not own", w.Kind)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("everything is allowed (-want +got):\n%s", diff)
			}
		})
	}
	const marker = "\n#+kubebuilder:scaffold:watch\n"
	for file, want := range map[string]bool{
		kind + "charts/a}\n":                                    false,
		kind + "charts/a, numbers: Integer}\n":                  true,
		kind + "helm-charts/a}\n":                               true,
		kind + "charts/a, maxHistory: 3, allow: {}}" + marker:   true,
		kind + "charts/a, dryRunOption: server, maxHistory: 3}": true,
		kind + "charts/a, numbers: Helm}" + marker:              false,
	} {
		entries, err := watches.Parse("watches.yaml", []byte(file))
		if err != nil {
			t.Fatal(err)
		}
		if got := entries[0].IntegerNumbers(); got != want {
			t.Errorf("%s: templates get integers: %t", file, got)
		}
	}
	// A kind.yaml in a chart's folder is Chartwright's own format.
	kinds, err := watches.ParseKind("kind.yaml", []byte("{group: a.example.com, version: v1, kind: A, dryRunOption: server} #+kubebuilder:scaffold:watch\n#+kubebuilder:scaffold:watch\n"))
	if err != nil || kinds.Allow.Everything {
		t.Errorf("beside a chart: %v, %v", kinds.Allow, err)
	}
}

// A value of overrideValues without quotes is its text, as for the operator-sdk.
func TestOverrideValues_AcceptScalars(t *testing.T) {
	const file = `- {group: a.example.com, version: v1, kind: A, chart: helm-charts/a, overrideValues: {
  text: $IMAGE, no: false, yes: true, whole: 3, large: 1000000, fraction: 0.10, leading: 007, nothing: , quoted: "0.10"}}`
	entries, err := watches.Parse("watches.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	want := watches.OverrideValues{
		"text": "$IMAGE", "no": "false", "yes": "true", "whole": "3", "large": "1000000", "fraction": "0.1",
		"leading": "7", "nothing": "", "quoted": "0.10",
	}
	if diff := cmp.Diff(want, entries[0].OverrideValues); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
