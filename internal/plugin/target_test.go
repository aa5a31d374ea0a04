package plugin

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestSplit(t *testing.T) {
	for _, test := range []struct {
		args        string
		extra       int
		words, rest []string
		err         string
	}{
		{"podset/web", 0, []string{"podset/web"}, nil, ""},
		{"podset web", 0, []string{"podset", "web"}, nil, ""},
		{"podset/web 2", 1, []string{"podset/web"}, []string{"2"}, ""},
		{"podset web 2", 1, []string{"podset", "web"}, []string{"2"}, ""},
		{"", 1, nil, nil, "expected a custom resource"},
		{"podset", 1, nil, nil, "expected a custom resource"},
		{"podset/web 2 3", 1, nil, nil, `unexpected argument "3"`},
		{"podset web 2", 0, nil, nil, `unexpected argument "2"`},
	} {
		words, rest, err := split(strings.Fields(test.args), test.extra)
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%q: %v, want %q", test.args, err, test.err)
			}
			continue
		}
		if err != nil || !cmp.Equal(words, test.words) || strings.Join(rest, " ") != strings.Join(test.rest, " ") {
			t.Errorf("%q: %q and %q, %v", test.args, words, rest, err)
		}
	}
}

func TestExplain_NamesTheMissingPermission(t *testing.T) {
	required := permission{verb: "patch", resource: schema.GroupResource{Group: "app.example.com", Resource: "podsets"}, namespace: "shop", purpose: "to pause reconciliation"}
	refused := apierrors.NewForbidden(required.resource, "web", errors.New("no"))
	err := required.explain(refused)
	want := `missing permission to patch podsets.app.example.com in namespace shop, which is required to pause reconciliation; required rule: {apiGroups: ["app.example.com"], resources: ["podsets"], verbs: ["patch"]}`
	if err == nil || err.Error() != want || !isMissingPermission(fmt.Errorf("first: %w", err)) || !errors.Is(err, refused) || !permanent(err) {
		t.Errorf("got %v", err)
	}
	required.namespace = ""
	if err := required.explain(refused); strings.Contains(err.Error(), "namespace") {
		t.Errorf("got %v", err)
	}
	if err := required.explain(errors.New("no route")); isMissingPermission(err) || permanent(err) || err.Error() != "patch podsets.app.example.com: no route" {
		t.Errorf("got %v", err)
	}
	if required.explain(nil) != nil {
		t.Error("no error becomes an error")
	}
}
