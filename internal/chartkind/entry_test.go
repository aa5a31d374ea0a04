package chartkind

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// parse returns the ChartKind with a spec.
func parse(t *testing.T, spec string) ChartKind {
	t.Helper()
	object := &unstructured.Unstructured{}
	text := "apiVersion: chartwright.dev/v1alpha1\nkind: ChartKind\nmetadata: {name: a, uid: u, generation: 2}\nspec:\n  " + strings.ReplaceAll(spec, "\n", "\n  ")
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	c, err := Parse(object)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const (
	fromRegistry = "chart: {oci: oci://a.test/web, version: ^1}\n"
	names        = "names: {group: shop.example.com, version: v1, kind: Web, shortNames: [w], scope: Namespaced}\n"
)

func TestText_IsEntryOfWatchesFile(t *testing.T) {
	c := parse(t, fromRegistry+names+"operator: b\ninstallCRD: true\ndeletionPolicy: Orphan\nmaxHistory: 3\nallow: {lookup: none}")
	text, err := c.Text()
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"allow":{"lookup":"none"},"group":"shop.example.com","kind":"Web","maxHistory":3,"scope":"Namespaced","shortNames":["w"],"version":"v1"}`
	if string(text) != want {
		t.Errorf("the entry is\n%s\nwant\n%s", text, want)
	}
	entry, err := EntryOf("a", text)
	if err != nil || entry.Kind != "Web" || entry.HistoryLimit() != 3 || entry.File != "ChartKind/a" {
		t.Errorf("%+v, %v", entry, err)
	}
	if !c.Spec.Orphans() || c.Spec.OperatorName() != "b" || c.Spec.Chart.CheckInterval() != DefaultInterval {
		t.Errorf("the spec is %+v", c.Spec)
	}
}

func TestEntryOf_ErrorsHavePathsOfChartKind(t *testing.T) {
	for _, test := range []struct{ spec, want string }{
		{"maxHistory: 0", "spec.maxHistory is 0: expected at least 1"},
		{"timeout: 0s\nmaxConcurrentReconciles: 0", "spec.maxConcurrentReconciles is 0: expected at least 1; spec.timeout is 0s: expected more than 0"},
		{"timeout: soon", "spec.timeout: time: invalid duration"},
		{"allow: {systemNamespaces: [A_B]}", `spec.allow.systemNamespaces: "A_B" is not the name of a namespace`},
		{"names: {group: shop.example.com, version: v1, kind: Web, shortNames: [W_]}", `spec.names.shortNames[0]: "W_": `},
		{"names: {group: shop.example.com, version: v1, kind: Web, scope: Cluster}", "spec.names.scope is Cluster, which requires releaseNamespace"},
		{"status: {phase: '1 +'}", "spec.status.phase: column 4: Syntax error"},
		{"health: [{apiVersion: a.b/v1, kind: C, ready: nope}]", "spec.health[0].ready: column 1: undeclared reference"},
		{"releaseNamespace: '{{'", "spec.releaseNamespace: not a template"},
		{"overrideValues: {'a[': b}", "spec.overrideValues: a[: "},
		{"chrat: a", `spec: unknown key "chrat"`},
	} {
		spec := fromRegistry + test.spec
		if !strings.Contains(spec, "names:") {
			spec += "\n" + names
		}
		text, err := parse(t, spec).Text()
		if err != nil {
			t.Fatal(err)
		}
		entry, err := EntryOf("a", text)
		if err == nil {
			_, err = KindOf(entry, nil)
		}
		if err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s:\n%v\nwant\n%s", test.spec, err, test.want)
		}
	}
}

// TestKindOf_OverridesAreLiteral: the author of a ChartKind does not read the environment of
// the operator.
func TestKindOf_OverridesAreLiteral(t *testing.T) {
	t.Setenv("TOKEN", "secret")
	entry := entryWith(t, "overrideValues: {a.b: '$TOKEN {{ env \"TOKEN\" }}', n: '3'}")
	kind, err := KindOf(entry, archive(t, map[string]string{"Chart.yaml": chartFile}))
	if err != nil {
		t.Fatal(err)
	}
	if got := kind.Overrides["a"].(map[string]any)["b"]; got != `$TOKEN {{ env "TOKEN" }}` {
		t.Errorf("the override is %q", got)
	}
	if kind.Overrides["n"] != int64(3) || kind.OverrideValues["n"] != "3" || kind.Chart.Name() != "web" {
		t.Errorf("the kind has %v, %v", kind.Overrides, kind.OverrideValues)
	}
}

func TestDigest_ChangesWithWhatIsServed(t *testing.T) {
	digest := func(spec string) string {
		t.Helper()
		sum, err := parse(t, spec).Digest()
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	base := digest(fromRegistry + names)
	for _, same := range []string{"installCRD: true", "deletionPolicy: Orphan"} {
		if digest(fromRegistry+names+same) != base {
			t.Errorf("%s changes the digest", same)
		}
	}
	if digest("chart: {oci: oci://a.test/web, version: ^1, interval: 5s}\n"+names) != base {
		t.Error("the interval changes the digest")
	}
	for _, other := range []string{fromRegistry + names + "maxHistory: 2", "chart: {oci: oci://a.test/web, version: ^2}\n" + names, "chart: {oci: oci://a.test/web, version: ^1, secretRef: {name: a}}\n" + names} {
		if digest(other) == base {
			t.Errorf("%s does not change the digest", other)
		}
	}
}

func TestPrecedes(t *testing.T) {
	at := func(name, second, spec string) ChartKind {
		c := parse(t, spec)
		c.Name = name
		if err := c.CreationTimestamp.UnmarshalQueryParameter("2026-01-01T00:00:0" + second + "Z"); err != nil {
			t.Fatal(err)
		}
		return c
	}
	spec := func(kind, more string) string {
		return fromRegistry + "names: {group: shop.example.com, version: v1, kind: " + kind + "}" + more
	}
	old := at("b", "1", spec("Web", ""))
	for _, test := range []struct {
		name  string
		other ChartKind
		want  bool
	}{
		{"younger, same kind", at("a", "2", spec("Web", "")), true},
		{"older, same kind", at("c", "0", spec("Web", "")), false},
		{"same age, later name", at("c", "1", spec("Web", "")), true},
		{"same age, earlier name", at("a", "1", spec("Web", "")), false},
		{"another kind", at("c", "2", spec("Shop", "")), false},
		{"another kind, same plural", at("c", "2", fromRegistry+"names: {group: shop.example.com, version: v1, kind: Shop, plural: webs}"), true},
		{"another operator", at("c", "2", spec("Web", "\noperator: other")), false},
		{"another group", at("c", "2", fromRegistry+"names: {group: b.example.com, version: v1, kind: Web}"), false},
	} {
		if got := old.Precedes(test.other); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
