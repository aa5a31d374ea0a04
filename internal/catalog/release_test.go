package catalog

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestReleaseNames(t *testing.T) {
	for _, test := range []struct {
		name, resource, kind string
		want                 []string
	}{
		{"as it is", "web", "PodSet", []string{"web", "web-podset"}},
		{"dots become dashes", "web.example", "PodSet", []string{"web-example", "web-example-podset"}},
		{"53 characters fit", strings.Repeat("a", 53), "A", []string{strings.Repeat("a", 53), releaseName(strings.Repeat("a", 53) + "-A")}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, ReleaseNames(test.resource, test.kind)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	t.Run("long names are shortened and hashed", func(t *testing.T) {
		got := ReleaseNames(strings.Repeat("a", 54), "A")
		if len(got[0]) != 53 || !strings.HasPrefix(got[0], strings.Repeat("a", 40)+"-") || got[0] == got[1] {
			t.Errorf("got %v", got)
		}
	})
}

// helmName matches valid release names.
var helmName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// resourceName generates a valid name of a custom resource.
func resourceName() *rapid.Generator[string] {
	label := rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?`)
	return rapid.Map(rapid.SliceOfN(label, 1, 6), func(labels []string) string { return strings.Join(labels, ".") })
}

func TestReleaseNames_AreValidAndStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name, kind := resourceName().Draw(t, "name"), rapid.StringMatching(`[A-Z][A-Za-z0-9]{0,62}`).Draw(t, "kind")
		got := ReleaseNames(name, kind)
		for _, n := range got {
			if len(n) > 53 || !helmName.MatchString(n) {
				t.Fatalf("%s %s: %q is not a valid release name", kind, name, n)
			}
		}
		if got[0] == got[1] {
			t.Fatalf("%s %s has only one name, %s", kind, name, got[0])
		}
		if !cmp.Equal(got, ReleaseNames(name, kind)) {
			t.Fatal("the names differ between two calls")
		}
		other := resourceName().Draw(t, "other")
		if a, b := ReleaseNames(name, kind)[0], ReleaseNames(other, kind)[0]; a == b && strings.ReplaceAll(name, ".", "-") != strings.ReplaceAll(other, ".", "-") {
			t.Fatalf("%s and %s have the same release name %s", name, other, a)
		}
	})
}

func TestReleaseNames_ShortenedNamesDiffer(t *testing.T) {
	start := strings.Repeat("a", 60)
	rapid.Check(t, func(t *rapid.T) {
		end := rapid.StringMatching(`[a-z0-9.]{0,3}[a-z0-9]`)
		a, b := start+end.Draw(t, "a"), start+end.Draw(t, "b")
		if a != b && releaseName(a) == releaseName(b) {
			t.Fatalf("%s and %s have the same release name %s", a, b, releaseName(a))
		}
	})
}
